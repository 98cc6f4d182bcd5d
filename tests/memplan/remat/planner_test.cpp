// Tests of the planner: against every schedule of tiny graphs, and by replay on larger ones.
#include "memplan/remat/planner.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "memplan/remat/baselines.h"
#include "memplan/remat/certificate.h"
#include "memplan/remat/graph.h"
#include "tests/memplan/remat/problems.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;

std::int64_t save_all_bytes(const RematProblem& problem) {
  return simulate(problem, save_all_plan(problem)).peak_bytes;
}

// Plans for the budget; whatever comes out must replay and keep its own promises.
RematResult plan_checked(const RematProblem& problem, const RematOptions& options) {
  const int64_t budget_bytes = options.budget_bytes;
  RematResult result = plan_remat(problem, options);
  CHECK(result.least_bytes <= result.workable_bytes);
  if (result.status != RematStatus::kPlanned) {
    CHECK_FALSE(result.message.empty());
    CHECK(result.plan.actions.empty());
    return result;
  }
  const RematReplay replay = simulate(problem, result.plan);
  REQUIRE(replay.message == "");
  CHECK(replay.peak_bytes == result.peak_bytes);
  CHECK(replay.time == result.time);
  CHECK(result.peak_bytes <= budget_bytes);
  CHECK(result.lower_bound_time >= result.base_time);
  CHECK(result.lower_bound_time <= result.time);
  CHECK(result.proven == (result.lower_bound_time == result.time));
  return result;
}

RematResult plan_checked(const RematProblem& problem, int64_t budget_bytes) {
  return plan_checked(problem, {.budget_bytes = budget_bytes});
}

struct Tally {
  int budgets = 0;
  int optimal = 0;
  int bounds = 0;  // lower bounds above the time without recompute
};

// Budgets from below the least to the peak evenly, `count` and one more, against the optimum: by
// the search, and by the planner as it is.
void compare(const RematProblem& problem, int count, Tally& tally) {
  const int64_t peak = save_all_bytes(problem);
  const int64_t least = least_budget(RematGraph(problem)).bytes;
  for (int i = 0; i <= count; ++i) {
    const int64_t budget = least - 1 + (peak - least + 1) * i / count;
    const std::optional<int64_t> optimum = testing::optimal_time(problem, budget);
    const RematResult result =
        plan_checked(problem, {.budget_bytes = budget, .most_exact_states = 0});
    const RematResult whole = plan_checked(problem, budget);
    if (result.status == RematStatus::kInfeasible) CHECK_FALSE(optimum);
    if (!optimum) {
      CHECK(result.status != RematStatus::kPlanned);
      CHECK(whole.status != RematStatus::kPlanned);
      continue;
    }
    ++tally.budgets;
    CHECK(whole.time == *optimum);
    if (result.status != RematStatus::kPlanned) continue;
    CHECK(result.time >= *optimum);
    CHECK(result.lower_bound_time <= *optimum);
    tally.optimal += result.time == *optimum ? 1 : 0;
    tally.bounds += result.lower_bound_time > result.base_time ? 1 : 0;
  }
}

TEST_CASE("remat planner: chains of up to 8 nodes are solved to the optimum") {
  Tally tally;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    compare(testing::chain_step(2 + static_cast<int>(seed % 4), seed), 6, tally);
  }
  compare(testing::chain_step(7, 1), 3, tally);
  compare(testing::chain_step(8, 2), 2, tally);
  CHECK(tally.budgets > 40);
  CHECK(tally.optimal == tally.budgets);
  CHECK(tally.bounds > 4);
}

TEST_CASE("remat planner: random graphs of 10 nodes against the optimum") {
  Tally tally;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    compare(testing::random_graph(
                seed, {.nodes = 10, .banned = seed % 3 == 0, .workspace = seed % 2 == 0}),
            3, tally);
  }
  MESSAGE("optimal on " << tally.optimal << " of " << tally.budgets);
  CHECK(tally.budgets > 60);
  // Stages run in the problem's order; the optimum of a few tight ones does not.
  CHECK(tally.optimal * 100 >= tally.budgets * 97);
}

TEST_CASE("remat planner: random graphs and chains replay, and the bound is never above") {
  int planned = 0;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    for (const RematProblem& problem :
         {testing::chain_step(20, seed), testing::random_graph(seed, {.nodes = 60}),
          testing::random_graph(seed, {.nodes = 60, .banned = true, .workspace = true})}) {
      const int64_t peak = save_all_bytes(problem);
      int64_t time_with_less = std::numeric_limits<int64_t>::max();
      for (const int percent : {60, 80, 90, 100}) {
        const RematResult result = plan_checked(problem, peak * percent / 100);
        if (result.status != RematStatus::kPlanned) continue;
        ++planned;
        if (percent == 100) CHECK(result.proven);
        time_with_less = std::min(time_with_less, result.time);
      }
    }
  }
  CHECK(planned > 16);
}

