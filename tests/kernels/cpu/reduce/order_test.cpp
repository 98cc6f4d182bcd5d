// Which of equal elements counts, where a NaN stands, and lines that are cut for threads.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include "kernels/api/random.h"
#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using F32 = std::vector<float>;
using I64 = std::vector<std::int64_t>;

std::int64_t place(std::string_view op, const F32& x, bool last) {
  return call({.op = op,
               .params = ArgParams{.axis = 0, .last = last},
               .inputs = {Literal::of(Shape{std::ssize(x)}, x)},
               .outputs = {{.dtype = DType::kI64, .shape = Shape{1}}}})[0]
      .values<std::int64_t>()[0];
}

OpCall top_k(const Shape& shape, const F32& x, const TopKParams& params) {
  Shape chosen = shape;
  chosen[params.axis] = params.count;
  return {.op = "TopK",
          .params = params,
          .inputs = {Literal::of(shape, x), Literal::of<std::int64_t>(Shape{}, {params.count})},
          .outputs = {{.dtype = DType::kF32, .shape = chosen},
                      {.dtype = DType::kI64, .shape = chosen}}};
}

I64 top_k_places(const F32& x, bool largest) {
  const auto count = std::ssize(x);
  const TopKParams params{.axis = 0, .count = count, .largest = largest};
  return call(top_k(Shape{count}, x, params))[1].values<std::int64_t>();
}

}  // namespace

TEST_CASE("order: the first or the last of equal elements") {
  CHECK(place("ArgMax", {1, 3, 3, 2}, false) == 1);
  CHECK(place("ArgMax", {1, 3, 3, 2}, true) == 2);
  CHECK(place("ArgMin", {2, 1, 3, 1}, false) == 1);
  CHECK(place("ArgMin", {2, 1, 3, 1}, true) == 3);
  CHECK(place("ArgMax", {-kInfinity, -kInfinity}, false) == 0);
}

TEST_CASE("order: the place of a NaN is that of the largest and of the smallest element") {
  for (std::string_view op : {"ArgMax", "ArgMin"}) {
    CHECK(place(op, {1, kNaN, 3, kNaN, kInfinity}, false) == 1);
    CHECK(place(op, {1, kNaN, 3, kNaN, kInfinity}, true) == 3);
    CHECK(place(op, {kNaN, -kInfinity}, false) == 0);
  }
}

TEST_CASE("order: TopK is stable and takes a NaN for the largest") {
  CHECK(top_k_places({1, 3, 3, 2, 3}, true) == I64{1, 2, 4, 3, 0});
  CHECK(top_k_places({1, 3, 3, 2, 1}, false) == I64{0, 4, 3, 1, 2});
  CHECK(top_k_places({1, kNaN, kInfinity, kNaN}, true) == I64{1, 3, 2, 0});
  CHECK(top_k_places({1, kNaN, -kInfinity}, false) == I64{2, 0, 1});
}

TEST_CASE("order: TopK along a middle axis, the same for any number of threads") {
  const Shape shape{7, 40, 9};
  F32 x;
  for (std::uint64_t i = 0; i < 7 * 40 * 9; ++i) {
    x.push_back(static_cast<float>(random_below(5, 6, i, 30)));
  }
  OpCall c = top_k(shape, x, {.axis = 1, .count = 12});
  const std::vector<Literal> one = call(c);
  const F32 values = one[0].values<float>();
  const I64 places = one[1].values<std::int64_t>();
  for (std::size_t outer = 0; outer < 7; ++outer) {
    for (std::size_t k = 0; k + 1 < 12; ++k) {
      for (std::size_t inner = 0; inner < 9; ++inner) {
        const std::size_t at = (outer * 12 + k) * 9 + inner;
        const auto from = static_cast<std::size_t>(places[at]);
        CHECK(values[at] == x[(outer * 40 + from) * 9 + inner]);
        CHECK((values[at] > values[at + 9] ||
               (values[at] == values[at + 9] && places[at] < places[at + 9])));
      }
    }
  }
  for (int threads : {2, 3, 5}) {
    c.threads = threads;
    const std::vector<Literal> some = call(c);
    CHECK(some[0].bytes == one[0].bytes);
    CHECK(some[1].bytes == one[1].bytes);
  }
}

}  // namespace trainscope::cpu
