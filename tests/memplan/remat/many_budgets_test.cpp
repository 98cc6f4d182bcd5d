// Tests of one planner asked for many budgets, as a slider does.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "memplan/remat/node_set.h"
#include "memplan/remat/planner.h"
#include "memplan/remat/random.h"
#include "memplan/remat/retention.h"
#include "memplan/remat/seeds.h"
#include "tests/memplan/remat/problems.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

struct Answer {
  int64_t budget = 0;
  int64_t time = 0;
};

constexpr int kBudgets = 200;

// `kBudgets` budgets from below the least of the front to above the peak.
std::vector<int64_t> budgets_of(RematPlanner& planner) {
  const int64_t least = planner.front().points().back().peak_bytes;
  const int64_t most = planner.front().points().front().peak_bytes;
  std::vector<int64_t> budgets;
  for (int i = 0; i < kBudgets; ++i) {
    budgets.push_back(least + (most - least + 1) * (i - 5) / (kBudgets - 10));
  }
  return budgets;
}

void shuffle(std::vector<int64_t>& budgets, std::uint64_t seed) {
  Random random(seed);
  for (size_t i = budgets.size(); i-- > 1;) {
    std::swap(budgets[i], budgets[static_cast<size_t>(random.between(0, static_cast<int32_t>(i)))]);
  }
}

// Asks in this order and checks what each answer promises.
std::vector<Answer> ask(const RematProblem& problem, RematPlanner& planner,
                        const std::vector<int64_t>& budgets, RematEffort effort) {
  std::vector<Answer> answers;
  for (const int64_t budget : budgets) {
    const RematResult result =
        planner.plan({.budget_bytes = std::max<int64_t>(0, budget), .effort = effort});
    if (result.status != RematStatus::kPlanned) {
      CHECK(result.workable_bytes > budget);
      continue;
    }
    const RematReplay replay = simulate(problem, result.plan);
    REQUIRE(replay.message == "");
    CHECK(replay.peak_bytes <= budget);
    CHECK(replay.time == result.time);
    CHECK(result.lower_bound_time <= result.time);
    answers.push_back({budget, result.time});
  }
  return answers;
}

bool monotone(std::vector<Answer> answers) {
  std::sort(answers.begin(), answers.end(),
            [](const Answer& a, const Answer& b) { return a.budget < b.budget; });
  return std::is_sorted(answers.begin(), answers.end(),
                        [](const Answer& a, const Answer& b) { return a.time > b.time; });
}

std::vector<RematProblem> some_problems() {
  return {testing::chain_step(30, 1), testing::transformer_step({.layers = 3}),
          testing::training_step(2, {.nodes = 40, .banned = true, .workspace = true}),
          testing::random_graph(3, {.nodes = 60})};
}

TEST_CASE("remat planner: look-ups are monotone in any order of 200 budgets") {
  for (const RematProblem& problem : some_problems()) {
    RematPlanner planner(problem);
    std::vector<int64_t> budgets = budgets_of(planner);
    shuffle(budgets, 4);
    const std::vector<Answer> answers = ask(problem, planner, budgets, RematEffort::kLookUp);
    CHECK(answers.size() > kBudgets / 2);
    CHECK(monotone(answers));
  }
}

TEST_CASE("remat planner: what was found for one budget counts for all others") {
  for (const RematProblem& problem : some_problems()) {
    RematPlanner planner(problem);
    std::vector<int64_t> budgets = budgets_of(planner);
    const std::vector<Answer> front = ask(problem, planner, budgets, RematEffort::kLookUp);
    const std::vector<Answer> rising = ask(problem, planner, budgets, RematEffort::kRepair);
    CHECK(monotone(rising));
    shuffle(budgets, 5);
    ask(problem, planner, {budgets.begin(), budgets.begin() + 4}, RematEffort::kSearch);
    std::sort(budgets.begin(), budgets.end());
    const std::vector<Answer> known = ask(problem, planner, budgets, RematEffort::kLookUp);
    CHECK(monotone(known));
    REQUIRE(known.size() >= rising.size());
    REQUIRE(rising.size() >= front.size());
    const size_t more = rising.size() - front.size();
    const size_t more_known = known.size() - rising.size();
    for (size_t i = 0; i < rising.size(); ++i) {
      CHECK(known[i + more_known].time <= rising[i].time);
      if (i >= more) CHECK(rising[i].time <= front[i - more].time);
    }
  }
}

TEST_CASE("remat planner: a look-up in a transformer of 24 layers takes milliseconds") {
  const RematProblem problem = testing::transformer_step({});
  RematPlanner planner(problem);
  const std::vector<int64_t> budgets = budgets_of(planner);
  const auto start = std::chrono::steady_clock::now();
  CHECK(monotone(ask(problem, planner, budgets, RematEffort::kLookUp)));
  const double milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  MESSAGE((milliseconds / kBudgets) << " ms a look-up with its replays");
}

TEST_CASE("remat planner: greedy repair of a transformer's front comes close to the certificate") {
  for (const std::int64_t layers : {12, 24}) {
    const RematProblem problem = testing::transformer_step({.layers = layers});
    RematPlanner planner(problem);
    const int64_t peak = planner.front().points().front().peak_bytes;
    for (const int percent : {90, 70, 50, 30}) {
      const RematResult result =
          planner.plan({.budget_bytes = peak / 100 * percent, .effort = RematEffort::kRepair});
      REQUIRE(result.status == RematStatus::kPlanned);
      CHECK(static_cast<double>(result.time - result.lower_bound_time) <=
            0.003 * static_cast<double>(result.base_time));
    }
  }
}

TEST_CASE("remat planner: a budget out of reach is told once and for all") {
  const RematProblem problem = testing::chain_step(12, 3);
  RematPlanner planner(problem);
  const RematResult first = planner.plan({.budget_bytes = 1});
  CHECK(first.status == RematStatus::kInfeasible);
  CHECK(planner.plan({.budget_bytes = 1}).workable_bytes == first.workable_bytes);
  const RematResult planned = planner.plan({.budget_bytes = first.workable_bytes});
  CHECK(planned.status == RematStatus::kPlanned);
  CHECK(planner.plan({.budget_bytes = -1}).status == RematStatus::kBadProblem);
}

TEST_CASE("seeds: the holds of a plan give that plan back") {
  for (const RematProblem& problem : some_problems()) {
    const RematGraph graph(problem);
    RematPlanner planner(problem);
    for (size_t i = 0; i < planner.front().points().size(); i += 7) {
      Retention state(graph, 0);
      state.load(planner.front().holds(graph, i));
      const RematPlan plan = state.plan();
      state.load(holds_of(graph, plan));
      CHECK(state.plan() == plan);
    }
    Retention state(graph, 0);
    state.load(holds_of(graph, save_all_plan(problem)));
    CHECK(simulate(problem, state.plan()).time == base_time(problem));
  }
}

TEST_CASE("node set: gives back what went in, in order") {
  Random random(9);
  constexpr int32_t kNodes = 5000;
  NodeSet set(kNodes);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> nodes;
    const int32_t reach = round % 2 == 0 ? kNodes - 1 : 100;
    for (int i = 0; i < round % 17; ++i) {
      const int32_t node = random.between(0, reach);
      const bool known = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
      CHECK(set.insert(node) == !known);
      if (!known) nodes.push_back(node);
    }
    std::vector<int32_t> sorted = nodes;
    std::sort(sorted.begin(), sorted.end());
    set.take_in_order(nodes);
    CHECK(nodes == sorted);
  }
}

}  // namespace
}  // namespace trainscope::memplan
