// The budget's curve, slider and pins as numbers.
#include "gui/budget/budget_view.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"

namespace trainscope::gui::test {
namespace {

const std::vector<TradePoint> kFront = {{.method = "front", .arena_bytes = 1000, .seconds = 2.0},
                                        {.method = "front", .arena_bytes = 800, .seconds = 2.2},
                                        {.method = "front", .arena_bytes = 500, .seconds = 3.0}};

}  // namespace

TEST_SUITE_BEGIN("gui");

TEST_CASE("budget view: the slider meets its ends to the byte") {
  const BudgetRange range = range_of(kFront);
  CHECK(range.least_bytes == 500);
  CHECK(range.most_bytes == 1000);
  CHECK(range.at(0.0) == 500);
  CHECK(range.at(1.0) == 1000);
  CHECK(range.at(2.0) == 1000);
  CHECK(range.at(0.5) == 750);
  CHECK(range.share_of(750) == 0.5);
  CHECK(range.share_of(1) == 0.0);
  CHECK(range.share_of(5000) == 1.0);
  for (std::int64_t bytes = 500; bytes <= 1000; ++bytes) {
    CHECK(range.at(range.share_of(bytes)) == bytes);
  }
  const BudgetRange one = range_of(std::span(kFront).first(1));
  CHECK(one.empty());
  CHECK(one.at(0.3) == 1000);
  CHECK(one.share_of(1000) == 1.0);
  CHECK(range_of({}).empty());
}

TEST_CASE("budget view: a budget as people write it") {
  CHECK(budget_named("60%", 1000) == 600);
  CHECK(budget_named(" 12.5 % ", 1000) == 125);
  CHECK(budget_named("300MB", 1000) == 300'000'000);
  CHECK(budget_named("2 KiB", 1000) == 2048);
  CHECK(budget_named("777", 1000) == 777);
  for (const char* text : {"", "%", "-5%", "0%", "nan%", "1e9%", "much", "-3", "0", "60 %%"}) {
    CAPTURE(text);
    CHECK_FALSE(budget_named(text, 1000).has_value());
  }
}

TEST_CASE("budget view: a budget's plan is the quickest that fits") {
  CHECK(quickest_within(kFront, 2000)->seconds == 2.0);
  CHECK(quickest_within(kFront, 1000)->seconds == 2.0);
  CHECK(quickest_within(kFront, 999)->seconds == 2.2);
  CHECK(quickest_within(kFront, 500)->seconds == 3.0);
  CHECK(quickest_within(kFront, 499) == nullptr);
  CHECK(quickest_within({}, 499) == nullptr);
}

TEST_CASE("budget view: arrows go from plan to plan") {
  CHECK(neighbour_budget(kFront, 1000, -1) == 800);
  CHECK(neighbour_budget(kFront, 900, -1) == 800);
  CHECK(neighbour_budget(kFront, 500, -1) == 500);
  CHECK(neighbour_budget(kFront, 500, 1) == 800);
  CHECK(neighbour_budget(kFront, 900, 1) == 1000);
  CHECK(neighbour_budget(kFront, 1000, 1) == 1000);
}

TEST_CASE("budget view: the curve is a staircase that never says less than a plan needs") {
  const std::vector<CurveCorner> corners = curve_of(kFront, 2.0);
  REQUIRE(corners.size() == 5);
  CHECK(corners[0] == CurveCorner{1000.0, 0.0});
  CHECK(corners[1].bytes == 1000.0);
  CHECK(corners[1].overhead == doctest::Approx(0.1));
  CHECK(corners[2].bytes == 800.0);
  CHECK(corners[3].overhead == doctest::Approx(0.5));
  CHECK(corners[4].bytes == 500.0);
  for (std::size_t i = 1; i < corners.size(); ++i) {
    CHECK(corners[i].bytes <= corners[i - 1].bytes);
    CHECK(corners[i].overhead >= corners[i - 1].overhead);
  }
  CHECK(curve_of({}, 1.0).empty());
  CHECK(overhead_of(1.0, 0.0) == 0.0);
  CHECK(overhead_of(1.0, 1.0 + 1e-15) == 0.0);
}

TEST_CASE("budget view: a click goes through the pins") {
  PlanRequest request;
  Pin pin = pin_of(request, "a");
  CHECK(pin == Pin::kFree);
  set_pin(request, "b", Pin::kKeep);
  for (const Pin expected : {Pin::kKeep, Pin::kRecompute, Pin::kFree, Pin::kKeep}) {
    pin = next_pin(pin);
    CHECK(pin == expected);
    set_pin(request, "a", pin);
    CHECK(pin_of(request, "a") == expected);
    CHECK(pin_of(request, "b") == Pin::kKeep);
  }
  CHECK(request.keep == std::vector<std::string>{"b", "a"});
  CHECK(request.recompute.empty());
}

TEST_CASE("budget view: what the forward phase makes may be pinned, under its own name") {
  PlanRecord record;
  record.nodes = {{.phase = PlanPhase::kForward}, {.phase = PlanPhase::kBackward}};
  const auto add = [&](const char* name, PlanValueKind kind, std::uint32_t producer,
                       std::uint32_t view_of = kNoRow) {
    record.values.push_back(
        {.name = record.texts.id(name), .producer = producer, .kind = kind, .view_of = view_of});
  };
  add("x", PlanValueKind::kInput, kNoRow);
  add("h/gelu", PlanValueKind::kNode, 0);
  add("flat", PlanValueKind::kNode, 0, 1);
  add("gradient", PlanValueKind::kNode, 1);
  const PinnableValues pinnable(view_of(record));
  CHECK(pinnable.size() == 1);
  CHECK(pinnable.contains("h/gelu"));

  PlanRecord planned;
  for (const char* name : {"x", "h/gelu", "once more", "h/gelu/other"}) {
    planned.values.push_back({.name = planned.texts.id(name)});
  }
  planned.members = {0, 1, 2, 3};
  for (std::uint32_t i = 0; i < 4; ++i) planned.buffers.push_back({.values = {i, 1}});
  const PlanView plan = view_of(planned);
  const std::vector<std::uint32_t> originals = {0, 1, 1, 3};
  CHECK(pinnable.value_of(plan, originals, 0).empty());
  CHECK(pinnable.value_of(plan, originals, 1) == "h/gelu");
  CHECK(pinnable.value_of(plan, originals, 2) == "h/gelu");
  CHECK(pinnable.value_of(plan, originals, 3).empty());
}

TEST_CASE("budget view: the first step of a worker warms up") {
  std::vector<WorkerStep> steps;
  CHECK(std::isnan(median_milliseconds(steps)));
  steps.push_back({.step = 1, .milliseconds = 100.0});
  CHECK(std::isnan(median_milliseconds(steps)));
  for (const double ms : {3.0, 1.0, 2.0}) steps.push_back({.milliseconds = ms});
  CHECK(median_milliseconds(steps) == 2.0);
}

TEST_SUITE_END();

}  // namespace trainscope::gui::test
