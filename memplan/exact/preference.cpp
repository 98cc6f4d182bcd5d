// Orders by width, area and most bytes alive, and orders learned from conflicts.
#include "memplan/exact/preference.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

// What earlier attempts have found counts less with each one.
constexpr double kForget = 0.9;

// Larger keys go first. Doubles, because an area (units x time) can be beyond int64.
using Key = std::array<double, 3>;

Ranks rank_by(const std::vector<Key>& keys) {
  std::vector<int32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  Ranks ranks(keys.size());
  for (size_t i = 0; i < order.size(); ++i) {
    ranks[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
  return ranks;
}

// For each box the most units alive in one of its slots.
std::vector<int64_t> most_units_alive(const SearchModel& model) {
  std::vector<int64_t> live(static_cast<size_t>(model.slot_count), 0);
  const auto add = [&](const auto& box) {
    for (int32_t slot = box.first_slot; slot < box.end_slot; ++slot) {
      live[static_cast<size_t>(slot)] += box.size;
    }
  };
  for (const SearchBox& box : model.boxes) add(box);
  for (const PinnedBox& box : model.pinned) add(box);
  std::vector<int64_t> most;
  for (const SearchBox& box : model.boxes) {
    most.push_back(*std::max_element(live.begin() + box.first_slot, live.begin() + box.end_slot));
  }
  return most;
}

// Not std::pow, whose last bit differs between machines.
double power(double base, int exponent) {
  double product = 1;
  for (int i = 0; i < exponent; ++i) product *= base;
  return product;
}

double length(const SearchBox& box) { return static_cast<double>(box.end_slot - box.first_slot); }

}  // namespace

std::vector<Preference> make_preferences(const SearchModel& model,
                                         std::span<const double> durations) {
  const std::vector<int64_t> alive = most_units_alive(model);
  std::vector<Key> wat;
  std::vector<Key> taw;
  std::vector<Key> twa;
  std::vector<Key> in_slots;
  for (size_t i = 0; i < model.boxes.size(); ++i) {
    const auto size = static_cast<double>(model.boxes[i].size);
    const double width = durations[i];
    const double area = width * size;
    const auto total = static_cast<double>(alive[i]);
    wat.push_back({width, area, total});
    taw.push_back({total, area, width});
    twa.push_back({total, width, area});
    in_slots.push_back({length(model.boxes[i]) * size, width, total});
  }
  constexpr Exponents kConflicts = {.conflict = 1, .size = 0};
  constexpr Exponents kConflictsAndSize = {.conflict = 2, .size = 1};
  return {{.first = rank_by(wat), .learned_by = kConflicts},
          {.first = rank_by(taw), .learned_by = kConflictsAndSize},
          {.first = rank_by(twa), .learned_by = kConflicts},
          {.first = rank_by(in_slots), .learned_by = kConflictsAndSize}};
}

ConflictMemory::ConflictMemory(std::shared_ptr<const SearchModel> model, Preference preference)
    : model_(std::move(model)),
      preference_(std::move(preference)),
      of_this_attempt_(static_cast<size_t>(model_->slot_count), 0),
      weight_(static_cast<size_t>(model_->slot_count), 0) {}

Ranks ConflictMemory::learn() {
  const double most =
      std::max(1.0, of_this_attempt_.empty()
                        ? 0.0
                        : *std::max_element(of_this_attempt_.begin(), of_this_attempt_.end()));
  for (size_t slot = 0; slot < weight_.size(); ++slot) {
    weight_[slot] = kForget * weight_[slot] + of_this_attempt_[slot] / most;
    of_this_attempt_[slot] = 0;
  }
  const Exponents& by = preference_.learned_by;
  std::vector<Key> keys;
  for (size_t i = 0; i < model_->boxes.size(); ++i) {
    const SearchBox& box = model_->boxes[i];
    const double conflicts =
        std::accumulate(weight_.begin() + box.first_slot, weight_.begin() + box.end_slot, 0.0);
    const double weight =
        power(conflicts, by.conflict) * power(static_cast<double>(box.size), by.size);
    keys.push_back({weight, -static_cast<double>(preference_.first[i]), 0});
  }
  return rank_by(keys);
}

}  // namespace trainscope::memplan
