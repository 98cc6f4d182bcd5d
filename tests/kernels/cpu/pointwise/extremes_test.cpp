// Max, Min and Clip with NaNs, infinities and crossing limits.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using F32 = std::vector<float>;

// Of vectors; a single number is a scalar, none an input that is left out.
template <typename T>
std::vector<T> on(std::string_view op, const std::vector<std::vector<T>>& inputs) {
  const Shape shape{std::ssize(inputs[0])};
  OpCall c{.op = op,
           .key = kDTypeOf<T>,
           .inputs = {},
           .outputs = {{.dtype = kDTypeOf<T>, .shape = shape}}};
  for (const std::vector<T>& input : inputs) {
    const Shape own = input.size() == 1 ? Shape{} : shape;
    c.inputs.push_back(input.empty() ? Literal::absent() : Literal::of(own, input));
  }
  return call(c)[0].template values<T>();
}

}  // namespace

TEST_CASE("extremes: a NaN on either side wins") {
  for (std::string_view op : {"Maximum", "Minimum"}) {
    const F32 y = on<float>(op, {{kNaN, 1.0F, kNaN, 2.0F}, {1.0F, kNaN, kNaN, 2.0F}});
    CHECK(std::isnan(y[0]));
    CHECK(std::isnan(y[1]));
    CHECK(std::isnan(y[2]));
    CHECK(y[3] == 2.0F);
  }
  CHECK(on<float>("Maximum", {{-kInfinity, 3.0F}, {-1.0F, kInfinity}}) == F32{-1.0F, kInfinity});
  CHECK(on<float>("Minimum", {{-kInfinity, 3.0F}, {-1.0F, kInfinity}}) == F32{-kInfinity, 3.0F});
}

TEST_CASE("extremes: Clip lets a NaN through and ends at the upper limit") {
  const F32 y = on<float>("Clip", {{kNaN, -kInfinity, 0.5F, kInfinity}, {0.0F}, {1.0F}});
  CHECK(std::isnan(y[0]));
  CHECK(F32(y.begin() + 1, y.end()) == F32{0.0F, 0.5F, 1.0F});
  CHECK(on<float>("Clip", {{0.0F, 2.0F, 5.0F}, {3.0F}, {1.0F}}) == F32{1.0F, 1.0F, 1.0F});
  CHECK(on<float>("Clip", {{-kInfinity, 2.0F, kInfinity}, {}, {3.0F}}) ==
        F32{-kInfinity, 2.0F, 3.0F});
  CHECK(on<float>("Clip", {{-kInfinity, kInfinity}}) == F32{-kInfinity, kInfinity});
  using I64 = std::vector<std::int64_t>;
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  CHECK(on<std::int64_t>("Clip", {{kMin, 5, kMax}, {-3}}) == I64{-3, 5, kMax});
}

}  // namespace trainscope::cpu
