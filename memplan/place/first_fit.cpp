// First fit: boxes in some order, each at the lowest address that is free all its lifetime.
#include <algorithm>
#include <array>
#include <numeric>

#include "memplan/place/live_profile.h"
#include "memplan/place/occupancy.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;

// Larger keys go first, compared left to right; equal keys go by index, so results never depend
// on the sort. Doubles, because an area (bytes x time) overflows int64.
using Key = std::array<double, 3>;

struct Order {
  std::vector<size_t> boxes = {};
  std::vector<int64_t> smallest_from = {};  // smallest size at this position and after it
};

template <typename KeyOf>
Order order_by(const Task& task, const KeyOf& key_of) {
  std::vector<Key> keys;
  keys.reserve(task.boxes.size());
  for (const Box& box : task.boxes) keys.push_back(key_of(box));
  Order order{.boxes = std::vector<size_t>(task.boxes.size()),
              .smallest_from = std::vector<int64_t>(task.boxes.size())};
  std::iota(order.boxes.begin(), order.boxes.end(), size_t{0});
  std::sort(order.boxes.begin(), order.boxes.end(),
            [&](size_t a, size_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
  int64_t smallest = task.boxes.empty() ? 1 : task.boxes[order.boxes.back()].size_bytes;
  for (size_t i = order.boxes.size(); i-- > 0;) {
    smallest = std::min(smallest, task.boxes[order.boxes[i]].size_bytes);
    order.smallest_from[i] = smallest;
  }
  return order;
}

Placement first_fit(const Task& task, const Limits& limits, const Order& order) {
  Occupancy occupancy(task);
  std::vector<int64_t> offsets(task.boxes.size(), 0);
  int64_t height_bytes = 0;
  for (size_t i = 0; i < order.boxes.size(); ++i) {
    if (limits.give_up(i, height_bytes) || occupancy.visits() > limits.most_visits) return {};
    const Box& box = task.boxes[order.boxes[i]];
    const int64_t offset = occupancy.lowest_fit(box, task.base_bytes);
    const int64_t end_bytes = offset + box.size_bytes;
    occupancy.take({box.first_slot, box.end_slot, offset, end_bytes}, order.smallest_from[i]);
    offsets[order.boxes[i]] = offset;
    height_bytes = std::max(height_bytes, end_bytes);
  }
  return offsets;
}

double size_of(const Box& box) { return static_cast<double>(box.size_bytes); }
double duration_of(const Box& box) { return static_cast<double>(box.duration); }
double area_of(const Box& box) { return size_of(box) * duration_of(box); }

// The most bytes alive at any time of the box's lifetime.
double total_of(const LiveProfile& profile, const Box& box) {
  return static_cast<double>(profile.max_bytes(box.first_slot, box.end_slot));
}

}  // namespace

Placement place_first_fit_size(const Task& task, const Limits& limits) {
  return first_fit(task, limits, order_by(task, [](const Box& box) {
                     return Key{size_of(box), duration_of(box)};
                   }));
}

Placement place_first_fit_total_area(const Task& task, const Limits& limits) {
  const LiveProfile profile(task);
  return first_fit(task, limits, order_by(task, [&](const Box& box) {
                     return Key{total_of(profile, box), area_of(box)};
                   }));
}

Placement place_first_fit_total_duration(const Task& task, const Limits& limits) {
  const LiveProfile profile(task);
  return first_fit(task, limits, order_by(task, [&](const Box& box) {
                     return Key{total_of(profile, box), duration_of(box), size_of(box)};
                   }));
}

Placement place_first_fit_peak_duration(const Task& task, const Limits& limits) {
  const std::int32_t peak = peak_slot(task);
  return first_fit(task, limits, order_by(task, [&](const Box& box) {
                     const bool at_peak = box.first_slot <= peak && peak < box.end_slot;
                     return Key{at_peak ? 1.0 : 0.0, duration_of(box), size_of(box)};
                   }));
}

Placement place_first_fit_duration(const Task& task, const Limits& limits) {
  return first_fit(task, limits, order_by(task, [](const Box& box) {
                     return Key{duration_of(box), size_of(box)};
                   }));
}

Placement place_first_fit_area(const Task& task, const Limits& limits) {
  return first_fit(task, limits, order_by(task, [](const Box& box) {
                     return Key{area_of(box), size_of(box)};
                   }));
}

Placement place_first_fit_start(const Task& task, const Limits& limits) {
  return first_fit(task, limits, order_by(task, [](const Box& box) {
                     return Key{-static_cast<double>(box.first_slot), size_of(box)};
                   }));
}

Placement place_first_fit_end(const Task& task, const Limits& limits) {
  return first_fit(task, limits, order_by(task, [](const Box& box) {
                     return Key{static_cast<double>(box.end_slot), size_of(box)};
                   }));
}

}  // namespace trainscope::memplan
