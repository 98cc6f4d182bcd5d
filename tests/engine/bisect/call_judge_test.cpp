// Limits of results: what the reference kernel's own error allows, and what is no number.
#include "engine/bisect/call_judge.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/graph_text.h"

namespace trainscope::test {

TEST_CASE("judged result: within 16 times the rounding of its type") {
  const Tensor plain = floats({2}, {3, 4});
  const Tensor exact = convert(plain, DType::kF64);
  const float unit = 5.0F * 0x1p-23F;  // of the norm
  const JudgedResult near = judged_result(floats({2}, {3, 4 + 8 * unit}), plain, &exact);
  CHECK(near.limit == doctest::Approx(16 * 0x1p-23));
  CHECK(near.error == doctest::Approx(8 * 0x1p-23));
  CHECK_FALSE(near.is_fault());
  CHECK(judged_result(floats({2}, {3, 4 + 40 * unit}), plain, &exact).is_fault());
}

TEST_CASE("judged result: an inexact reference kernel widens the limit") {
  Tensor exact = convert(floats({2}, {3, 4}), DType::kF64);
  const Tensor plain = floats({2}, {3, 4.001F});
  CHECK_FALSE(judged_result(floats({2}, {3, 4.01F}), plain, &exact).is_fault());
  CHECK(judged_result(floats({2}, {3, 4.1F}), plain, &exact).is_fault());
}

TEST_CASE("judged result: NaN on one side, and integers that are not equal") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor plain = floats({2}, {1, 2});
  const JudgedResult one_side = judged_result(floats({2}, {1, nan}), plain, nullptr);
  CHECK(std::isinf(one_side.error));
  CHECK(one_side.is_fault());
  CHECK_FALSE(judged_result(floats({2}, {1, nan}), floats({2}, {1, nan}), nullptr).is_fault());
  const Tensor three = Tensor::scalar<std::int64_t>(3);
  CHECK_FALSE(judged_result(three, three, nullptr).is_fault());
  CHECK(judged_result(Tensor::scalar<std::int64_t>(4), three, nullptr).is_fault());
}

}  // namespace trainscope::test
