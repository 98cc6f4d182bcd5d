// The search for one budget or one overhead: the planner's plans around it beside all others.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/recompute/search.h"

namespace trainscope {
namespace {

// A stride of the search is a kGrid-th of the range from the least bytes to the plain peak.
constexpr int kGrid = 16;
constexpr int kBisections = 8;
constexpr int kRefinements = 5;
// Units of a step whose front is also refined for one budget.
constexpr std::size_t kQuicklyRefined = 1000;

}  // namespace

void RecomputeSearch::try_always() {
  if (model_.units.size() <= kQuicklyRefined) refine_front();
  place_front();
}

Attempt RecomputeSearch::within(std::int64_t budget_bytes) {
  Attempt least_time = as_pinned();
  if (least_time.arena_bytes <= budget_bytes) return least_time;
  try_always();
  explore(budget_bytes);
  if (link_) try_offload(budget_bytes);
  settle(budget_bytes);
  if (const Attempt* best = best_within(budget_bytes)) return *best;
  try_deepest();
  settle(budget_bytes);
  const Attempt* best = best_within(budget_bytes);
  if (best == nullptr) refuse(budget_bytes);
  return *best;
}

// Where a glance leaves open whether a plan fits that is quicker than those that do: places them as
// programs, the quickest first, until one does.
void RecomputeSearch::settle(std::int64_t budget_bytes) {
  const Attempt* best = best_within(budget_bytes);
  const double quicker_than =
      best == nullptr ? std::numeric_limits<double>::infinity() : best->seconds;
  std::vector<Attempt*> open;
  for (Attempt& each : tried_) {
    const bool unknown = each.bound_bytes <= budget_bytes && budget_bytes < each.arena_bytes;
    if (unknown && each.seconds < quicker_than) open.push_back(&each);
  }
  std::ranges::stable_sort(open, {}, &Attempt::seconds);
  for (Attempt* each : open) {
    place_as_program(*each);
    if (each->arena_bytes <= budget_bytes) return;
  }
}

// Of all plans within the time the least arena, of equal ones the quickest. Where a glance leaves
// that open, the most promising are placed as programs.
const Attempt& RecomputeSearch::least_arena(double most_seconds) {
  constexpr int kMostPlaced = 16;
  const auto size = [](const Attempt& each) { return std::pair(each.arena_bytes, each.seconds); };
  Attempt* least = nullptr;
  for (int i = 0; i <= kMostPlaced; ++i) {
    least = nullptr;
    for (Attempt& each : tried_) {
      if (each.seconds > most_seconds) continue;
      if (least == nullptr || size(each) < size(*least)) least = &each;
    }
    Attempt* open = nullptr;
    for (Attempt& each : tried_) {
      const bool may_be = each.seconds <= most_seconds && each.bound_bytes < each.arena_bytes &&
                          std::pair(each.bound_bytes, each.seconds) < size(*least);
      if (may_be && (open == nullptr || size(each) < size(*open))) open = &each;
    }
    if (open == nullptr) break;
    place_as_program(*open);
  }
  return *least;
}

Attempt RecomputeSearch::quicker_than(double max_overhead) {
  const double most = model_.seconds * (1.0 + max_overhead);
  const Attempt pinned = as_pinned();
  if (pinned.rematerialized_nodes > 0 && pinned.seconds > most) {
    throw Error(ErrorCode::kUsage,
                fmt::format("what is pinned to be recomputed takes {:.2f} % more time, {:.2f} % "
                            "are asked for at most",
                            100.0 * (pinned.seconds / model_.seconds - 1.0), 100.0 * max_overhead))
        .hint("pin less, or allow more");
  }
  try_always();
  std::int64_t low = planner_.least_bytes();
  std::int64_t high = planner_.plain_peak_bytes();
  constexpr int kAttempts = 10;
  for (int i = 0; i < kAttempts && low < high; ++i) {
    const std::int64_t middle = low + (high - low) / 2;
    std::optional<PlannedOrder> planned = planner_.plan(middle, memplan::RematEffort::kSearch);
    const bool quick = planned && planned->seconds <= most;
    (quick ? high : low) = middle;
    if (quick) attempt({.order = {.units = std::move(planned->order), .in_host = {}}}, {});
  }
  if (link_) try_offload_within(most);
  return least_arena(most);
}

// The model's bytes and the arena differ by alignment, results in place, and gaps. So quick plans
// find the most bytes of the model whose plan fits, and the search goes on from there: down until
// its plan fits, then up half the way to what did not.
void RecomputeSearch::explore(std::int64_t budget_bytes) {
  std::int64_t fits = planner_.least_bytes();
  std::int64_t too_much = planner_.plain_peak_bytes();
  const std::int64_t stride = (too_much - fits) / kGrid;
  const Closeness closeness{.budget_bytes = budget_bytes};
  for (int i = 0; i < kBisections; ++i) {
    const std::int64_t middle = fits + (too_much - fits) / 2;
    const std::optional<std::int64_t> arena =
        arena_at(middle, memplan::RematEffort::kRepair, closeness);
    (arena && *arena <= budget_bytes ? fits : too_much) = middle;
  }
  const auto fit = [&](std::int64_t model_bytes) {
    const std::optional<std::int64_t> arena =
        arena_at(model_bytes, memplan::RematEffort::kSearch, closeness);
    return arena && *arena <= budget_bytes;
  };
  int left = kRefinements;
  for (; left > 0 && !fit(fits); --left) {
    too_much = fits;
    fits = std::max(planner_.least_bytes(), fits - stride / 2);
  }
  if (left == kRefinements) too_much = std::max(too_much, fits + stride);
  for (; left > 1; --left) {
    const std::int64_t middle = fits + (too_much - fits) / 2;
    (fit(middle) ? fits : too_much) = middle;
  }
}

// The least arenas for which plans are found at all, whatever was asked before: the least of them
// is what a refusal names, so this budget must find it too.
void RecomputeSearch::try_deepest() {
  RecomputePlanner fresh(model_, watch_.stop);
  std::int64_t without = fresh.least_bytes();
  std::int64_t with = fresh.plain_peak_bytes();
  for (int i = 0; i < kBisections; ++i) {
    const std::int64_t middle = without + (with - without) / 2;
    std::optional<PlannedOrder> planned = fresh.plan(middle, memplan::RematEffort::kSearch);
    (planned ? with : without) = middle;
    if (planned) attempt({.order = {.units = std::move(planned->order), .in_host = {}}}, {});
  }
}

void RecomputeSearch::refuse(std::int64_t budget_bytes) {
  auto hungriest = static_cast<std::size_t>(planner_.hungriest_unit());
  // What holds results and computes nothing needs them because of what made them.
  while (model_.units[hungriest].nodes.empty()) {
    hungriest = static_cast<std::size_t>(model_.units[hungriest].inputs.front());
  }
  const Node& node = graph_.node(model_.units[hungriest].nodes.front());
  const std::int64_t least = least_arena(std::numeric_limits<double>::infinity()).arena_bytes;
  NoPlanFits error(
      fmt::format("no plan was found for {} bytes: most are needed by node '{}' ({}), its "
                  "inputs, outputs and workspace, beside {} bytes of parameters and states",
                  budget_bytes, printable(node.name), node.op->name, model_.fixed_bytes),
      least);
  error.hint(fmt::format("the least budget with a plan is {} bytes; a smaller batch needs less",
                         error.least_bytes));
  throw error;
}

}  // namespace trainscope
