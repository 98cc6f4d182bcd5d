// Sums and products at the largest number.
#include "engine/core/saturating.h"

#include <doctest/doctest.h>

namespace trainscope {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST_CASE("saturating: exact up to the largest number, which nothing passes") {
  CHECK(saturating_add(2, 3) == 5);
  CHECK(saturating_add(kMost - 3, 3) == kMost);
  CHECK(saturating_add(kMost - 3, 4) == kMost);
  CHECK(saturating_add(kMost, kMost) == kMost);
  CHECK(saturating_multiply(6, 7) == 42);
  CHECK(saturating_multiply(std::int64_t{1} << 31, std::int64_t{1} << 31) == std::int64_t{1} << 62);
  CHECK(saturating_multiply(std::int64_t{1} << 32, std::int64_t{1} << 31) == kMost);
  CHECK(saturating_multiply(kMost, 0) == 0);
  std::int64_t sum = kMost - 1;
  add_saturating(sum, 5);
  CHECK(sum == kMost);
}

}  // namespace
}  // namespace trainscope
