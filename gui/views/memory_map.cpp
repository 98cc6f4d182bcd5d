// Rectangles by begin; a view's boxes below a pixel are drawn once a pixel.
#include "gui/views/memory_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "engine/ir/provenance.h"

namespace trainscope::gui {
namespace {

bool is_recomputed(const PlanView& plan, const PlanBuffer& buffer) {
  if (buffer.owner_kind != BufferOwner::kValue || buffer.owner >= plan.values.size()) return false;
  const std::uint32_t producer = plan.values[buffer.owner].producer;
  return producer != kNoRow && plan.text(plan.nodes[producer].pass) == kRematerializedBy;
}

std::vector<MemoryRectangle> rectangles_of(const PlanView& plan) {
  std::vector<MemoryRectangle> rectangles;
  for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (!is_in_arena(buffer) || buffer.bytes <= 0 || buffer.end <= buffer.begin) continue;
    rectangles.push_back({.buffer = i,
                          .begin = buffer.begin,
                          .end = buffer.end,
                          .offset = buffer.offset,
                          .bytes = buffer.bytes,
                          .holds = buffer.holds,
                          .recomputed = is_recomputed(plan, buffer)});
  }
  std::ranges::stable_sort(rectangles, {}, &MemoryRectangle::begin);
  return rectangles;
}

// First times of phases, first calls, and bytes that calls touch.
void take_calls(const PlanView& plan, MemoryMap& map) {
  map.touched.assign(map.times, 0);
  map.call_at.assign(map.times, kNoRow);
  map.backward_begin = map.update_begin;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    if (call.time >= map.times) continue;
    if (map.call_at[call.time] == kNoRow) map.call_at[call.time] = i;
    map.touched[call.time] += call.bytes_read + call.bytes_written;
    if (call.phase == PlanPhase::kBackward) {
      map.backward_begin = std::min(map.backward_begin, call.time);
    }
  }
}

}  // namespace

MemoryMap memory_map(const PlanView& plan) {
  MemoryMap map{.rectangles = rectangles_of(plan),
                .live = live_bytes(plan),
                .times = plan.facts().times,
                .update_begin = plan.facts().update_begin,
                .arena_bytes = plan.arena().bytes,
                .bound_bytes = plan.arena().lower_bound_bytes,
                .proven = plan.arena().proven != 0};
  take_calls(plan, map);
  const MemoryPeak peak = memory_peak(plan);
  map.peak_time = peak.time;
  map.peak_bytes = peak.live_bytes;
  return map;
}

std::vector<std::uint32_t> holders_at(const PlanView& plan, std::uint32_t time) {
  std::vector<std::uint32_t> alive = alive_at(plan, time);
  std::ranges::stable_sort(alive, std::ranges::greater(),
                           [&plan](std::uint32_t i) { return plan.buffers[i].bytes; });
  return alive;
}

MemoryRange whole_range(const MemoryMap& map) {
  return {.first_time = 0.0,
          .last_time = std::max(1.0, static_cast<double>(map.times)),
          .first_byte = 0.0,
          .last_byte = std::max(1.0, static_cast<double>(map.arena_bytes))};
}

namespace {

// [first, last) moved so that it lies within [0, end), or all of that.
void keep_within(double& first, double& last, double end) {
  const double length = std::min(last - first, end);
  first = std::clamp(first, 0.0, end - length);
  last = first + length;
}

MemoryRange kept_within(const MemoryMap& map, MemoryRange range) {
  const MemoryRange whole = whole_range(map);
  keep_within(range.first_time, range.last_time, whole.last_time);
  keep_within(range.first_byte, range.last_byte, whole.last_byte);
  return range;
}

// Times first, then bytes.
struct RangePlace {
  std::array<double, 2> size = {};
  std::array<double, 2> point = {};   // that is to be
  std::array<double, 2> shares = {};  // ... at these shares of the range
};

// Of a size that can be read, and within the map.
MemoryRange range_at(const MemoryMap& map, const RangePlace& place) {
  const MemoryRange whole = whole_range(map);
  const double times = std::clamp(place.size[0], std::min(4.0, whole.last_time), whole.last_time);
  const double bytes = std::clamp(place.size[1], std::min(256.0, whole.last_byte), whole.last_byte);
  const double first_time = place.point[0] - place.shares[0] * times;
  const double first_byte = place.point[1] - place.shares[1] * bytes;
  return kept_within(map, {.first_time = first_time,
                           .last_time = first_time + times,
                           .first_byte = first_byte,
                           .last_byte = first_byte + bytes});
}

}  // namespace

MemoryRange zoomed(const MemoryMap& map, const MemoryRange& range, double factor, double x,
                   double y) {
  const double times = range.last_time - range.first_time;
  const double bytes = range.last_byte - range.first_byte;
  return range_at(map, {.size = {times * factor, bytes * factor},
                        .point = {range.first_time + x * times, range.first_byte + y * bytes},
                        .shares = {x, y}});
}

