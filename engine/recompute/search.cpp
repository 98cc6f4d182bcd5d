// Plans of the planner at budgets around the one asked for, and families of simple plans.
#include "engine/recompute/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/recompute/clusters.h"

namespace trainscope {
namespace {

// Of the range between the least bytes and the plain peak: a step of the search.
constexpr int kGrid = 16;
constexpr int kBisections = 8;
constexpr int kRefinements = 5;
// Plans of the planner's front that are placed.
constexpr std::size_t kMostOfFront = 128;

// All up to `most`, else some evenly, the last among them.
std::vector<std::vector<bool>> some_of(std::vector<std::vector<bool>> all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<std::vector<bool>> some;
  for (std::size_t i = 1; i <= most; ++i) some.push_back(std::move(all[all.size() * i / most - 1]));
  return some;
}

}  // namespace

RecomputeSearch::RecomputeSearch(const Program& plain, const OpTable& ops,
                                 const LowerOptions& lower, StepModel model,
                                 std::optional<HostLink> link)
    : plain_(plain),
      ops_(ops),
      model_(std::move(model)),
      threads_(lower.threads),
      placed_(plain, lower),
      planner_(model_),
      link_(link) {}

RecomputeSearch::Unplaced RecomputeSearch::when_needed(const std::vector<bool>& again) const {
  return {.order = on_demand_order(model_, again)};
}

Attempt RecomputeSearch::place(Unplaced unplaced, const Closeness& closeness) const {
  const std::vector<Repeat> repeats = repeats_of(plain_.graph, model_, unplaced.order);
  const RunOrder order = placed_.with_repeats(repeats);
  const bool exact = closeness.as_program || repeats.empty();
  PlacedStep::Height height = exact ? placed_.place(order) : placed_.glance(order, closeness.first);
  const std::int64_t budget_bytes = closeness.budget_bytes;
  if (height.bound_bytes <= budget_bytes && budget_bytes < height.arena_bytes) {
    height = placed_.place(order);
  }
  Attempt attempt{.order = std::move(unplaced.order),
                  .arena_bytes = height.arena_bytes,
                  .method = height.method};
  for (const Repeat& repeat : repeats) attempt.repeats += repeat.node != kNoNode ? 1 : 0;
  add_costs(attempt);
  return attempt;
}

const Attempt& RecomputeSearch::attempt(Unplaced unplaced, const Closeness& closeness) {
  return tried_.emplace_back(place(std::move(unplaced), closeness));
}

// Neighbours in the list are mostly laid out best by the same method. The list is cut into chains
// whatever the number of threads, so that the outcome does not depend on it.
void RecomputeSearch::glance_at(std::vector<Unplaced> list) {
  constexpr std::size_t kChains = 8;
  std::vector<Attempt> placed(list.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t chain = next++; chain < kChains; chain = next++) {
      std::string_view first;
      for (std::size_t i = list.size() * chain / kChains; i < list.size() * (chain + 1) / kChains;
           ++i) {
        placed[i] = place(std::move(list[i]), {.first = first});
        first = placed[i].method;
      }
    }
  };
  std::vector<std::future<void>> helpers;
  while (static_cast<int>(helpers.size()) + 1 < threads_) {
    helpers.push_back(std::async(std::launch::async, work));
  }
  work();
  for (std::future<void>& helper : helpers) helper.get();
  std::ranges::move(placed, std::back_inserter(tried_));
}

// Of each value that the unit keeps, one way.
double RecomputeSearch::transfer_seconds(const StepUnit& unit) const {
  double seconds = 0.0;
  for (ValueId v : unit.kept) {
    const auto bytes = static_cast<std::int64_t>(plain_.graph.value(v).type.bytes());
    seconds += link_ ? link_->seconds(bytes) : 0.0;
  }
  return seconds;
}

// Transfers: of each value of a unit that comes back one to host memory, and one back each time.
void RecomputeSearch::add_costs(Attempt& attempt) const {
  std::vector<int> runs(model_.units.size(), 0);
  for (int i : attempt.order.units) {
    const auto at = static_cast<std::size_t>(i);
    const StepUnit& unit = model_.units[at];
    const int run = runs[at]++;
    const bool in_host = !attempt.order.in_host.empty() && attempt.order.in_host[at];
    if (run == 0 || !in_host) {
      attempt.seconds += unit.seconds;
      continue;
    }
    const double transfer = transfer_seconds(unit);
    attempt.seconds += run == 1 ? 2 * transfer : transfer;
    if (run == 1) attempt.host_bytes += unit.bytes;
  }
}

