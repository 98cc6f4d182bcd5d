// Bounds, seeds, search: the recompute planner from one end to the other.
#include "memplan/remat/planner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "memplan/remat/certificate.h"
#include "memplan/remat/exact.h"
#include "memplan/remat/portfolio.h"
#include "memplan/remat/retention.h"
#include "memplan/remat/seeds.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::string;
using Clock = std::chrono::steady_clock;

// Of the certificate; quick answers must not wait for it.
int32_t frontiers_of(RematEffort effort) { return effort == RematEffort::kSearch ? 48 : 4; }

// Plans of the front to start from: some above the budget, which are repaired, some below.
constexpr size_t kSeedsAbove = 3;
constexpr size_t kSeedsBelow = 2;
// The search keeps two bits for each pair of nodes.
constexpr int32_t kMostSearched = 20'000;

RematPlan plan_of(const RematGraph& graph, BitRows holds) {
  Retention state(graph, 0);
  state.load(std::move(holds));
  return state.plan();
}

RematResult refusal(string message) {
  return {.status = RematStatus::kBadProblem, .message = std::move(message)};
}

}  // namespace

RematPlanner::RematPlanner(const RematProblem& problem, std::stop_token stop)
    : problem_(problem), graph_(problem, std::move(stop)) {
  facts_.base_time = base_time(problem);
  const RematReplay replay = simulate(problem, save_all_plan(problem));
  facts_.lower_bound_time = facts_.base_time;
  facts_.save_all_bytes = replay.peak_bytes;
  facts_.workable_bytes = replay.peak_bytes;
  const LeastBudget least = least_budget(graph_);
  facts_.least_bytes = least.bytes;
  facts_.least_node = least.node;
}

const RematFront& RematPlanner::front() {
  if (!front_) front_.emplace(graph_);
  return *front_;
}

bool RematPlanner::searchable() const { return graph_.size() <= kMostSearched; }

// Keeps the plan unless a known one is as good.
void RematPlanner::learn(const RematPlan& plan) {
  const RematReplay replay = simulate(problem_, plan);
  auto above = known_.upper_bound(replay.peak_bytes);
  if (above != known_.begin() && std::prev(above)->second.time <= replay.time) return;
  auto beaten = known_.lower_bound(replay.peak_bytes);
  while (beaten != known_.end() && beaten->second.time >= replay.time) {
    beaten = known_.erase(beaten);
  }
  known_[replay.peak_bytes] = {.time = replay.time, .plan = plan};
}

RematResult RematPlanner::planned(RematPlan plan, double bound) const {
  RematResult result = facts_;
  const RematReplay replay = simulate(problem_, plan);
  result.status = RematStatus::kPlanned;
  result.plan = std::move(plan);
  result.peak_bytes = replay.peak_bytes;
  result.workable_bytes = replay.peak_bytes;
  result.time = replay.time;
  result.lower_bound_time = static_cast<int64_t>(bound);
  result.proven = result.time == result.lower_bound_time;
  return result;
}

// The least budget of the worst node is the answer only if some plan keeps it.
RematResult RematPlanner::infeasible(const Question& question) {
  RematResult result = facts_;
  result.status = RematStatus::kInfeasible;
  if (searchable()) {
    if (question.effort == RematEffort::kSearch && !std::exchange(least_searched_, true)) {
      Question least = question;
      least.budget_bytes = result.least_bytes;
      search(least, 0);
    }
    result.workable_bytes = std::min(result.workable_bytes, front().points().back().peak_bytes);
    if (!known_.empty()) {
      result.workable_bytes = std::min(result.workable_bytes, known_.begin()->first);
    }
  }
  result.message = "no plan fits " + std::to_string(question.budget_bytes) +
                   " bytes: " + describe_node(problem_, result.least_node) + " alone needs " +
                   std::to_string(result.least_bytes) +
                   " for its inputs, value and workspace; the least workable budget " +
                   (result.workable_bytes == result.least_bytes ? "is " : "known is ") +
                   std::to_string(result.workable_bytes);
  return result;
}

RematResult RematPlanner::no_plan(const Question& question) const {
  RematResult result = facts_;
  result.status = RematStatus::kInfeasible;
  result.message = "no plan fits " + std::to_string(question.budget_bytes) + " bytes, though " +
                   describe_node(problem_, result.least_node) + ", which needs most, alone needs " +
                   std::to_string(result.least_bytes) + "; without recompute the peak is " +
                   std::to_string(result.save_all_bytes);
  return result;
}

RematResult RematPlanner::too_large() const {
  RematResult result = facts_;
  result.status = RematStatus::kNotFound;
  result.message = "the search is for up to " + std::to_string(kMostSearched) +
                   " nodes, these are " + std::to_string(graph_.size()) + ": plan blocks of them";
  return result;
}