MemoryRange range_around(const MemoryMap& map, const MemoryRectangle& rectangle) {
  const auto begin = static_cast<double>(rectangle.begin);
  const auto offset = static_cast<double>(rectangle.offset);
  const double times = static_cast<double>(rectangle.end) - begin;
  const auto bytes = static_cast<double>(rectangle.bytes);
  return range_at(map, {.size = {3.0 * times, 3.0 * bytes},
                        .point = {begin + 0.5 * times, offset + 0.5 * bytes},
                        .shares = {0.5, 0.5}});
}

MemoryRange moved(const MemoryMap& map, const MemoryRange& range, double times, double bytes) {
  return kept_within(map, {.first_time = range.first_time + times,
                           .last_time = range.last_time + times,
                           .first_byte = range.first_byte + bytes,
                           .last_byte = range.last_byte + bytes});
}

namespace {

// Pixels that have a box below a pixel already.
class SeenPixels {
 public:
  SeenPixels(float width, float height)
      : width_(static_cast<std::size_t>(std::max(1.0f, width)) + 1),
        height_(static_cast<std::size_t>(std::max(1.0f, height)) + 1),
        seen_(width_ * height_, false) {}

  // True the first time.
  bool take(float x, float y) {
    const auto column = std::min(width_ - 1, static_cast<std::size_t>(std::max(0.0f, x)));
    const auto row = std::min(height_ - 1, static_cast<std::size_t>(std::max(0.0f, y)));
    const std::size_t at = row * width_ + column;
    if (seen_[at]) return false;
    seen_[at] = true;
    return true;
  }

 private:
  std::size_t width_;
  std::size_t height_;
  std::vector<bool> seen_;
};

void frame_curves(const MemoryMap& map, const MemoryRange& range, float width, MemoryFrame& frame) {
  const auto columns = static_cast<std::size_t>(std::max(1.0f, width));
  frame.live.assign(columns, 0);
  frame.touched.assign(columns, 0);
  frame.bound.assign(map.bound.empty() ? 0 : columns, 0);
  if (map.live.empty()) return;
  const double per_column = (range.last_time - range.first_time) / static_cast<double>(columns);
  const std::size_t last = map.live.size() - 1;
  for (std::size_t column = 0; column < columns; ++column) {
    const double from = range.first_time + static_cast<double>(column) * per_column;
    const auto begin = std::min(last, static_cast<std::size_t>(std::max(0.0, from)));
    const auto end = static_cast<std::size_t>(std::max(0.0, std::ceil(from + per_column)));
    for (std::size_t time = begin; time <= last && (time < end || time == begin); ++time) {
      frame.live[column] = std::max(frame.live[column], map.live[time]);
      if (time < map.touched.size()) {
        frame.touched[column] = std::max(frame.touched[column], map.touched[time]);
      }
      if (time < map.bound.size()) {
        frame.bound[column] = std::max(frame.bound[column], map.bound[time]);
      }
    }
  }
}

}  // namespace

void frame_memory(const MemoryMap& map, const MemoryRange& range, float width, float height,
                  MemoryFrame& frame) {
  frame.boxes.clear();
  frame.merged = 0;
  const double across = static_cast<double>(width) / (range.last_time - range.first_time);
  const double up = static_cast<double>(height) / (range.last_byte - range.first_byte);
  SeenPixels seen(width, height);
  for (std::uint32_t i = 0; i < map.rectangles.size(); ++i) {
    const MemoryRectangle& rectangle = map.rectangles[i];
    if (static_cast<double>(rectangle.begin) >= range.last_time) break;
    const double end_byte = static_cast<double>(rectangle.offset + rectangle.bytes);
    const bool outside = static_cast<double>(rectangle.end) <= range.first_time ||
                         end_byte <= range.first_byte ||
                         static_cast<double>(rectangle.offset) >= range.last_byte;
    if (outside) continue;
    const double x0 = (static_cast<double>(rectangle.begin) - range.first_time) * across;
    const double x1 = (static_cast<double>(rectangle.end) - range.first_time) * across;
    const double y0 = (range.last_byte - end_byte) * up;
    const double y1 = (range.last_byte - static_cast<double>(rectangle.offset)) * up;
    const MemoryBox box{
        .index = i,
        .x = static_cast<float>(std::max(0.0, x0)),
        .y = static_cast<float>(std::max(0.0, y0)),
        .width = static_cast<float>(std::min(x1, static_cast<double>(width)) - std::max(0.0, x0)),
        .height =
            static_cast<float>(std::min(y1, static_cast<double>(height)) - std::max(0.0, y0))};
    const bool tiny = box.width < 1.0f && box.height < 1.0f;
    if (tiny && !seen.take(box.x, box.y)) {
      ++frame.merged;
      continue;
    }
    frame.boxes.push_back(box);
  }
  frame_curves(map, range, width, frame);
}

std::uint32_t rectangle_at(const MemoryMap& map, double time, double byte) {
  for (std::uint32_t i = 0; i < map.rectangles.size(); ++i) {
    const MemoryRectangle& rectangle = map.rectangles[i];
    if (static_cast<double>(rectangle.begin) > time) break;
    const bool inside = time < static_cast<double>(rectangle.end) &&
                        byte >= static_cast<double>(rectangle.offset) &&
                        byte < static_cast<double>(rectangle.offset + rectangle.bytes);
    if (inside) return i;
  }
  return kNoRow;
}

}  // namespace trainscope::gui