Attempt RecomputeSearch::on_demand(const std::vector<bool>& again) {
  return attempt(when_needed(again), {.as_program = true});
}

Attempt RecomputeSearch::as_pinned() {
  std::vector<bool> again(model_.units.size(), false);
  apply_pins(again);
  return on_demand(again);
}

RecomputePlan RecomputeSearch::realise(const Attempt& attempt) const {
  RecomputePlan plan{.repeats = repeats_of(plain_.graph, model_, attempt.order),
                     .host_bytes = attempt.host_bytes,
                     .plain_bytes = plain_.arena_bytes,
                     .plain_seconds = model_.seconds,
                     .seconds = attempt.seconds};
  const RunOrder order = placed_.with_repeats(plan.repeats);
  plan.arena_bytes = placed_.place(order).arena_bytes;
  plan.graph = with_repeats(plain_.graph, ops_, order);
  return plan;
}

const Attempt* RecomputeSearch::best_within(std::int64_t budget_bytes) const {
  const Attempt* best = nullptr;
  for (const Attempt& each : tried_) {
    const bool fits = each.arena_bytes <= budget_bytes;
    if (fits && (best == nullptr || each.seconds < best->seconds)) best = &each;
  }
  return best;
}

Attempt RecomputeSearch::within(std::int64_t budget_bytes) {
  Attempt least_time = as_pinned();
  if (least_time.arena_bytes <= budget_bytes) return least_time;
  explore(budget_bytes);
  try_families(budget_bytes);
  if (link_) try_offload(budget_bytes);
  if (best_within(budget_bytes) == nullptr) try_deepest();
  const Attempt* best = best_within(budget_bytes);
  if (best == nullptr) refuse(budget_bytes);
  return *best;
}

void RecomputeSearch::place_front() {
  if (std::exchange(front_placed_, true)) return;
  as_pinned();
  std::vector<Unplaced> list;
  for (const UnitSets& sets : families()) {
    for (const std::vector<bool>& again : sets) list.push_back(when_needed(again));
  }
  glance_at(std::move(list));
  if (link_) try_offload_everywhere();
}

std::optional<Attempt> RecomputeSearch::nearby(std::int64_t budget_bytes) {
  place_front();
  const Attempt* known = best_within(budget_bytes);
  if (known == nullptr) return std::nullopt;
  // What is in the arena but not in the planner's bytes is about the same for neighbours.
  const std::int64_t unseen = plain_.arena_bytes - planner_.plain_peak_bytes();
  const bool beyond_front = budget_bytes - unseen < planner_.least_front_bytes();
  if (known->arena_bytes == budget_bytes || beyond_front) return *known;
  arena_at(budget_bytes - unseen, memplan::RematEffort::kRepair, {.budget_bytes = budget_bytes});
  return *best_within(budget_bytes);
}

// At evenly spaced budgets what a greedy search makes of the neighbours in the front.
void RecomputeSearch::refine_front() {
  constexpr std::int64_t kBudgets = 100;
  place_front();
  const std::int64_t least = planner_.least_front_bytes();
  const std::int64_t most = planner_.plain_peak_bytes();
  std::vector<Unplaced> list;
  for (std::int64_t i = 0; i < kBudgets; ++i) {
    const std::int64_t budget = least + (most - least) / kBudgets * i;
    std::optional<PlannedOrder> planned = planner_.plan(budget, memplan::RematEffort::kRepair);
    if (planned) list.push_back({.order = {.units = std::move(planned->order), .in_host = {}}});
  }
  glance_at(std::move(list));
}

std::vector<Attempt> RecomputeSearch::front() {
  place_front();
  std::vector<const Attempt*> by_time;
  for (const Attempt& each : tried_) by_time.push_back(&each);
  std::ranges::sort(
      by_time, {}, [](const Attempt* each) { return std::pair(each->seconds, each->arena_bytes); });
  std::vector<Attempt> front;
  for (const Attempt* each : by_time) {
    if (front.empty() || each->arena_bytes < front.back().arena_bytes) front.push_back(*each);
  }
  return front;
}

