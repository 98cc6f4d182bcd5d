// Tests of vector clocks and of the lifetimes they give buffers.
#include "memplan/streams/clocks.h"

#include <doctest/doctest.h>

#include "tests/memplan/streams/problems.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;

TEST_CASE("clocks: a copy on a second stream, there and back") {
  // compute: 0 1 2 3, copy: 4; the copy waits for 1, and 3 waits for the copy.
  const StreamProblem problem{
      .operations = {{}, {}, {}, {.after = {4}}, {.stream = 1, .after = {1}}},
      .buffers = {{.size_bytes = 1, .producer = 1, .readers = {4}},
                  {.size_bytes = 1, .producer = 2},
                  {.size_bytes = 1, .producer = 3}}};
  const Clocks clocks = find_clocks(problem);
  CHECK(clocks.order == std::vector<int32_t>{0, 1, 2, 4, 3});
  CHECK(clocks.happens_before(problem, 1, 4));
  CHECK_FALSE(clocks.happens_before(problem, 2, 4));
  CHECK_FALSE(clocks.happens_before(problem, 4, 2));
  CHECK(clocks.happens_before(problem, 4, 3));
  const StreamLifetimes lifetimes = find_lifetimes(problem, clocks);
  CHECK(lifetimes.meet(0, 1));  // 2 may run while the copy still reads
  CHECK(lifetimes.before(0, 2));
  CHECK_FALSE(lifetimes.before(2, 0));
  CHECK(lifetimes.before(1, 2));
}

TEST_CASE("clocks: what happens before is what dependencies lead to") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const StreamProblem problem = testing::random_stream_problem(
        seed,
        {.streams = 1 + static_cast<int>(seed % 4), .operations = 2 + static_cast<int>(seed % 23)});
    const testing::Relation reach = testing::reachability(problem);
    const Clocks clocks = find_clocks(problem);
    const StreamLifetimes lifetimes = find_lifetimes(problem, clocks);
    REQUIRE(clocks.order.size() == problem.operations.size());
    for (size_t i = 0; i < reach.size(); ++i) {
      for (size_t j = 0; j < reach.size(); ++j) {
        const bool before =
            clocks.happens_before(problem, static_cast<int32_t>(i), static_cast<int32_t>(j));
        CHECK(before == (reach[i][j] != 0));
      }
    }
    for (size_t a = 0; a < problem.buffers.size(); ++a) {
      for (size_t b = 0; b < problem.buffers.size(); ++b) {
        if (a != b) CHECK(lifetimes.before(a, b) == testing::over_before(problem, reach, a, b));
      }
    }
  }
}

TEST_CASE("clocks: a circle leaves operations out of the order") {
  const StreamProblem problem{
      .operations = {{}, {.after = {2}}, {.stream = 1, .after = {1}}, {.stream = 2}}};
  CHECK(find_clocks(problem).order == std::vector<int32_t>{0, 3});
}

}  // namespace
}  // namespace trainscope::memplan
