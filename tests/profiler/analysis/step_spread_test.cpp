// Steps beyond the others, and what tells why.
#include "profiler/analysis/step_spread.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

constexpr std::int64_t kStepNs = 1'000'000;

Event counted(EventKind kind, std::uint32_t step, double value) {
  return {.begin_ns = 0, .value = std::bit_cast<std::uint64_t>(value), .id = step, .kind = kind};
}

// Steps 1 to 12 of a call each; step 5 takes `more` longer, in its call or outside of it.
std::vector<Event> steps_with(std::int64_t more, bool in_call, double forced, double clock) {
  std::vector<Event> events;
  for (std::uint32_t step = 1; step <= 12; ++step) {
    const std::int64_t begin = step * 10 * kStepNs;
    const bool is_long = step == 5;
    const std::int64_t length = kStepNs + step + (is_long ? more : 0);
    const std::int64_t of_call = kStepNs / 2 + (is_long && in_call ? more : 0);
    events.push_back(span_of(EventKind::kCall, 0, begin + 10, begin + 10 + of_call));
    events.push_back(span_of(EventKind::kStep, step, begin, begin + length));
    events.push_back(counted(EventKind::kForcedSwitches, step, is_long ? forced : 0.0));
    events.push_back(counted(EventKind::kTaskClock, step,
                             static_cast<double>(kStepNs) + (is_long ? clock : 0.0)));
  }
  return events;
}

StepSpread spread_with(const std::vector<Event>& events) {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(events);
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  return step_spread(bytes.view(), view_of(plan), times);
}

TEST_CASE("step spread: steps that are alike have no outlier") {
  const StepSpread spread = spread_with(steps_with(0, true, 0.0, 0.0));
  CHECK(spread.spread.count == 12);
  CHECK(spread.least_ns == kStepNs + 1);
  CHECK(spread.most_ns == kStepNs + 12);
  REQUIRE(spread.deciles_ns.size() == 9);
  CHECK(spread.deciles_ns[4] == kStepNs + 6);
  CHECK(spread.outliers.empty());
}

TEST_CASE("step spread: an outlier is explained by what its counters have more of") {
  const StepSpread spread = spread_with(steps_with(600'000, false, 7.0, 10'000.0));
  REQUIRE(spread.outliers.size() == 1);
  CHECK(spread.outliers[0].step == 5);
  const std::vector<std::string>& causes = spread.outliers[0].causes;
  REQUIRE(causes.size() == 3);
  CHECK(causes[0] == "others took the processor from its threads 7 times, usually 0");
  CHECK(
      causes[1] ==
      "its threads had only 10.0 us more of the processor for 600.0 us more of time: they did not "
      "run");
  CHECK(causes[2] == "nothing recorded took 600.0 us more");
}

TEST_CASE("step spread: the hypervisor is named where its counter has more, and only there") {
  const std::string named =
      "the hypervisor gave processors to others for 20000.0 us, usually 0.0 us";
  for (const double stolen : {20e6, 0.0}) {
    std::vector<Event> events = steps_with(600'000, false, 0.0, 10'000.0);
    for (std::uint32_t step = 1; step <= 12; ++step) {
      events.push_back(counted(EventKind::kStolenTime, step, step == 5 ? stolen : 0.0));
    }
    const StepSpread spread = spread_with(events);
    REQUIRE(spread.outliers.size() == 1);
    const std::vector<std::string>& causes = spread.outliers[0].causes;
    CHECK(std::ranges::count(causes, named) == (stolen > 0.0 ? 1 : 0));
    for (const std::string& cause : causes) {
      CHECK((cause == named || cause.find("hypervisor") == std::string::npos));
    }
    CHECK(causes[stolen > 0.0 ? 1 : 0].ends_with("they did not run"));
  }
}

TEST_CASE("step spread: the call that took longer is named, and nothing else") {
  const StepSpread spread = spread_with(steps_with(600'000, true, 0.0, 600'000.0));
  REQUIRE(spread.outliers.size() == 1);
  CHECK(spread.outliers[0].causes ==
        std::vector<std::string>{"MatMul of '/fc/MatMul' took 600.0 us more"});
}

TEST_CASE("step spread: what nothing tells of is said to be so") {
  const PlanRecord plan = small_plan();
  std::vector<Event> events;
  for (std::uint32_t step = 1; step <= 12; ++step) {
    // All of the step is calls, of which no one takes a quarter of what is more.
    std::int64_t at = step * 10 * kStepNs;
    const std::int64_t begin = at;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t ns = 100'000 + (step == 5 ? 20'000 : 0);
      events.push_back(span_of(EventKind::kCall, static_cast<std::uint32_t>(i), at, at + ns));
      at += ns;
    }
    events.push_back(span_of(EventKind::kStep, step, begin, at + (step == 5 ? 16'000 : 0)));
  }
  const StepSpread spread = spread_with(events);
  REQUIRE(spread.outliers.size() == 1);
  CHECK(spread.outliers[0].causes == std::vector<std::string>{"no counter and no call tells why"});
}

}  // namespace
}  // namespace trainscope::profiler::test
