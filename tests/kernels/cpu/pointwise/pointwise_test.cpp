// Special values of arithmetic, selection, powers, conversions and activations.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using I64 = std::vector<std::int64_t>;
using F32 = std::vector<float>;

I64 on_integers(std::string_view op, const I64& a, const I64& b) {
  const Shape shape{static_cast<std::int64_t>(a.size())};
  return call({.op = op,
               .key = DType::kI64,
               .inputs = {Literal::of(shape, a), Literal::of(shape, b)},
               .outputs = {{.dtype = DType::kI64, .shape = shape}}})[0]
      .values<std::int64_t>();
}

template <typename To, typename From>
std::vector<To> cast(const std::vector<From>& x) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  return call({.op = "Cast",
               .key = DType::kF32,
               .inputs = {Literal::of(shape, x)},
               .outputs = {{.dtype = kDTypeOf<To>, .shape = shape}}})[0]
      .template values<To>();
}

F32 on_floats(std::string_view op, const std::vector<F32>& inputs) {
  const Shape shape{static_cast<std::int64_t>(inputs[0].size())};
  OpCall c{.op = op, .inputs = {}, .outputs = {{.dtype = DType::kF32, .shape = shape}}};
  for (const F32& input : inputs) {
    c.inputs.push_back(Literal::of(Shape{static_cast<std::int64_t>(input.size())}, input));
  }
  return call(c)[0].values<float>();
}

}  // namespace

TEST_CASE("pointwise: integer division truncates and has no undefined cases") {
  CHECK(on_integers("Div", {7, -7, 7, 5, kMin}, {2, 2, -2, 0, -1}) == I64{3, -3, -3, 0, kMin});
}

TEST_CASE("pointwise: integers wrap around") {
  CHECK(on_integers("Add", {kMax, 1}, {1, 2}) == I64{kMin, 3});
  CHECK(on_integers("Sub", {kMin}, {1}) == I64{kMax});
  CHECK(on_integers("Mul", {kMax}, {2}) == I64{-2});
}

TEST_CASE("pointwise: Mod has the sign of the divisor or of the dividend") {
  const auto mod = [](const I64& a, const I64& b, bool truncated) {
    const Shape shape{std::ssize(a)};
    return call({.op = "Mod",
                 .key = DType::kI64,
                 .params = ModParams{.truncated = truncated},
                 .inputs = {Literal::of(shape, a), Literal::of(shape, b)},
                 .outputs = {{.dtype = DType::kI64, .shape = shape}}})[0]
        .values<std::int64_t>();
  };
  const I64 a{-4, 7, 5, 4, -7, 8, kMin, 5};
  const I64 b{2, -3, 8, -2, 3, 5, -1, 0};
  CHECK(mod(a, b, false) == I64{0, -2, 5, 0, 2, 3, 0, 0});
  CHECK(mod(a, b, true) == I64{0, 1, 5, 0, -1, 3, 0, 0});
}

TEST_CASE("pointwise: integer powers are exact, wrap around and truncate below 1") {
  CHECK(on_integers("Pow", {3, -3, 2, 10, 0, 0}, {40, 3, 63, 18, 0, 5}) ==
        I64{static_cast<std::int64_t>(12157665459056928801ULL), -27, kMin, 1000000000000000000, 1,
            0});
  CHECK(on_integers("Pow", {2, 1, -1, -1, 0}, {-1, -5, -2, -3, -1}) == I64{0, 1, 1, -1, 0});
}

TEST_CASE("pointwise: Round goes to the even one of two") {
  CHECK(on_floats("Round", {{-2.5F, -1.5F, -0.5F, 0.5F, 1.5F, 2.5F, 0.9F, -1.2F}}) ==
        F32{-2.0F, -2.0F, 0.0F, 0.0F, 2.0F, 2.0F, 1.0F, -1.0F});
  CHECK(on_floats("Ceil", {{-1.5F, 0.2F, 3.0F}}) == F32{-1.0F, 1.0F, 3.0F});
  CHECK(on_floats("Floor", {{-1.5F, 0.2F, 3.0F}}) == F32{-2.0F, 0.0F, 3.0F});
}

