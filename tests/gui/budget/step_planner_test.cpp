// Plans of a recorded step against those of the command line and of the run itself.
#include "gui/budget/step_planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/bundle/plan_json.h"
#include "engine/core/progress.h"
#include "gui/budget/train_on.h"
#include "tests/gui/budget/budget_tools.h"

namespace trainscope::gui::test {
namespace {

using trainscope::test::places_of;
using trainscope::test::recorded_run;
using trainscope::test::TemporaryFolder;

// What `plan RUN` prints with the request's flags.
Json printed_plan(const TemporaryFolder& folder, const RunReader& run, const PlanRequest& request) {
  std::vector<std::string> words = {"plan", (folder / "run").string(), "--json"};
  const std::vector<std::string> flags = plan_flags(request, write_pins(run, request));
  words.insert(words.end(), flags.begin(), flags.end());
  const trainscope::test::Finished finished = trainscope::test::run(words, {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

void check_same(const Json& printed, const PlanOutcome& outcome) {
  REQUIRE_MESSAGE(outcome.record != nullptr, outcome.fault);
  const Json facts = plan_sizes(view_of(*outcome.record));
  for (const JsonMember& fact : facts.as_object()) {
    CAPTURE(fact.key);
    CHECK(printed.at(fact.key) == fact.value);
  }
}

}  // namespace

TEST_SUITE_BEGIN("processes");

TEST_CASE("step planner: without recomputation the plan is the run's, place by place") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  const StepPlanner planner(planned_step(run), {});
  const PlanOutcome plain = planner.plain();
  const StoredPlan stored = run.plan().value();
  CHECK(places_of(view_of(*plain.record)) == places_of(stored.view()));
  CHECK(places_of(view_of(*planner.plan({}, {}).record)) == places_of(stored.view()));
}

TEST_CASE("step planner: every level, budget and pin is what `plan RUN` prints") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  StepPlanner planner(planned_step(run), {});
  const std::int64_t plain = view_of(*planner.plain().record).arena().bytes;
  const std::int64_t least = planner.front({}).back().arena_bytes;
  REQUIRE(least < plain);
  std::vector<PlanRequest> requests = {{.level = PlanLevel::kNone},
                                       {.level = PlanLevel::kLevel1},
                                       {.level = PlanLevel::kLevel2},
                                       {.level = PlanLevel::kNone, .recompute = {"*Gelu*"}},
                                       {.level = PlanLevel::kLevel1, .keep = {"*Gelu*"}}};
  for (const std::int64_t quarter : {0, 1, 2, 3, 4}) {
    requests.push_back(
        {.level = PlanLevel::kAuto, .budget_bytes = least + (plain - least) * quarter / 4});
  }
  for (const PlanRequest& request : requests) {
    CAPTURE(name_of(request.level));
    CAPTURE(request.budget_bytes);
    check_same(printed_plan(folder, run, request), planner.plan(request, {}));
  }
}

TEST_CASE("step planner: a draft fits, and the plan is no slower") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  StepPlanner planner(planned_step(run), {});
  const std::int64_t plain = view_of(*planner.plain().record).arena().bytes;
  const std::int64_t least = planner.front({}).back().arena_bytes;
  for (std::int64_t i = 0; i <= 8; ++i) {
    const PlanRequest request{.level = PlanLevel::kAuto,
                              .budget_bytes = least + (plain - least) * i / 8};
    const std::optional<TradePoint> point = planner.point(request);
    const std::optional<PlanOutcome> draft = planner.draft(request);
    REQUIRE(point.has_value());
    REQUIRE(draft.has_value());
    CHECK(draft->draft);
    CHECK(view_of(*draft->record).arena().bytes <= request.budget_bytes);
    CHECK(draft->seconds == point->seconds);
    const PlanOutcome plan = planner.plan(request, {});
    CHECK_FALSE(plan.draft);
    CHECK(plan.seconds <= draft->seconds * (1 + 1e-12));
    CHECK(plan.bound_seconds <= plan.seconds);
    CHECK(plan.bound_bytes == request.budget_bytes);
  }
}

TEST_CASE("step planner: what cannot be planned is said, with the least that can") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  StepPlanner planner(planned_step(run), {});
  PlanRequest request{.level = PlanLevel::kAuto, .budget_bytes = 1000};
  CHECK_FALSE(planner.point(request).has_value());
  CHECK_FALSE(planner.draft(request).has_value());
  const PlanOutcome refused = planner.plan(request, {});
  CHECK(refused.record == nullptr);
  CHECK(refused.fault.find("no plan was found for 1000 bytes") != std::string::npos);
  REQUIRE(refused.least_bytes > 1000);
  request.budget_bytes = refused.least_bytes;
  const PlanOutcome least = planner.plan(request, {});
  REQUIRE_MESSAGE(least.record != nullptr, least.fault);
  CHECK(view_of(*least.record).arena().bytes <= refused.least_bytes);
  const PlanOutcome nothing =
      planner.plan({.level = PlanLevel::kLevel1, .keep = {"no value has this name"}}, {});
  CHECK(nothing.fault.find("no value of the forward phase matches") != std::string::npos);
}

TEST_CASE("step planner: asked to stop, it stops") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  const StepPlanner planner(planned_step(run), {});
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(
      planner.plan({.level = PlanLevel::kAuto, .budget_bytes = 110'000}, stop.get_token()),
      Stopped);
  CHECK_THROWS_AS(StepPlanner(planned_step(run), {.stop = stop.get_token()}), Stopped);
}

TEST_SUITE_END();

}  // namespace trainscope::gui::test
