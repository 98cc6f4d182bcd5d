// A profile's events as rows of spans that do not overlap, and its counters as series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/views/selection.h"
#include "profiler/analysis/device_time.h"
#include "profiler/store/event_file.h"

namespace trainscope::gui {

// Events by their number in the file.
class EventIndex {
 public:
  EventIndex() = default;
  explicit EventIndex(profiler::EventView events);

  std::size_t size() const { return size_; }
  profiler::Event event(std::uint32_t i) const {
    const Place place = find(i);
    return place.chunk->event(place.at);
  }
  std::int64_t begin_ns(std::uint32_t i) const {
    const Place place = find(i);
    return place.chunk->begin_ns[place.at];
  }

 private:
  struct Place {
    const profiler::EventChunk* chunk;
    std::size_t at;
  };
  static constexpr std::uint32_t kPageBits = 10;
  Place find(std::uint32_t i) const {
    std::size_t chunk = page_[i >> kPageBits];
    while (i >= ends_[chunk]) ++chunk;
    const std::size_t begin = chunk == 0 ? 0 : ends_[chunk - 1];
    return {.chunk = &events_.chunks[chunk], .at = i - begin};
  }

  profiler::EventView events_;
  std::vector<std::size_t> ends_;    // of each chunk, in numbers of events
  std::vector<std::uint32_t> page_;  // the chunk of every 1024th event
  std::size_t size_ = 0;
};

// How deep a span is, for rows below each other.
enum class SpanLevel : std::uint8_t { kStep, kPart, kSection, kCall, kBodyCall, kWork };
inline constexpr std::size_t kSpanLevels = 6;
// "steps", "parts", "sections", "calls", "calls of bodies", "work".
std::string_view name_of(SpanLevel level);
SpanLevel level_of(profiler::EventKind kind);

struct TimelineRow {
  std::uint16_t thread = 0;  // 0: the one that drives the steps
  SpanLevel level = SpanLevel::kCall;
  std::int32_t lane = 0;                   // above 0: of spans that overlap those of the row before
  std::vector<std::uint32_t> events = {};  // by begin, one after the other
};

struct CounterPoint {
  std::int64_t ns = 0;
  std::uint32_t step = 0;
  double value = 0.0;
};

struct CounterSeries {
  profiler::EventKind kind = profiler::EventKind::kLoss;
  std::vector<CounterPoint> points = {};  // by time
  double least = 0.0;
  double greatest = 0.0;
};

struct StepSpan {
  std::uint32_t step = 0;  // its number
  TimeRange range = {};
};

struct TimelineData {
  EventIndex index = {};
  std::vector<TimelineRow> rows = {};  // by thread, level and lane
  std::vector<StepSpan> steps = {};    // by time
  std::vector<CounterSeries> counters = {};
  TimeRange whole = {};
  profiler::DeviceTime device = {};  // of a device whose own library recorded the calls

  // Where a row's events begin that end after `ns`: a position in its events.
  std::size_t first_ending_after(const TimelineRow& row, std::int64_t ns) const;
  // ... that end at `ns` or later, from the position `from` on: near ones are found quickly.
  std::size_t next_ending(const TimelineRow& row, std::int64_t ns, std::size_t from) const;
};

// Four bytes a span besides the file's own, and 32 a call of a device.
TimelineData timeline_data(const profiler::EventView& events);

}  // namespace trainscope::gui
