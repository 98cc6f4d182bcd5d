// The memory-time plane of a plan: every buffer of the device's arena as a rectangle, the bytes
// that are alive, and what of both a view shows.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "engine/bundle/plan_record.h"

namespace trainscope::gui {

// Times [begin, end) by bytes [offset, offset + bytes).
struct MemoryRectangle {
  std::uint32_t buffer = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  BufferClass holds = BufferClass::kActivation;
  bool recomputed = false;  // what writes it first runs a second time
};

struct MemoryMap {
  std::vector<MemoryRectangle> rectangles = {};  // by begin
  std::vector<std::int64_t> live = {};           // bytes alive at each time
  std::vector<std::int64_t> touched = {};        // bytes that the calls of each time read and write
  std::vector<std::int64_t> bound = {};          // bytes bound at each time, where it was measured
  std::vector<std::uint32_t> call_at = {};       // the first call of each time; kNoRow: none
  std::uint32_t times = 0;
  std::uint32_t backward_begin = 0;  // the first time of each phase
  std::uint32_t update_begin = 0;
  std::uint32_t peak_time = 0;
  std::int64_t peak_bytes = 0;  // alive at once
  std::int64_t arena_bytes = 0;
  std::int64_t bound_bytes = 0;
  bool proven = false;
};

MemoryMap memory_map(const PlanView& plan);

// Alive at a time, the largest first.
std::vector<std::uint32_t> holders_at(const PlanView& plan, std::uint32_t time);

// What a view of it shows: times across, bytes up.
struct MemoryRange {
  double first_time = 0.0;
  double last_time = 0.0;
  double first_byte = 0.0;
  double last_byte = 0.0;

  bool operator==(const MemoryRange&) const = default;
};
MemoryRange whole_range(const MemoryMap& map);
// A range that `factor` times as much (times and bytes) is seen in; (x, y) are shares of the view
// that stay where they are, from the left and from the bottom. Stays within the map.
MemoryRange zoomed(const MemoryMap& map, const MemoryRange& range, double factor, double x,
                   double y);
// The rectangle in the middle, over a third of the range's times and bytes, as far as that is
// within the map.
MemoryRange range_around(const MemoryMap& map, const MemoryRectangle& rectangle);
MemoryRange moved(const MemoryMap& map, const MemoryRange& range, double times, double bytes);

// A rectangle on the screen, from the left upper corner of a view.
struct MemoryBox {
  std::uint32_t index = 0;  // in the map's rectangles
  float x = 0.0f;
  float y = 0.0f;
  float width = 0.0f;
  float height = 0.0f;
};

struct MemoryFrame {
  std::vector<MemoryBox> boxes = {};
  std::size_t merged = 0;  // boxes below a pixel that stand where another one is drawn
  // The most bytes alive at the times of each pixel column, those that are touched there, and those
  // that were bound there; the last is empty where it was not measured.
  std::vector<std::int64_t> live = {};
  std::vector<std::int64_t> touched = {};
  std::vector<std::int64_t> bound = {};
};

// `width` and `height` in pixels. Reuses the frame's lists.
void frame_memory(const MemoryMap& map, const MemoryRange& range, float width, float height,
                  MemoryFrame& frame);
// The index of the rectangle at a time and byte; kNoRow: none.
std::uint32_t rectangle_at(const MemoryMap& map, double time, double byte);

}  // namespace trainscope::gui