RematResult RematPlanner::best_known(const Question& question, double bound) {
  const size_t place = front().find(question.budget_bytes);
  const auto above = known_.upper_bound(question.budget_bytes);
  const bool found = above != known_.begin();
  const bool in_front = place < front().points().size();
  if (found && (!in_front || static_cast<double>(std::prev(above)->second.time) <=
                                 front().points()[place].time)) {
    return planned(std::prev(above)->second.plan, bound);
  }
  if (in_front) return planned(plan_of(graph_, front().holds(graph_, place)), bound);
  RematResult result = facts_;
  result.status = RematStatus::kNotFound;
  result.workable_bytes = front().points().back().peak_bytes;
  if (!known_.empty()) {
    result.workable_bytes = std::min(result.workable_bytes, known_.begin()->first);
  }
  result.lower_bound_time = static_cast<int64_t>(bound);
  result.message = "found no plan that fits " + std::to_string(question.budget_bytes) +
                   " bytes, though none was proven impossible; the lowest peak found is " +
                   std::to_string(result.workable_bytes);
  return result;
}

RematResult RematPlanner::search(const Question& question, double bound) {
  RematPortfolio portfolio(graph_, question.budget_bytes, question.deadline);
  const size_t place = front().find(question.budget_bytes);
  const size_t first = place > kSeedsAbove ? place - kSeedsAbove : 0;
  std::vector<size_t> seeds;
  for (size_t i = first; i < std::min(front().points().size(), place + kSeedsBelow); ++i) {
    seeds.push_back(i);
  }
  // Outwards from the one that fits, which is a plan also where there is no time to repair one.
  std::ranges::stable_sort(seeds, {},
                           [place](size_t i) { return i < place ? place - i : i - place; });
  // What greedy repair makes of the plan that keeps everything takes long to find.
  const bool deep = place == front().points().size();
  if (deep || question.effort == RematEffort::kSearch) portfolio.add(hold_all(graph_));
  for (const size_t seed : seeds) {
    // One at least, however little time there is.
    if (seed == seeds.front() || !question.deadline.expired()) {
      portfolio.add(front().holds(graph_, seed));
    }
  }
  const auto above = known_.upper_bound(question.budget_bytes);
  if (above != known_.begin()) {
    portfolio.add(holds_of(graph_, std::prev(above)->second.plan));
  }
  if (above != known_.end()) portfolio.add(holds_of(graph_, above->second.plan));
  if (question.effort == RematEffort::kSearch) portfolio.anneal(bound);
  learn(plan_of(graph_, portfolio.best().holds));
  return best_known(question, bound);
}

RematResult RematPlanner::exact_or_search(const Question& question, double bound) {
  ExactResult exact = solve_exactly(graph_, question.budget_bytes, question.most_exact_states);
  if (exact.status == ExactStatus::kImpossible) return no_plan(question);
  if (exact.status == ExactStatus::kGaveUp) return search(question, bound);
  learn(exact.plan);
  RematResult result = planned(std::move(exact.plan), bound);
  result.lower_bound_time = result.time;
  result.proven = true;
  return result;
}

RematResult RematPlanner::answer(const Question& question) {
  if (facts_.save_all_bytes <= question.budget_bytes) {
    return planned(save_all_plan(problem_), static_cast<double>(facts_.base_time));
  }
  if (facts_.least_bytes > question.budget_bytes) return infeasible(question);
  if (!searchable()) return too_large();
  const double bound = least_time(graph_, question.budget_bytes, frontiers_of(question.effort));
  if (std::isinf(bound)) return no_plan(question);
  if (question.effort == RematEffort::kLookUp) return best_known(question, bound);
  if (question.effort == RematEffort::kRepair) return search(question, bound);
  return exact_or_search(question, bound);
}

RematResult RematPlanner::plan(const RematOptions& options) {
  const Clock::time_point start = Clock::now();
  if (options.budget_bytes < 0) return refusal("the budget must be 0 bytes or more");
  if (!(options.seconds >= 0)) return refusal("the time limit must be 0 seconds or more");
  RematResult result = answer({.budget_bytes = options.budget_bytes,
                               .effort = options.effort,
                               .deadline = Deadline(options.seconds),
                               .most_exact_states = options.most_exact_states});
  result.elapsed = Clock::now() - start;
  return result;
}

RematResult plan_remat(const RematProblem& problem, const RematOptions& options) {
  const Clock::time_point start = Clock::now();
  if (std::optional<string> error = find_remat_error(problem)) return refusal(std::move(*error));
  RematResult result = RematPlanner(problem).plan(options);
  result.elapsed = Clock::now() - start;
  return result;
}

}  // namespace trainscope::memplan
