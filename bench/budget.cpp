// How long the window's budget takes to answer:
//   budget_bench gpt2 355M BATCH SEQ [REQUESTS]
// Opens the step of a builder's model (compile, front), then asks for budgets all over the front, a
// request after the other is answered with a draft: the time to the point of the curve, to what a
// search of its neighbours makes of it, and to the placed draft. Then for some of them to the plan
// that `train` makes, and what a drag sees that asks every 16 ms. One CSV row.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "engine/core/numbers.h"
#include "engine/models/models.h"
#include "gui/budget/budget_planner.h"
#include "gui/budget/budget_view.h"

namespace trainscope::gui {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

template <typename Condition>
double ms_until(Clock::time_point start, const Condition& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return ms_since(start);
}

PlannedStep step_of(const std::string& builder, const std::string& size, std::int64_t batch,
                    std::int64_t sequence) {
  CompileOptions options;
  options.import.dims = {{"batch", batch}, {"sequence", sequence}};
  options.training.mode = GraphMode::kTrain;
  options.training.loss.output = "logits";
  options.passes.keep = KeepGraphs::kLast;
  options.lower.threads = 2;
  return {.model = shapes_of(build_model(builder, {{"size", size}}, 1)), .options = options};
}

struct Times {
  std::vector<double> point_ms;
  std::vector<double> searched_ms;
  std::vector<double> draft_ms;
  std::vector<double> plan_ms;
};

PlanRequest budget_of(const BudgetRange& range, int i, int count) {
  constexpr int kStride = 7;  // so that neighbours in time are none on the slider
  const double share = static_cast<double>(i * kStride % count) / static_cast<double>(count);
  return {.level = PlanLevel::kAuto, .budget_bytes = range.at(share)};
}

Times ask_all(BudgetPlanner& planner, const BudgetRange& range, int count) {
  Times times;
  for (int i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    const std::uint64_t id = planner.ask(budget_of(range, i, count));
    times.point_ms.push_back(ms_until(start, [&] { return planner.state()->point.has_value(); }));
    times.searched_ms.push_back(ms_until(start, [&] { return planner.state()->searched == id; }));
    times.draft_ms.push_back(ms_until(start, [&] {
      const auto answer = planner.state()->answer;
      return answer && answer->id == id;
    }));
    if (i % 8 != 0) continue;
    times.plan_ms.push_back(ms_until(start, [&] { return !planner.state()->planning; }));
  }
  return times;
}

// The longest time between two answers that a drag sees, and how many there are in a second.
std::pair<double, double> drag(BudgetPlanner& planner, const BudgetRange& range) {
  constexpr int kFrames = 180;
  double longest_ms = 0.0;
  int answers = 0;
  std::uint64_t seen = planner.state()->answer->id;
  Clock::time_point last = Clock::now();
  const Clock::time_point start = last;
  for (int i = 0; i < kFrames; ++i) {
    planner.ask(
        {.level = PlanLevel::kAuto, .budget_bytes = range.at(0.5 + 0.4 * std::sin(0.05 * i))});
    std::this_thread::sleep_for(std::chrono::milliseconds(16));
    const std::uint64_t now = planner.state()->answer->id;
    if (now == seen) continue;
    seen = now;
    ++answers;
    longest_ms = std::max(longest_ms, ms_since(last));
    last = Clock::now();
  }
  return {longest_ms, 1e3 * answers / ms_since(start)};
}

int run(const std::string& builder, const std::string& size, std::int64_t batch,
        std::int64_t sequence, int count) {
  const Clock::time_point start = Clock::now();
  BudgetPlanner planner([&] { return step_of(builder, size, batch, sequence); });
  const double open_ms =
      ms_until(start, [&] { return planner.state()->phase != BudgetState::Phase::kOpening; });
  const std::shared_ptr<const BudgetState> opened = planner.state();
  if (opened->phase == BudgetState::Phase::kFailed) {
    fmt::print(stderr, "{}\n", opened->now);
    return 1;
  }
  const BudgetRange range = range_of(*opened->front);
  const Times times = ask_all(planner, range, count);
  const auto [longest_ms, per_second] = drag(planner, range);
  fmt::print(
      "model,batch,seq,front_points,open_ms,point_ms,point_most_ms,searched_ms,searched_most_ms,"
      "draft_ms,draft_most_ms,plan_ms,plan_most_ms,drag_longest_ms,drag_per_second\n");
  fmt::print(
      "{}:{},{},{},{},{:.0f},{:.2f},{:.2f},{:.2f},{:.2f},{:.1f},{:.1f},{:.0f},{:.0f},{:.0f},{:.1f}"
      "\n",
      builder, size, batch, sequence, opened->front->size(), open_ms, median(times.point_ms),
      std::ranges::max(times.point_ms), median(times.searched_ms),
      std::ranges::max(times.searched_ms), median(times.draft_ms), std::ranges::max(times.draft_ms),
      median(times.plan_ms), std::ranges::max(times.plan_ms), longest_ms, per_second);
  return 0;
}

}  // namespace
}  // namespace trainscope::gui

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: budget_bench BUILDER SIZE BATCH SEQ [REQUESTS]\n");
    return 2;
  }
  const int count = argc > 5 ? std::atoi(argv[5]) : 40;
  return trainscope::gui::run(argv[1], argv[2], std::atoll(argv[3]), std::atoll(argv[4]), count);
}
