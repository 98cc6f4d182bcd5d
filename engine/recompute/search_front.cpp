// What is tried whatever the budget: families of simple plans, and the front that comes of them.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "engine/recompute/clusters.h"
#include "engine/recompute/search.h"
#include "memplan/deadline.h"

namespace trainscope {
namespace {

// Plans of the planner's front that are placed.
constexpr std::size_t kMostOfFront = 128;

// All up to `most`, else some evenly, the last among them.
std::vector<std::vector<bool>> some_of(std::vector<std::vector<bool>> all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<std::vector<bool>> some;
  for (std::size_t i = 1; i <= most; ++i) some.push_back(std::move(all[all.size() * i / most - 1]));
  return some;
}

using SecondsByBudget = std::map<std::int64_t, double>;

// Halfway between budgets whose plans differ.
std::vector<std::int64_t> budgets_between(const SecondsByBudget& asked) {
  std::vector<std::int64_t> budgets;
  for (auto at = asked.begin(); at != asked.end() && std::next(at) != asked.end(); ++at) {
    const auto [budget, seconds] = *at;
    const auto [larger, quicker] = *std::next(at);
    if (seconds > quicker && larger - budget > 1) budgets.push_back(budget + (larger - budget) / 2);
  }
  return budgets;
}

}  // namespace

// Families of plans in which nothing is executed more than twice, each by rising time.
const std::vector<RecomputeSearch::UnitSets>& RecomputeSearch::families() {
  if (!families_.empty()) return families_;
  const std::vector<Cluster> clusters = find_clusters(graph_, model_);
  families_ = {some_of(planner_.front(), kMostOfFront),
               {level_units(model_, clusters, 1)},
               {level_units(model_, clusters, 2)}};
  for (UnitSets& sets : families_) {
    for (std::vector<bool>& recomputed : sets) apply_pins(recomputed);
    std::ranges::stable_sort(sets, {}, [this](const std::vector<bool>& recomputed) {
      double seconds = 0;
      for (std::size_t i = 0; i < recomputed.size(); ++i) {
        if (recomputed[i]) seconds += model_.units[i].seconds;
      }
      return seconds;
    });
  }
  return families_;
}

void RecomputeSearch::place_front() {
  if (std::exchange(front_placed_, true)) return;
  as_pinned();
  std::vector<Unplaced> list;
  for (const UnitSets& sets : families()) {
    for (const std::vector<bool>& recomputed : sets) list.push_back(when_needed(recomputed));
  }
  glance_at(std::move(list));
  if (link_) try_offload_everywhere();
}

std::optional<Attempt> RecomputeSearch::nearby(std::int64_t budget_bytes, double seconds) {
  place_front();
  const Attempt* known = best_within(budget_bytes);
  if (known == nullptr) return std::nullopt;
  // What is in the arena but not in the planner's bytes is about the same for neighbours.
  const std::int64_t unseen = plain_arena_.bytes - planner_.plain_peak_bytes();
  const bool beyond_front = budget_bytes - unseen < planner_.least_front_bytes();
  double& searched = searched_nearby_[budget_bytes];
  if (known->arena_bytes == budget_bytes || beyond_front || seconds <= searched) return *known;
  searched = seconds;
  const memplan::Deadline deadline(seconds);
  std::optional<PlannedOrder> planned =
      planner_.plan(budget_bytes - unseen, memplan::RematEffort::kRepair, seconds);
  if (planned) {
    const std::int64_t placed_for = deadline.expired() ? kNoBudget : budget_bytes;
    attempt({.order = {.units = std::move(planned->order), .in_host = {}}},
            {.budget_bytes = placed_for});
  }
  return *best_within(budget_bytes);
}

// What a greedy search makes of the neighbours in the planner's front: at evenly spaced budgets,
// then between those whose plans differ, as long as that adds points to a front of few.
void RecomputeSearch::refine_front() {
  constexpr std::int64_t kBudgets = 100;
  constexpr std::size_t kMostBudgets = 1000;
  constexpr std::size_t kEnoughPoints = 128;
  if (std::exchange(front_refined_, true)) return;
  place_front();
  const std::int64_t least = planner_.least_front_bytes();
  const std::int64_t most = planner_.plain_peak_bytes();
  std::vector<std::int64_t> budgets;
  for (std::int64_t i = 0; i < kBudgets; ++i)
    budgets.push_back(least + (most - least) / kBudgets * i);
  SecondsByBudget asked = {{most, model_.seconds}};
  std::size_t points = unbeaten().size();
  while (!budgets.empty() && asked.size() + budgets.size() <= kMostBudgets) {
    ask_greedy(budgets, asked);
    const std::size_t before = std::exchange(points, unbeaten().size());
    if (points >= kEnoughPoints || points <= before) return;
    budgets = budgets_between(asked);
  }
}

void RecomputeSearch::ask_greedy(std::span<const std::int64_t> budgets, SecondsByBudget& asked) {
  std::vector<Unplaced> list;
  for (std::int64_t budget : budgets) {
    std::optional<PlannedOrder> planned = planner_.plan(budget, memplan::RematEffort::kRepair);
    asked[budget] = planned ? planned->seconds : std::numeric_limits<double>::infinity();
    if (planned) list.push_back({.order = {.units = std::move(planned->order), .in_host = {}}});
  }
  glance_at(std::move(list));
}

std::vector<const Attempt*> RecomputeSearch::unbeaten() const {
  std::vector<const Attempt*> by_time;
  for (const Attempt& each : tried_) by_time.push_back(&each);
  std::ranges::sort(
      by_time, {}, [](const Attempt* each) { return std::pair(each->seconds, each->arena_bytes); });
  std::vector<const Attempt*> front;
  for (const Attempt* each : by_time) {
    if (front.empty() || each->arena_bytes < front.back()->arena_bytes) front.push_back(each);
  }
  return front;
}

std::vector<Attempt> RecomputeSearch::front() {
  place_front();
  std::vector<Attempt> front;
  for (const Attempt* each : unbeaten()) front.push_back(*each);
  return front;
}

}  // namespace trainscope
