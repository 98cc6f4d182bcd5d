// Bounds, seeds, search: the recompute planner from one end to the other.
#include "memplan/remat/planner.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "memplan/remat/certificate.h"
#include "memplan/remat/exact.h"
#include "memplan/remat/front.h"
#include "memplan/remat/search.h"
#include "memplan/remat/seeds.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::string;
using Clock = std::chrono::steady_clock;

constexpr int32_t kFrontiers = 12;
// Plans of the front to start from: some above the budget, which are repaired, some below.
constexpr size_t kSeedsAbove = 3;
constexpr size_t kSeedsBelow = 2;
// Steps of annealing in one round for one plan: about 0.2 s in all for 400 nodes.
constexpr int64_t kSteps = 20'000;
constexpr size_t kMostSurvivors = 4;
constexpr int kMostInVain = 3;
// First heats in mean times of a node. The last one is a hundredth of the first.
constexpr double kHot = 1;
constexpr double kWarm = 0.1;
constexpr double kMild = 0.03;
constexpr double kCool = 100;
// The search keeps two bits for each pair of nodes.
constexpr int32_t kMostSearched = 20'000;

Clock::time_point deadline_after(double seconds) {
  constexpr double kForever = 1e9;  // about 30 years; far from overflowing the clock
  if (seconds >= kForever) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// A plan of the search: one that keeps the budget has no excess.
struct Draft {
  BitRows holds = {};
  RematCost cost = {};
  int64_t peak_bytes = 0;

  bool keeps_budget() const { return cost.excess_bytes == 0; }
};

bool better(const Draft& a, const Draft& b) {
  if (a.cost.excess_bytes != b.cost.excess_bytes) {
    return a.cost.excess_bytes < b.cost.excess_bytes;
  }
  return a.cost.time < b.cost.time;
}

class Portfolio {
 public:
  Portfolio(const RematGraph& graph, int64_t budget_bytes, Clock::time_point deadline)
      : graph_(graph), state_(graph, budget_bytes), deadline_(deadline) {
    for (int32_t node = 0; node < graph.size(); ++node) mean_time_ += graph.time(node);
    mean_time_ = std::max(mean_time_, 1.0) / graph.size();
  }

  // `enough`: a time that cannot be beaten.
  Draft run(double enough) {
    enough_ = enough;
    add_seeds();
    int in_vain = 0;  // rounds in a row
    for (const double heat : {kHot, kWarm, kMild, kWarm, kMild, kMild}) {
      if (done() || in_vain == kMostInVain) break;
      const RematCost before = drafts_.front().cost;
      round(heat);
      const RematCost& after = drafts_.front().cost;
      const bool gained = after.excess_bytes < before.excess_bytes || after.time < before.time;
      in_vain = gained || after.excess_bytes > 0 ? 0 : in_vain + 1;
    }
    return std::move(drafts_.front());
  }

 private:
  void add_seeds() {
    const RematFront front(graph_, {.enough_bytes = state_.budget_bytes()});
    const size_t place = front.find(state_.budget_bytes());
    const size_t first = place > kSeedsAbove ? place - kSeedsAbove : 0;
    add(hold_all(graph_));
    for (size_t i = first; i < std::min(front.points().size(), place + kSeedsBelow); ++i) {
      if (Clock::now() < deadline_) add(front.holds(graph_, i));
    }
    keep_best();
  }

  void add(BitRows holds) {
    state_.load(std::move(holds));
    RematSearch search(state_, next_seed_++, deadline_);
    search.repair();
    search.fill();
    drafts_.push_back(draft());
  }

  // Each draft goes on as it is and as what annealing makes of it.
  void round(double heat) {
    const size_t count = drafts_.size();
    for (size_t i = 0; i < count && !done(); ++i) {
      state_.load(drafts_[i].holds);
      RematSearch search(state_, next_seed_++, deadline_);
      search.anneal({.steps = kSteps,
                     .first_heat = heat * mean_time_,
                     .last_heat = heat * mean_time_ / kCool});
      if (search.repair()) search.fill();
      drafts_.push_back(draft());
    }
    keep_best();
  }

  Draft draft() const {
    return {.holds = state_.matrix(), .cost = state_.cost(), .peak_bytes = state_.peak_bytes()};
  }

  void keep_best() {
    std::stable_sort(drafts_.begin(), drafts_.end(), better);
    const auto same = [](const Draft& a, const Draft& b) { return a.holds == b.holds; };
    drafts_.erase(std::unique(drafts_.begin(), drafts_.end(), same), drafts_.end());
    if (drafts_.size() > kMostSurvivors) drafts_.resize(kMostSurvivors);
  }

  bool done() const {
    const Draft& best = drafts_.front();
    return (best.keeps_budget() && best.cost.time <= enough_) || Clock::now() >= deadline_;
  }

  const RematGraph& graph_;
  Retention state_;
  Clock::time_point deadline_;
  double mean_time_ = 0;
  double enough_ = 0;
  std::uint64_t next_seed_ = 1;
  std::vector<Draft> drafts_;  // the best first
};

class Planner {
 public:
  Planner(const RematProblem& problem, const RematOptions& options)
      : problem_(problem),
        options_(options),
        deadline_(deadline_after(options.seconds)),
        graph_(problem) {}

  RematResult run() {
    result_.base_time = base_time(problem_);
    adopt(save_all_plan(problem_));
    result_.save_all_bytes = result_.peak_bytes;
    result_.workable_bytes = result_.peak_bytes;
    const LeastBudget least = least_budget(graph_);
    result_.least_bytes = least.bytes;
    result_.least_node = least.node;
    result_.lower_bound_time = result_.base_time;
    if (result_.peak_bytes <= options_.budget_bytes) return planned();
    if (least.bytes > options_.budget_bytes) return infeasible();
    if (graph_.size() > kMostSearched) return too_large();
    const double bound = least_time(graph_, options_.budget_bytes, kFrontiers);
    if (std::isinf(bound)) return no_plan();
    result_.lower_bound_time = static_cast<int64_t>(bound);
    ExactResult exact = solve_exactly(graph_, options_.budget_bytes, options_.most_exact_states);
    if (exact.status == ExactStatus::kImpossible) return no_plan();
    if (exact.status == ExactStatus::kGaveUp) return search(bound);
    adopt(std::move(exact.plan));
    result_.workable_bytes = result_.peak_bytes;
    result_.lower_bound_time = result_.time;
    return planned();
  }

 private:
  void adopt(RematPlan plan) {
    const RematReplay replay = simulate(problem_, plan);
    result_.plan = std::move(plan);
    result_.peak_bytes = replay.peak_bytes;
    result_.time = replay.time;
  }

  RematResult planned() {
    result_.status = RematStatus::kPlanned;
    result_.proven = result_.time == result_.lower_bound_time;
    return std::move(result_);
  }

  string budget_text() const { return std::to_string(options_.budget_bytes) + " bytes"; }

  // The least budget of the worst node is the answer only if some plan keeps it.
  RematResult infeasible() {
    const bool searchable = graph_.size() <= kMostSearched;
    if (searchable) {
      Portfolio portfolio(graph_, result_.least_bytes, deadline_);
      constexpr double kAnyTime = std::numeric_limits<double>::infinity();
      result_.workable_bytes = portfolio.run(kAnyTime).peak_bytes;
    }
    result_.status = RematStatus::kInfeasible;
    result_.message = "no plan fits " + budget_text() + ": " +
                      describe_node(problem_, result_.least_node) + " alone needs " +
                      std::to_string(result_.least_bytes) +
                      " for its inputs, value and workspace; the least workable budget " +
                      (result_.workable_bytes == result_.least_bytes ? "is " : "known is ") +
                      std::to_string(result_.workable_bytes);
    result_.plan = {};
    return std::move(result_);
  }

  RematResult no_plan() {
    result_.status = RematStatus::kInfeasible;
    result_.message = "no plan fits " + budget_text() + ", though " +
                      describe_node(problem_, result_.least_node) +
                      ", which needs most, alone needs " + std::to_string(result_.least_bytes) +
                      "; without recompute the peak is " + std::to_string(result_.save_all_bytes);
    result_.plan = {};
    return std::move(result_);
  }

  RematResult too_large() {
    result_.status = RematStatus::kNotFound;
    result_.message = "the search is for up to " + std::to_string(kMostSearched) +
                      " nodes, these are " + std::to_string(graph_.size()) +
                      ": plan blocks of them";
    result_.plan = {};
    return std::move(result_);
  }

  RematResult search(double bound) {
    Portfolio portfolio(graph_, options_.budget_bytes, deadline_);
    const Draft best = portfolio.run(bound);
    result_.workable_bytes = best.peak_bytes;
    if (best.keeps_budget()) {
      Retention state(graph_, options_.budget_bytes);
      state.load(best.holds);
      adopt(state.plan());
      return planned();
    }
    result_.status = RematStatus::kNotFound;
    result_.message = "found no plan that fits " + budget_text() +
                      ", though none was proven impossible; the lowest peak found is " +
                      std::to_string(best.peak_bytes);
    result_.plan = {};
    return std::move(result_);
  }

  const RematProblem& problem_;
  const RematOptions& options_;
  Clock::time_point deadline_;
  RematGraph graph_;
  RematResult result_;
};

}  // namespace

RematResult plan_remat(const RematProblem& problem, const RematOptions& options) {
  const Clock::time_point start = Clock::now();
  const auto refuse = [](string message) {
    return RematResult{.status = RematStatus::kBadProblem, .message = std::move(message)};
  };
  if (const std::optional<string> error = find_remat_error(problem)) return refuse(*error);
  if (options.budget_bytes < 0) return refuse("the budget must be 0 bytes or more");
  if (!(options.seconds >= 0)) return refuse("the time limit must be 0 seconds or more");
  RematResult result = Planner(problem, options).run();
  result.elapsed = Clock::now() - start;
  return result;
}

}  // namespace trainscope::memplan