TEST_CASE("remat planner: the same problem gives the same plan") {
  const RematProblem problem = testing::random_graph(5, {.nodes = 50});
  const int64_t budget = save_all_bytes(problem) * 85 / 100;
  CHECK(plan_remat(problem, {.budget_bytes = budget}).plan ==
        plan_remat(problem, {.budget_bytes = budget}).plan);
}

TEST_CASE("remat planner: never slower than another method's plan of the same bytes") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const RematProblem problem = testing::training_step(seed, {.nodes = 20});
    for (const RematBaseline& baseline : remat_baselines(RematGraph(problem))) {
      for (const FrontPoint& point : baseline.points) {
        const RematResult result = plan_checked(
            problem, {.budget_bytes = point.peak_bytes, .effort = RematEffort::kRepair});
        REQUIRE(result.status == RematStatus::kPlanned);
        CHECK(static_cast<double>(result.time) <= point.time);
        ++compared;
      }
    }
  }
  CHECK(compared > 15);
}

TEST_CASE("remat planner: a budget out of reach names the node and what would do") {
  const RematProblem problem{
      .nodes = {
          {.id = 0, .name = "a", .bytes = 40, .time = 1},
          {.id = 1, .name = "b", .bytes = 50, .time = 1, .inputs = {0}},
          {.id = 2, .name = "c", .bytes = 10, .time = 1, .workspace_bytes = 7, .inputs = {0, 1}}}};
  const RematResult result = plan_checked(problem, 100);
  CHECK(result.status == RematStatus::kInfeasible);
  CHECK(result.least_node == 2);
  CHECK(result.least_bytes == 107);
  CHECK(result.workable_bytes == 107);
  CHECK(result.message ==
        "no plan fits 100 bytes: node 2 ('c') alone needs 107 for its inputs, value and "
        "workspace; the least workable budget is 107");
  CHECK(plan_checked(problem, 107).status == RematStatus::kPlanned);
}

TEST_CASE("remat planner: bad problems and options are refused") {
  const RematProblem problem = testing::chain_step(3, 1);
  CHECK(plan_remat(problem, {.budget_bytes = -1}).message == "the budget must be 0 bytes or more");
  CHECK(plan_remat(problem, {.budget_bytes = 1, .seconds = -1}).message ==
        "the time limit must be 0 seconds or more");
  CHECK(plan_remat({.nodes = {{.inputs = {0}}}}, {}).status == RematStatus::kBadProblem);
  const RematResult nothing = plan_remat({}, {});
  CHECK(nothing.status == RematStatus::kPlanned);
  CHECK(nothing.proven);
}

TEST_CASE("remat planner: what must run once is held") {
  RematProblem problem = testing::chain_step(6, 3);
  for (RematNode& node : problem.nodes) node.may_rerun = false;
  const int64_t peak = save_all_bytes(problem);
  CHECK(plan_checked(problem, peak - 1).status == RematStatus::kInfeasible);
  CHECK(plan_checked(problem, peak).time == base_time(problem));
}

TEST_CASE("remat planner: asked to stop it throws, whatever it is asked for") {
  const RematProblem problem = testing::chain_step(30, 1);
  const int64_t budget = save_all_bytes(problem) * 9 / 10;
  std::stop_source stop;
  RematPlanner planner(problem, stop.get_token());
  CHECK(planner.plan({.budget_bytes = budget, .effort = RematEffort::kLookUp}).time > 0);
  stop.request_stop();
  CHECK_THROWS_AS(planner.plan({.budget_bytes = budget}), Stopped);
  RematPlanner other(problem, stop.get_token());
  CHECK_THROWS_AS(other.front(), Stopped);
  CHECK_THROWS_AS((void)least_time(RematGraph(problem, stop.get_token()), budget, 48), Stopped);
}

TEST_CASE("remat planner: no time still gives an answer") {
  const RematProblem problem = testing::chain_step(30, 1);
  const int64_t peak = save_all_bytes(problem);
  for (const RematEffort effort : {RematEffort::kSearch, RematEffort::kRepair}) {
    for (const int percent : {95, 90, 75, 50}) {
      CAPTURE(percent);
      const int64_t budget = peak / 100 * percent;
      const auto answer = [&](RematEffort with, double seconds) {
        return plan_remat(problem, {.budget_bytes = budget, .seconds = seconds, .effort = with});
      };
      const RematResult result = answer(effort, 0);
      const RematResult looked_up = answer(RematEffort::kLookUp, 1e9);
      REQUIRE(looked_up.status == RematStatus::kPlanned);  // the front has one that fits
      REQUIRE(result.status == RematStatus::kPlanned);
      CHECK(result.peak_bytes <= budget);
      CHECK(result.time <= looked_up.time);
    }
  }
}

}  // namespace
}  // namespace trainscope::memplan
