// The clock around a slider's moves.
#include "engine/plain_step.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/numbers.h"

namespace trainscope {
namespace {

using SliderClock = std::chrono::steady_clock;

double milliseconds_since(SliderClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SliderClock::now() - start).count();
}

std::vector<double> milliseconds_of(const std::vector<SweptBudget>& budgets) {
  std::vector<double> all;
  for (const SweptBudget& each : budgets) all.push_back(each.milliseconds);
  return all;
}

}  // namespace

PlainStep plain_step(const OnnxModel& model, CompileOptions options) {
  options.recompute = {};
  PlainStep step{.compiled = compile(model, options), .lower = options.lower};
  step.node_seconds = step_seconds(step.program(), options.costs, options.machine);
  step.seconds = std::accumulate(step.node_seconds.begin(), step.node_seconds.end(), 0.0);
  return step;
}

double BudgetSweep::median_milliseconds() const { return median(milliseconds_of(budgets)); }

double BudgetSweep::most_milliseconds() const {
  return budgets.empty() ? 0.0 : std::ranges::max(milliseconds_of(budgets));
}

BudgetSweep sweep_budgets(const PlainStep& step, const RecomputeOptions& wishes,
                          std::int64_t count) {
  CHECK_INVARIANT(count >= 2);
  auto start = SliderClock::now();
  RecomputeSlider slider(step.program(), step.node_seconds, op_table(), step.lower, wishes);
  const std::vector<TradePoint> front = slider.front();
  BudgetSweep sweep{.front_plans = front.size(), .front_milliseconds = milliseconds_since(start)};
  const std::int64_t least = front.back().arena_bytes;
  const std::int64_t most = front.front().arena_bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    SweptBudget next{.budget_bytes = least + (most - least) * i / (count - 1)};
    start = SliderClock::now();
    next.plan = *slider.point_within(next.budget_bytes);
    next.milliseconds = milliseconds_since(start);
    sweep.budgets.push_back(std::move(next));
  }
  return sweep;
}

}  // namespace trainscope