TEST_CASE("pointwise: Where does not let the other branch through") {
  const Shape shape{4};
  const std::vector<Literal> y =
      call({.op = "Where",
            .inputs = {Literal::of<bool>(shape, {true, false, true, false}),
                       Literal::of<float>(shape, {1, kNaN, 3, kInfinity}),
                       Literal::of<float>(Shape{}, {-kInfinity})},
            .outputs = {{.dtype = DType::kF32, .shape = shape}}});
  CHECK(y[0].values<float>() == F32{1, -kInfinity, 3, -kInfinity});
}

TEST_CASE("pointwise: Pow of single exponents equals the general power") {
  const F32 x{0.5F, 1.0F, 2.0F, 9.0F};
  CHECK(on_floats("Pow", {x, {2.0F}}) == F32{0.25F, 1.0F, 4.0F, 81.0F});
  CHECK(on_floats("Pow", {{-2.0F, 3.0F}, {3.0F}}) == F32{-8.0F, 27.0F});
  CHECK(on_floats("Pow", {{4.0F, 9.0F}, {0.5F}}) == F32{2.0F, 3.0F});
  CHECK(on_floats("Pow", {{0.0F, 4.0F}, {0.0F}}) == F32{1.0F, 1.0F});
  CHECK(on_floats("Pow", {x, {2.0F, 3.0F, -1.0F, 0.5F}}) == F32{0.25F, 1.0F, 0.5F, 3.0F});
}

TEST_CASE("pointwise: gradients of Pow at the edges are those of PyTorch") {
  const F32 ones{1.0F, 1.0F, 1.0F};
  CHECK(on_floats("PowGrad", {ones, {0.0F, 2.0F, -3.0F}, {2.0F}}) == F32{0.0F, 4.0F, -6.0F});
  CHECK(on_floats("PowGrad", {ones, {0.0F, 2.0F, -3.0F}, {3.0F}}) == F32{0.0F, 12.0F, 27.0F});
  CHECK(on_floats("PowGrad", {ones, {0.0F, 2.0F, -3.0F}, {0.0F}}) == F32{0.0F, 0.0F, 0.0F});
  CHECK(on_floats("PowGrad", {ones, {4.0F, 2.0F, 3.0F}, {0.5F, 1.0F, 4.0F}}) ==
        F32{0.25F, 1.0F, 108.0F});
  CHECK(on_floats("PowExponentGrad", {ones, {0.0F, 1.0F, -2.0F}, {0.0F, 1.0F, 4.0F}}) ==
        F32{0.0F, 0.0F, 0.0F});
}

TEST_CASE("pointwise: Cast of floats to integers saturates, NaN gives 0") {
  const F32 x{1.9F, -1.9F, 3e9F, -3e9F, kInfinity, -kInfinity, kNaN};
  constexpr std::int32_t kLow = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kHigh = std::numeric_limits<std::int32_t>::max();
  CHECK(cast<std::int32_t>(x) == std::vector<std::int32_t>{1, -1, kHigh, kLow, kHigh, kLow, 0});
  CHECK(cast<std::int64_t>(F32{1e30F, -1e30F, -2.5F}) == I64{kMax, kMin, -2});
  CHECK(cast<bool>(F32{0.0F, -0.0F, 0.25F, kNaN}) == std::vector<bool>{false, false, true, true});
  CHECK(cast<float>(std::vector<bool>{true, false}) == F32{1.0F, 0.0F});
  CHECK(cast<float>(std::vector<double>{1e300, 0.1}) == F32{kInfinity, 0.1F});
}

TEST_CASE("pointwise: Relu lets NaN through and has slope 0 at 0") {
  const F32 y = on_floats("Relu", {{-1.0F, 0.0F, 2.0F, kNaN}});
  CHECK(y[0] == 0.0F);
  CHECK(y[2] == 2.0F);
  CHECK(std::isnan(y[3]));
  CHECK(on_floats("ReluGrad", {{5.0F, 5.0F, 5.0F}, {0.0F, 2.0F, 0.0F}}) == F32{0.0F, 5.0F, 0.0F});
}

}  // namespace trainscope::cpu
