// Tests of the lower bound.
#include "memplan/bounds.h"

#include <doctest/doctest.h>

namespace trainscope::memplan {
namespace {

TEST_CASE("bounds: the most bytes alive at once, ends exclusive") {
  CHECK(lower_bound_bytes({}) == 0);
  const Problem problem{.buffers = {{.lower = 0, .upper = 3, .size_bytes = 4},
                                    {.lower = 3, .upper = 9, .size_bytes = 4},
                                    {.lower = 0, .upper = 9, .size_bytes = 4},
                                    {.lower = 9, .upper = 21, .size_bytes = 4},
                                    {.lower = 0, .upper = 21, .size_bytes = 4}},
                        .alignment_bytes = 1};
  CHECK(lower_bound_bytes(problem) == 12);
}

TEST_CASE("bounds: sizes count in whole alignment units") {
  const Problem problem{.buffers = {{.lower = 0, .upper = 2, .size_bytes = 65},
                                    {.lower = 1, .upper = 2, .size_bytes = 1}}};
  CHECK(lower_bound_bytes(problem) == 192);
}

TEST_CASE("bounds: a fixed buffer's end is a bound too") {
  const Problem problem{
      .buffers = {{.lower = 0, .upper = 2, .size_bytes = 65, .fixed_offset = 640}}};
  CHECK(lower_bound_bytes(problem) == 768);
}

}  // namespace
}  // namespace trainscope::memplan
