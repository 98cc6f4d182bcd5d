// The median of odd, even and no numbers.
#include "engine/core/median.h"

#include <doctest/doctest.h>

namespace trainscope {
namespace {

TEST_CASE("median: the middle one, or the mean of the two in the middle") {
  CHECK(median({3.0}) == 3.0);
  CHECK(median({9.0, 1.0, 2.0}) == 2.0);
  CHECK(median({9.0, 1.0, 2.0, 4.0}) == 3.0);
  CHECK(median({7.0, 7.0, 1.0, 7.0, 9.0, 0.0}) == 7.0);
  CHECK(median({}) == 0.0);
}

}  // namespace
}  // namespace trainscope
