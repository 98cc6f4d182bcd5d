// The planner's thread: the newest request wins, and nobody waits for it.
#include "gui/budget/budget_planner.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "engine/bundle/plan_json.h"
#include "engine/core/error.h"
#include "gui/budget/budget_view.h"
#include "gui/budget/train_on.h"
#include "tests/gui/budget/budget_tools.h"

namespace trainscope::gui::test {
namespace {

using trainscope::test::is_busy;
using trainscope::test::places_of;
using trainscope::test::recorded_run;
using trainscope::test::TemporaryFolder;
using trainscope::test::wait_for;
using trainscope::test::wait_until;

PlanRequest budget(std::int64_t bytes) {
  return {.level = PlanLevel::kAuto, .budget_bytes = bytes};
}

}  // namespace

TEST_SUITE_BEGIN("gui");

TEST_CASE("budget planner: of many requests the newest is answered, as the step planner does") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  BudgetPlanner planner([&] { return planned_step(run); });
  wait_for(planner);
  const auto opened = planner.state();
  REQUIRE(opened->phase == BudgetState::Phase::kReady);
  REQUIRE(opened->front != nullptr);
  const std::int64_t plain = opened->front->front().arena_bytes;
  const std::int64_t least = opened->front->back().arena_bytes;
  CHECK(opened->plain->map.arena_bytes == plain);
  std::uint64_t last = 0;
  for (std::int64_t i = 0; i <= 200; ++i) {
    last = planner.ask(budget(least + (plain - least) * (200 - i) / 200));
  }
  CHECK(last == 201);
  wait_for(planner);
  const auto state = planner.state();
  CHECK_FALSE(state->planning);
  CHECK(state->asked == last);
  REQUIRE(state->answer != nullptr);
  CHECK(state->answer->id == last);
  CHECK_FALSE(state->answer->outcome.draft);
  CHECK(state->answer->outcome.request == budget(least));
  REQUIRE(state->point.has_value());
  CHECK(state->point->arena_bytes <= least);
  const StepPlanner alone(planned_step(run), {});
  CHECK(places_of(view_of(*state->answer->outcome.record)) ==
        places_of(view_of(*alone.plan(budget(least), {}).record)));
}

TEST_CASE("budget planner: an answer has all that a frame draws of it") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  BudgetPlanner planner([&] { return planned_step(run); });
  wait_for(planner);
  const auto opened = planner.state();
  REQUIRE(opened->front != nullptr);
  planner.ask(budget(opened->front->back().arena_bytes));
  wait_for(planner);
  const auto state = planner.state();
  REQUIRE(state->pinnable != nullptr);
  for (const auto& answer : {state->plain, state->answer}) {
    REQUIRE(answer != nullptr);
    REQUIRE(answer->outcome.record != nullptr);
    const PlanView plan = answer->plan();
    CHECK(answer->map.arena_bytes == plan.arena().bytes);
    CHECK(answer->facts == plan_sizes(plan));
    const std::vector<std::uint32_t> originals = original_values(plan);
    REQUIRE(answer->pinnable.size() == answer->map.rectangles.size());
    std::size_t named = 0;
    for (std::size_t i = 0; i < answer->pinnable.size(); ++i) {
      const std::uint32_t buffer = answer->map.rectangles[i].buffer;
      CHECK(answer->pinnable[i] == state->pinnable->value_of(plan, originals, buffer));
      named += answer->pinnable[i].empty() ? 0 : 1;
    }
    CHECK(named > 0);
    CHECK(named < answer->pinnable.size());
  }
}

TEST_CASE("budget planner: the point of a budget is there when it is asked for, then bettered" *
          doctest::test_suite("long")) {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  BudgetPlanner planner([&] { return planned_step(run); });
  planner.ask({.level = PlanLevel::kNone});
  wait_for(planner);
  const auto front = planner.state()->front;
  REQUIRE(front->size() > 2);
  CHECK_FALSE(planner.state()->point.has_value());
  for (std::size_t i = 0; i < front->size(); i += front->size() / 3) {
    const std::int64_t bytes = (*front)[i].arena_bytes + 1;
    const std::uint64_t id = planner.ask(budget(bytes));
    const auto asked = planner.state();
    REQUIRE(asked->point.has_value());
    CHECK(asked->point->arena_bytes <= bytes);
    CHECK(asked->point->seconds <= quickest_within(*front, bytes)->seconds);
    wait_for(planner);
    CHECK(planner.state()->searched == id);
    CHECK(planner.state()->point->seconds <= asked->point->seconds);
  }
  planner.ask(budget(front->back().arena_bytes - 1));
  CHECK_FALSE(planner.state()->point.has_value());
}

TEST_CASE("budget planner: the plan before is kept to be held against the new one") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  BudgetPlanner planner([&] { return planned_step(run); });
  planner.ask({.level = PlanLevel::kNone});
  wait_for(planner);
  CHECK(planner.state()->before == nullptr);
  planner.ask({.level = PlanLevel::kLevel1});
  wait_for(planner);
  const auto state = planner.state();
  REQUIRE(state->before != nullptr);
  CHECK(state->before->outcome.request.level == PlanLevel::kNone);
  CHECK(state->answer->outcome.request.level == PlanLevel::kLevel1);
}

TEST_CASE("budget planner: pins change the front, those that cannot be kept to are a fault") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  BudgetPlanner planner([&] { return planned_step(run); });
  wait_for(planner);
  CHECK(planner.state()->front->size() > 3);
  planner.ask({.level = PlanLevel::kLevel1, .keep = {"*"}});
  wait_for(planner);
  CHECK(planner.state()->front->size() == 1);
  planner.ask({.level = PlanLevel::kLevel1, .keep = {"no such value"}});
  wait_for(planner);
  CHECK(planner.state()->answer->outcome.record == nullptr);
  CHECK_FALSE(planner.state()->answer->outcome.fault.empty());
  planner.ask({.level = PlanLevel::kLevel1});
  wait_for(planner);
  CHECK(planner.state()->front->size() > 3);
  CHECK(planner.state()->answer->outcome.record != nullptr);
}

TEST_CASE("budget planner: what cannot be opened is said") {
  BudgetPlanner refused(
      []() -> PlannedStep { throw Error(ErrorCode::kBadInput, "no stages").hint("train it"); });
  wait_for(refused);
  CHECK(refused.state()->phase == BudgetState::Phase::kFailed);
  CHECK(refused.state()->now == "no stages");
  CHECK(refused.state()->hint == "train it");
  refused.ask({.level = PlanLevel::kLevel1});
  wait_for(refused);
  CHECK(refused.state()->phase == BudgetState::Phase::kFailed);
  CHECK_FALSE(refused.state()->planning);
}

TEST_CASE("budget planner: it may go away at any time" * doctest::test_suite("long")) {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  for (int moment = 0; moment < 20; ++moment) {
    BudgetPlanner planner([&] { return planned_step(run); });
    if (moment % 2 == 0) wait_for(planner);
    for (int k = 0; k < moment % 4; ++k) planner.ask(budget(110'000 + 1000 * k));
    // After so many changes of its state, or when there are no more.
    int changes = 0;
    auto seen = planner.state();
    REQUIRE(wait_until([&] {
      const auto now = planner.state();
      if (now != seen) ++changes;
      seen = now;
      return changes >= moment / 4 || !is_busy(planner);
    }));
  }
}

TEST_SUITE_END();

}  // namespace trainscope::gui::test
