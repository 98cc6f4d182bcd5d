// Rounds of annealing over the best drafts.
#include "memplan/remat/portfolio.h"

#include <algorithm>
#include <utility>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

// Iterations of annealing in one round for one plan: a millisecond for 400 nodes. More where the
// gap to the bound, as a fraction of the time without recompute, is wide.
constexpr double kIterations = 5'000;
constexpr double kUsualGap = 4e-3;
constexpr double kMostTimes = 5;
// A small problem has few changes to try: at most so many iterations for each value and stage.
constexpr double kIterationsPerHold = 200;
constexpr size_t kMostSurvivors = 4;
constexpr int kMostInVain = 3;
constexpr int kMostInVainIfWide = 6;
// First temperatures in mean times of a node: what leads out of deep budgets are detours above
// them, not temperature. The last one is a hundredth of the first.
constexpr double kWarm = 0.1;
constexpr double kMild = 0.02;
constexpr double kCool = 100;
constexpr double kTemperatures[] = {kMild, kWarm, kMild, kMild, kWarm, kMild,
                                    kMild, kWarm, kMild, kMild, kMild, kMild};
// A plan so close to the bound is good enough, as a fraction of the time without recompute. Where
// the gap is wide, more rounds are worth their time.
constexpr double kClose = 2e-4;
constexpr double kWide = 1e-2;

bool better(const RematDraft& a, const RematDraft& b) {
  if (a.cost.excess_bytes != b.cost.excess_bytes) {
    return a.cost.excess_bytes < b.cost.excess_bytes;
  }
  return a.cost.time < b.cost.time;
}

}  // namespace

RematPortfolio::RematPortfolio(const RematGraph& graph, int64_t budget_bytes, Deadline deadline)
    : graph_(graph), state_(graph, budget_bytes), deadline_(std::move(deadline)) {
  for (int32_t node = 0; node < graph.size(); ++node) {
    mean_time_ += graph.time(node);
    holds_ += graph.horizon(node) - node;
  }
  mean_time_ = std::max(mean_time_, 1.0) / graph.size();
}

void RematPortfolio::add(BitRows holds) {
  state_.load(std::move(holds));
  RematSearch search(state_, next_seed_++, deadline_);
  search.repair();
  search.fill();
  drafts_.push_back(draft());
  keep_best();
}

void RematPortfolio::anneal(double bound) {
  const double base_time = mean_time_ * graph_.size();
  const double enough = bound + kClose * base_time;
  int in_vain = 0;  // rounds in a row
  for (const double temperature : kTemperatures) {
    const double gap = (best().cost.time - bound) / base_time;
    if (done(enough) || in_vain >= (gap > kWide ? kMostInVainIfWide : kMostInVain)) break;
    const RematCost before = best().cost;
    const double times = std::clamp(gap / kUsualGap, 1.0, kMostTimes);
    const double iterations =
        std::min(kIterations * times, kIterationsPerHold * static_cast<double>(holds_));
    round({.iterations = static_cast<int64_t>(iterations),
           .first_temperature = temperature * mean_time_,
           .last_temperature = temperature * mean_time_ / kCool},
          enough);
    const RematCost& after = best().cost;
    const bool gained = after.excess_bytes < before.excess_bytes || after.time < before.time;
    in_vain = gained || after.excess_bytes > 0 ? 0 : in_vain + 1;
  }
}

// Each draft goes on as it is and as what annealing makes of it.
void RematPortfolio::round(const AnnealOptions& options, double enough) {
  const std::vector<RematDraft> before = drafts_;
  for (const RematDraft& each : before) {
    if (done(enough)) break;
    state_.load(each.holds);
    RematSearch search(state_, next_seed_++, deadline_);
    search.anneal(options);
    if (search.repair()) search.fill();
    drafts_.push_back(draft());
  }
  keep_best();
}

RematDraft RematPortfolio::draft() const {
  return {.holds = state_.matrix(), .cost = state_.cost(), .peak_bytes = state_.peak_bytes()};
}

void RematPortfolio::keep_best() {
  std::stable_sort(drafts_.begin(), drafts_.end(), better);
  const auto same = [](const RematDraft& a, const RematDraft& b) { return a.holds == b.holds; };
  drafts_.erase(std::unique(drafts_.begin(), drafts_.end(), same), drafts_.end());
  if (drafts_.size() > kMostSurvivors) drafts_.resize(kMostSurvivors);
}

bool RematPortfolio::done(double enough) const {
  return (best().keeps_budget() && best().cost.time <= enough) || deadline_.expired();
}

}  // namespace trainscope::memplan