Attempt RecomputeSearch::quicker_than(double max_overhead) {
  const double most = model_.seconds * (1.0 + max_overhead);
  Attempt best = as_pinned();
  place_front();
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
  for (const Attempt& each : tried_) {
    if (each.seconds <= most && each.arena_bytes < best.arena_bytes) best = each;
  }
  return best;
}

// The arena of the planner's plan for so many bytes of the model; none when it finds no plan.
std::optional<std::int64_t> RecomputeSearch::arena_at(std::int64_t model_bytes,
                                                      memplan::RematEffort effort,
                                                      const Closeness& closeness) {
  std::optional<PlannedOrder> planned = planner_.plan(model_bytes, effort);
  if (!planned) return std::nullopt;
  UnitOrder order{.units = std::move(planned->order), .in_host = {}};
  return attempt({.order = std::move(order)}, closeness).arena_bytes;
}

// The model's bytes and the arena differ by alignment, results in place, and gaps. So quick plans
// find the most bytes of the model whose plan fits, and the search goes on from there: down until
// its plan fits, then up half the way to what did not.
void RecomputeSearch::explore(std::int64_t budget_bytes) {
  std::int64_t fits = planner_.least_bytes();
  std::int64_t too_much = planner_.plain_peak_bytes();
  const std::int64_t step = (too_much - fits) / kGrid;
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
    fits = std::max(planner_.least_bytes(), fits - step / 2);
  }
  if (left == kRefinements) too_much = std::max(too_much, fits + step);
  for (; left > 1; --left) {
    const std::int64_t middle = fits + (too_much - fits) / 2;
    (fit(middle) ? fits : too_much) = middle;
  }
}

void RecomputeSearch::apply_pins(std::vector<bool>& again) const {
  for (std::size_t i = 0; i < again.size(); ++i) {
    again[i] = (again[i] || model_.units[i].again) && !model_.units[i].pinned;
  }
}

// Families of plans in which nothing runs more than twice, each by rising time.
const std::vector<RecomputeSearch::UnitSets>& RecomputeSearch::families() {
  if (!families_.empty()) return families_;
  const std::vector<Cluster> clusters = find_clusters(plain_.graph, model_);
  families_ = {some_of(planner_.front(), kMostOfFront),
               {level_units(model_, clusters, 1)},
               {level_units(model_, clusters, 2)}};
  for (UnitSets& sets : families_) {
    for (std::vector<bool>& again : sets) apply_pins(again);
    std::ranges::stable_sort(sets, {}, [this](const std::vector<bool>& again) {
      double seconds = 0;
      for (std::size_t i = 0; i < again.size(); ++i) {
        if (again[i]) seconds += model_.units[i].seconds;
      }
      return seconds;
    });
  }
  return families_;
}

// More time is less memory in a family, nearly: after the bisection a few quicker plans are tried
// too.
void RecomputeSearch::try_families(std::int64_t budget_bytes) {
  constexpr std::ptrdiff_t kNeighbours = 4;
  for (const UnitSets& sets : families()) {
    const auto fits = [&](const std::vector<bool>& again) {
      return attempt(when_needed(again), {.budget_bytes = budget_bytes}).arena_bytes <=
             budget_bytes;
    };
    auto first = std::ranges::partition_point(
        sets, [&fits](const std::vector<bool>& again) { return !fits(again); });
    for (auto n = std::min(kNeighbours, first - sets.begin()); n > 0; --n) fits(*--first);
  }
}

// Units whose values wait for the backward phase, the longest first, without those that run again
// and those whose transfers are mostly waiting for the link.
std::vector<int> RecomputeSearch::offload_candidates(const std::vector<bool>& again) const {
  std::vector<bool> waits(model_.units.size(), false);
  for (std::size_t i = 0; i < model_.units.size(); ++i) {
    const StepUnit& unit = model_.units[i];
    if (unit.forward && !again[i]) continue;
    for (int input : unit.inputs) waits[static_cast<std::size_t>(input)] = true;
  }
  std::vector<int> candidates;
  for (std::size_t i = 0; i < model_.units.size(); ++i) {
    const StepUnit& unit = model_.units[i];
    const double moving = static_cast<double>(unit.bytes) / link_->bytes_per_second;
    const bool worth_it = moving > link_->seconds_per_transfer;
    if (waits[i] && !again[i] && unit.offloadable && !unit.pinned && worth_it) {
      candidates.push_back(static_cast<int>(i));
    }
  }
  return candidates;
}

