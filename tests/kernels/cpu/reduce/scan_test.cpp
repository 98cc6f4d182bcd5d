// Running sums: directions, precision, threads.
#include <doctest/doctest.h>

#include <cstdint>

#include "kernels/api/random.h"
#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

using F32 = std::vector<float>;

OpCall cumsum(const Shape& shape, const F32& x, const ScanParams& params) {
  return {.op = "CumSum",
          .params = params,
          .inputs = {Literal::of(shape, x), Literal::of<std::int64_t>(Shape{}, {params.axis})},
          .outputs = {{.dtype = DType::kF32, .shape = shape}}};
}

F32 sums(const Shape& shape, const F32& x, const ScanParams& params) {
  return call(cumsum(shape, x, params))[0].values<float>();
}

}  // namespace

TEST_CASE("scan: forwards, backwards, with and without the element itself") {
  const F32 x{1, 2, 3, 4};
  CHECK(sums({4}, x, {}) == F32{1, 3, 6, 10});
  CHECK(sums({4}, x, {.exclusive = true}) == F32{0, 1, 3, 6});
  CHECK(sums({4}, x, {.reverse = true}) == F32{10, 9, 7, 4});
  CHECK(sums({4}, x, {.exclusive = true, .reverse = true}) == F32{9, 7, 4, 0});
  CHECK(sums({2, 2}, x, {.axis = 0}) == F32{1, 2, 4, 6});
  CHECK(sums({2, 2}, x, {.axis = 1, .reverse = true}) == F32{3, 2, 7, 4});
}

TEST_CASE("scan: a long float sum keeps small terms") {
  F32 x(1 << 16, 0x1p-12F);
  x[0] = 0x1p15F;  // adding a term to it in float would be lost in rounding
  const F32 y = sums({1 << 16}, x, {});
  CHECK(y.back() == static_cast<float>(0x1p15 + 0x1p4 - 0x1p-12));
}

TEST_CASE("scan: the bits do not depend on the number of threads") {
  const Shape shape{5, 90, 333};
  F32 x;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    x.push_back(static_cast<float>(random_normal(3, 9, static_cast<std::uint64_t>(i))));
  }
  for (int axis : {0, 1, 2}) {
    OpCall c = cumsum(shape, x, {.axis = axis});
    const std::vector<std::byte> expected = call(c)[0].bytes;
    for (int threads : {2, 3, 5}) {
      c.threads = threads;
      CHECK(call(c)[0].bytes == expected);
    }
  }
}

}  // namespace trainscope::cpu
