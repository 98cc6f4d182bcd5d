// The search among plans in which values wait in host memory.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "engine/recompute/search.h"

namespace trainscope {

// Of each value that the unit keeps, one way.
double RecomputeSearch::transfer_seconds(const StepUnit& unit) const {
  double seconds = 0.0;
  for (ValueId v : unit.kept) {
    const auto bytes = static_cast<std::int64_t>(graph_.value(v).type.bytes());
    seconds += link_ ? link_->seconds(bytes) : 0.0;
  }
  return seconds;
}

// Units whose values wait for the backward phase, the longest first, without those that are
// recomputed. Those whose transfers are mostly waiting for the link come last.
std::vector<int> RecomputeSearch::offload_candidates(const std::vector<bool>& recomputed) const {
  std::vector<bool> waits(model_.units.size(), false);
  for (std::size_t i = 0; i < model_.units.size(); ++i) {
    const StepUnit& unit = model_.units[i];
    if (unit.forward && !recomputed[i]) continue;
    for (int input : unit.inputs) waits[static_cast<std::size_t>(input)] = true;
  }
  std::vector<int> candidates;
  for (std::size_t i = 0; i < model_.units.size(); ++i) {
    const StepUnit& unit = model_.units[i];
    if (waits[i] && !recomputed[i] && unit.offloadable && !unit.keep) {
      candidates.push_back(static_cast<int>(i));
    }
  }
  std::ranges::stable_partition(candidates, [this](int i) {
    const StepUnit& unit = model_.units[static_cast<std::size_t>(i)];
    const double moving = static_cast<double>(unit.bytes) / link_->bytes_per_second;
    return moving > link_->seconds_per_transfer;
  });
  return candidates;
}

// What is recomputed beside what is offloaded: nothing, and plans of the front evenly by time.
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

RecomputeSearch::Unplaced RecomputeSearch::with_offload(const std::vector<bool>& recomputed,
                                                        std::span<const int> in_host) const {
  std::vector<bool> marked(model_.units.size(), false);
  for (int unit : in_host) marked[static_cast<std::size_t>(unit)] = true;
  return {.order = on_demand_order(model_, recomputed, std::move(marked))};
}

// For each of the bases the fewest candidates, from the first, with which the plan fits.
void RecomputeSearch::try_offload(std::int64_t budget_bytes) {
  const auto fits = [&](const std::vector<bool>& recomputed, std::span<const int> in_host) {
    return attempt(with_offload(recomputed, in_host), {.budget_bytes = budget_bytes}).arena_bytes <=
           budget_bytes;
  };
  for (const std::vector<bool>& recomputed : offload_bases()) {
    const std::vector<int> candidates = offload_candidates(recomputed);
    std::size_t low = 0;
    std::size_t high = candidates.size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (fits(recomputed, std::span(candidates).first(middle))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    fits(recomputed, std::span(candidates).first(low));
  }
}

// For each of the bases the most candidates whose transfers are within the time.
void RecomputeSearch::try_offload_within(double most_seconds) {
  for (const std::vector<bool>& recomputed : offload_bases()) {
    const std::vector<int> candidates = offload_candidates(recomputed);
    double seconds = attempt(when_needed(recomputed), {}).seconds;
    std::size_t count = 0;
    for (; count < candidates.size(); ++count) {
      const StepUnit& unit = model_.units[static_cast<std::size_t>(candidates[count])];
      seconds += 2 * transfer_seconds(unit);
      if (seconds > most_seconds) break;
    }
    if (count > 0) attempt(with_offload(recomputed, std::span(candidates).first(count)), {});
  }
}

void RecomputeSearch::try_offload_everywhere() {
  constexpr std::size_t kTenths = 10;
  std::vector<Unplaced> list;
  for (const std::vector<bool>& recomputed : offload_bases()) {
    const std::vector<int> candidates = offload_candidates(recomputed);
    for (std::size_t tenth = 1; tenth <= kTenths; ++tenth) {
      list.push_back(with_offload(
          recomputed, std::span(candidates).first(candidates.size() * tenth / kTenths)));
    }
  }
  glance_at(std::move(list));
}

}  // namespace trainscope