// What runs again beside what is offloaded: nothing, and plans of the front evenly by time.
std::vector<std::vector<bool>> RecomputeSearch::offload_bases() {
  constexpr std::size_t kBases = 12;
  std::vector<bool> nothing(model_.units.size(), false);
  apply_pins(nothing);
  std::vector<std::vector<bool>> bases = {std::move(nothing)};
  const UnitSets& front = families().front();
  for (std::size_t i = 1; i <= kBases && !front.empty(); ++i) {
    bases.push_back(front[(front.size() - 1) * i / kBases]);
  }
  return bases;
}

RecomputeSearch::Unplaced RecomputeSearch::with_offload(const std::vector<bool>& again,
                                                        std::span<const int> in_host) const {
  std::vector<bool> marked(model_.units.size(), false);
  for (int unit : in_host) marked[static_cast<std::size_t>(unit)] = true;
  return {.order = on_demand_order(model_, again, std::move(marked))};
}

// For each of the bases the fewest candidates, from the first, with which the plan fits.
void RecomputeSearch::try_offload(std::int64_t budget_bytes) {
  const auto fits = [&](const std::vector<bool>& again, std::span<const int> in_host) {
    return attempt(with_offload(again, in_host), {.budget_bytes = budget_bytes}).arena_bytes <=
           budget_bytes;
  };
  for (const std::vector<bool>& again : offload_bases()) {
    const std::vector<int> candidates = offload_candidates(again);
    std::size_t low = 0;
    std::size_t high = candidates.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (fits(again, std::span(candidates).first(middle))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    fits(again, std::span(candidates).first(low));
  }
}

// For each of the bases the most candidates whose transfers are within the time.
void RecomputeSearch::try_offload_within(double most_seconds) {
  for (const std::vector<bool>& again : offload_bases()) {
    const std::vector<int> candidates = offload_candidates(again);
    double seconds = attempt(when_needed(again), {}).seconds;
    std::size_t count = 0;
    for (; count < candidates.size(); ++count) {
      const StepUnit& unit = model_.units[static_cast<std::size_t>(candidates[count])];
      seconds += 2 * transfer_seconds(unit);
      if (seconds > most_seconds) break;
    }
    if (count > 0) attempt(with_offload(again, std::span(candidates).first(count)), {});
  }
}

void RecomputeSearch::try_offload_everywhere() {
  constexpr std::size_t kParts = 10;
  std::vector<Unplaced> list;
  for (const std::vector<bool>& again : offload_bases()) {
    const std::vector<int> candidates = offload_candidates(again);
    for (std::size_t part = 1; part <= kParts; ++part) {
      list.push_back(
          with_offload(again, std::span(candidates).first(candidates.size() * part / kParts)));
    }
  }
  glance_at(std::move(list));
}

// The least arenas for which plans are found at all, whatever was asked before: the least of them
// is what a refusal names, so this budget must find it too.
void RecomputeSearch::try_deepest() {
  RecomputePlanner fresh(model_);
  std::int64_t without = fresh.least_bytes();
  std::int64_t with = fresh.plain_peak_bytes();
  for (int i = 0; i < kBisections; ++i) {
    const std::int64_t middle = without + (with - without) / 2;
    std::optional<PlannedOrder> planned = fresh.plan(middle, memplan::RematEffort::kSearch);
    (planned ? with : without) = middle;
    if (planned) attempt({.order = {.units = std::move(planned->order), .in_host = {}}}, {});
  }
  place_front();
}

void RecomputeSearch::refuse(std::int64_t budget_bytes) {
  auto hungriest = static_cast<std::size_t>(planner_.hungriest_unit());
  // What holds results and computes nothing needs them because of what made them.
  while (model_.units[hungriest].nodes.empty()) {
    hungriest = static_cast<std::size_t>(model_.units[hungriest].inputs.front());
  }
  const Node& node = plain_.graph.node(model_.units[hungriest].nodes.front());
  const std::int64_t least = std::ranges::min(tried_, {}, &Attempt::arena_bytes).arena_bytes;
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
