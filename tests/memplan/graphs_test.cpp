// Tests of placements of whole training steps with branches and recomputation.
#include "tests/memplan/graphs.h"

#include <doctest/doctest.h>

#include "memplan/bounds.h"
#include "memplan/solution.h"
#include "memplan/validate.h"

namespace trainscope::memplan {
namespace {

double checked_gap(const Problem& problem, const Options& options) {
  const Result result = solve(problem, options);
  REQUIRE(result.status == Status::kPlaced);
  for (const Violation& violation : validate(problem, result.solution)) {
    FAIL_CHECK(violation.message);
  }
  return static_cast<double>(result.solution.height_bytes) /
             static_cast<double>(lower_bound_bytes(problem)) -
         1;
}

TEST_CASE("graphs: forgotten values are recomputed, for a lower peak") {
  const Problem saved = testing::gpt_problem(4, 0);
  const Problem forgotten = testing::gpt_problem(4, testing::kGptPlans);
  CHECK(forgotten.buffers.size() > saved.buffers.size());
  CHECK(lower_bound_bytes(forgotten) < lower_bound_bytes(saved) / 2);
}

TEST_CASE("graphs: GPT at all degrees of recomputation meets the bound") {
  int at_bound = 0;
  for (int forgotten = 0; forgotten < testing::kGptPlans; ++forgotten) {
    at_bound += checked_gap(testing::gpt_problem(12, forgotten), {}) == 0 ? 1 : 0;
  }
  CHECK(at_bound >= 99);
}

TEST_CASE("graphs: networks with residual branches are within 1 % of the bound") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed ", seed);
    CHECK(checked_gap(testing::branching_problem(1000, seed), {.most_visits = 0}) <= 0.01);
  }
  CHECK(checked_gap(testing::branching_problem(30'000, 1), {.method = "event_order"}) <= 0.01);
}

}  // namespace
}  // namespace trainscope::memplan
