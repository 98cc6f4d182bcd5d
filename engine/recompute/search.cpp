// Orders of units placed and priced, and what is remembered of them.
#include "engine/recompute/search.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <system_error>
#include <utility>

namespace trainscope {

RecomputeSearch::RecomputeSearch(const Program& plain, const OpTable& ops,
                                 const LowerOptions& lower, StepModel model,
                                 std::optional<HostLink> link)
    : graph_(plain.graph),
      plain_arena_(plain.arena()),
      ops_(ops),
      model_(std::move(model)),
      threads_(lower.threads),
      watch_(lower.watch),
      placed_(plain, lower),
      planner_(model_, lower.watch.stop),
      link_(link) {}

RecomputeSearch::Unplaced RecomputeSearch::when_needed(const std::vector<bool>& recomputed) const {
  return {.order = on_demand_order(model_, recomputed)};
}

Attempt RecomputeSearch::place(Unplaced unplaced, const Closeness& closeness) const {
  watch_.check();
  const std::vector<Rematerialization> rematerializations =
      rematerializations_of(graph_, model_, unplaced.order);
  const ExecutionOrder order = placed_.order_with(rematerializations);
  const bool exact = closeness.as_program || rematerializations.empty();
  PlacedStep::Height height = exact ? placed_.place(order) : placed_.glance(order, closeness.first);
  const std::int64_t budget_bytes = closeness.budget_bytes;
  const bool open = height.bound_bytes <= budget_bytes && budget_bytes < height.arena_bytes;
  if (!exact && open) height = placed_.place(order);
  Attempt attempt{.order = std::move(unplaced.order),
                  .arena_bytes = height.arena_bytes,
                  .bound_bytes = exact || open ? height.arena_bytes : height.bound_bytes,
                  .method = height.method};
  for (const Rematerialization& each : rematerializations)
    attempt.rematerialized_nodes += each.node != kNoNode ? 1 : 0;
  add_costs(attempt);
  return attempt;
}

const Attempt& RecomputeSearch::attempt(Unplaced unplaced, const Closeness& closeness) {
  watch_.report({.work = "recompute", .done = static_cast<std::int64_t>(tried_.size())});
  return tried_.emplace_back(place(std::move(unplaced), closeness));
}

void RecomputeSearch::place_as_program(Attempt& attempt) const {
  attempt = place({.order = std::move(attempt.order)}, {.as_program = true});
}

// Neighbours in the list are mostly placed best by the same method. The list is cut into slices
// whatever the number of threads, so that the outcome does not depend on it.
void RecomputeSearch::glance_at(std::vector<Unplaced> list) {
  constexpr std::size_t kSlices = 8;
  std::vector<Attempt> placed(list.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t slice = next++; slice < kSlices; slice = next++) {
      std::string_view first;
      for (std::size_t i = list.size() * slice / kSlices; i < list.size() * (slice + 1) / kSlices;
           ++i) {
        placed[i] = place(std::move(list[i]), {.first = first});
        first = placed[i].method;
      }
    }
  };
  const int most_helpers = std::min(threads_, static_cast<int>(kSlices)) - 1;
  std::vector<std::future<void>> helpers;
  try {
    while (static_cast<int>(helpers.size()) < most_helpers) {
      helpers.push_back(std::async(std::launch::async, work));
    }
  } catch (const std::system_error&) {
    // As many as the system gives.
  }
  work();
  for (std::future<void>& helper : helpers) helper.get();
  std::ranges::move(placed, std::back_inserter(tried_));
}

// Transfers: of each value of a unit that comes back one to host memory, and one back each time.
void RecomputeSearch::add_costs(Attempt& attempt) const {
  std::vector<int> executions(model_.units.size(), 0);
  for (int i : attempt.order.units) {
    const auto at = static_cast<std::size_t>(i);
    const StepUnit& unit = model_.units[at];
    const int earlier = executions[at]++;
    const bool in_host = !attempt.order.in_host.empty() && attempt.order.in_host[at];
    if (earlier == 0 || !in_host) {
      attempt.seconds += unit.seconds;
      continue;
    }
    const double transfer = transfer_seconds(unit);
    attempt.seconds += earlier == 1 ? 2 * transfer : transfer;
    if (earlier == 1) attempt.host_bytes += unit.bytes;
  }
}

Attempt RecomputeSearch::on_demand(const std::vector<bool>& recomputed) {
  return attempt(when_needed(recomputed), {.as_program = true});
}

Attempt RecomputeSearch::as_pinned() {
  std::vector<bool> recomputed(model_.units.size(), false);
  apply_pins(recomputed);
  return on_demand(recomputed);
}

RecomputePlan RecomputeSearch::realise(const Attempt& attempt) const {
  RecomputePlan plan{.rematerializations = rematerializations_of(graph_, model_, attempt.order),
                     .host_bytes = attempt.host_bytes,
                     .plain_bytes = plain_arena_.bytes,
                     .plain_seconds = model_.seconds,
                     .seconds = attempt.seconds};
  const ExecutionOrder order = placed_.order_with(plan.rematerializations);
  plan.arena_bytes = placed_.place(order).arena_bytes;
  plan.graph = rematerialized_graph(graph_, ops_, order);
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

void RecomputeSearch::apply_pins(std::vector<bool>& recomputed) const {
  for (std::size_t i = 0; i < recomputed.size(); ++i) {
    recomputed[i] = (recomputed[i] || model_.units[i].recompute) && !model_.units[i].keep;
  }
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

}  // namespace trainscope
