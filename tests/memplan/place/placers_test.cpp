// Every method of placers.def, one by one: valid, bounded by the optimum, timed.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

#include "memplan/bounds.h"
#include "memplan/solution.h"
#include "memplan/validate.h"
#include "tests/memplan/problems.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;

Solution place_checked(const Problem& problem, std::string_view method) {
  Result result = solve(problem, {.method = method});
  REQUIRE(result.status == Status::kPlaced);
  for (const Violation& violation : validate(problem, result.solution)) {
    FAIL_CHECK(method << ": " << violation.message);
  }
  return result.solution;
}

// The true optimum: in some order, each buffer on top of all earlier ones it is alive with.
// (Take an optimal placement in order of offset: no buffer ever ends up higher than it was.)
int64_t optimum_bytes(const Problem& problem) {
  std::vector<size_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t best = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> ends(order.size());
  do {
    int64_t height = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Buffer& buffer = problem.buffers[order[i]];
      int64_t offset = 0;
      for (size_t j = 0; j < i; ++j) {
        const Buffer& earlier = problem.buffers[order[j]];
        const bool meet = buffer.lower < earlier.upper && earlier.lower < buffer.upper;
        if (meet) offset = std::max(offset, ends[order[j]]);
      }
      ends[order[i]] = offset + occupied_bytes(problem, buffer);
      height = std::max(height, ends[order[i]]);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST_CASE("placers: names are unique and event order comes first") {
  const auto names = placer_names();
  CHECK(names.size() >= 2);
  CHECK(names.front() == "event_order");
  for (size_t i = 0; i < names.size(); ++i) {
    CHECK(std::count(names.begin(), names.end(), names[i]) == 1);
  }
}

TEST_CASE("placers: against the optimum by brute force") {
  constexpr std::uint64_t kProblems = 250;
  std::vector<int> optimal(placer_names().size(), 0);
  int optimal_together = 0;
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    const Problem problem = testing::random_problem(
        seed, {.buffers = 3 + static_cast<int>(seed % 5), .times = 8, .largest_bytes = 9});
    const int64_t optimum = optimum_bytes(problem);
    CHECK(optimum >= lower_bound_bytes(problem));
    int64_t best = std::numeric_limits<int64_t>::max();
    for (size_t m = 0; m < optimal.size(); ++m) {
      const int64_t height = place_checked(problem, placer_names()[m]).height_bytes;
      CHECK(height >= optimum);
      optimal[m] += height == optimum ? 1 : 0;
      best = std::min(best, height);
    }
    const Solution solution = solve(problem).solution;
    CHECK(solution.height_bytes == optimum);
    CHECK(solution.lower_bound_bytes == optimum);
    CHECK(solution.proven);
    optimal_together += best == optimum ? 1 : 0;
  }
  for (size_t m = 0; m < optimal.size(); ++m) {
    MESSAGE(placer_names()[m] << ": optimal on " << optimal[m] << " of " << kProblems);
    CHECK(optimal[m] > static_cast<int>(kProblems) / 2);
  }
  MESSAGE("together: optimal on " << optimal_together << " of " << kProblems);
  CHECK(optimal_together >= static_cast<int>(kProblems) * 95 / 100);
}

TEST_CASE("placers: random problems with fixed offsets and strict alignments") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Problem problem = testing::random_problem_with_fixed(
        seed, {.buffers = 60, .times = 40, .alignment_bytes = seed % 2 == 0 ? 1 : 64});
    for (const std::string_view method : placer_names()) {
      const Solution solution = place_checked(problem, method);
      CHECK(solution.height_bytes >= lower_bound_bytes(problem));
      CHECK(place_checked(problem, method).offsets == solution.offsets);
    }
  }
}

TEST_CASE("placers: height and time on training steps") {
  const Problem problem = testing::training_problem(96, 0);
  const double bound = static_cast<double>(lower_bound_bytes(problem));
  for (const std::string_view method : placer_names()) {
    const Solution solution = place_checked(problem, method);
    const double ratio = static_cast<double>(solution.height_bytes) / bound;
    const double milliseconds = std::chrono::duration<double, std::milli>(solution.elapsed).count();
    MESSAGE(method << ": " << problem.buffers.size() << " buffers, height / bound " << ratio << ", "
                   << milliseconds << " ms");
    CHECK(ratio < 1.15);
  }
}

TEST_CASE("placers: 76,000 buffers within 1 % of the bound in one pass each way") {
  const Problem problem = testing::training_problem(2000, 2);
  const double bound = static_cast<double>(lower_bound_bytes(problem));
  for (const std::string_view method : {"event_order", "event_order_reversed"}) {
    const Solution solution = place_checked(problem, method);
    CHECK(static_cast<double>(solution.height_bytes) / bound <= 1.01);
    MESSAGE(method << ": " << std::chrono::duration<double, std::milli>(solution.elapsed).count()
                   << " ms");
  }
}

}  // namespace
}  // namespace trainscope::memplan
