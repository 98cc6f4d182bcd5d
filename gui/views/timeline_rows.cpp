// Spans of a level on a thread end in the order in which they begin, so that rows are sorted as
// they are read; those that are not are sorted and split.
#include "gui/views/timeline_rows.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace trainscope::gui {

using profiler::Event;
using profiler::EventChunk;
using profiler::EventKind;
using profiler::EventView;

EventIndex::EventIndex(EventView events) : events_(std::move(events)) {
  for (std::size_t chunk = 0; chunk < events_.chunks.size(); ++chunk) {
    size_ += events_.chunks[chunk].size();
    ends_.push_back(size_);
    while ((page_.size() << kPageBits) < size_) page_.push_back(static_cast<std::uint32_t>(chunk));
  }
}

std::string_view name_of(SpanLevel level) {
  static constexpr std::array<std::string_view, kSpanLevels> kNames = {
      "steps", "parts", "sections", "calls", "calls of bodies", "work"};
  return kNames[static_cast<std::size_t>(level)];
}

SpanLevel level_of(EventKind kind) {
  switch (kind) {
    case EventKind::kStep:
    case EventKind::kEvaluation:
    case EventKind::kCheckpoint:
      return SpanLevel::kStep;
    case EventKind::kStepPart:
    case EventKind::kInputs:
    case EventKind::kResults:
      return SpanLevel::kPart;
    case EventKind::kSection:
      return SpanLevel::kSection;
    case EventKind::kBodyCall:
      return SpanLevel::kBodyCall;
    case EventKind::kWork:
    case EventKind::kStart:
    case EventKind::kJoin:
    case EventKind::kIdle:
    case EventKind::kLibrary:
    case EventKind::kDeviceWork:
      return SpanLevel::kWork;
    default:
      return SpanLevel::kCall;
  }
}

namespace {

class RowSorter {
 public:
  explicit RowSorter(const EventView& events) : events_(events) {
    data_.index = EventIndex(events);
    data_.device = profiler::DeviceTime(events);
  }

  TimelineData sort() {
    count();
    data_.whole = {.begin_ns = std::numeric_limits<std::int64_t>::max(),
                   .end_ns = std::numeric_limits<std::int64_t>::min()};
    std::uint32_t number = 0;
    for (const EventChunk& chunk : events_.chunks) {
      data_.whole.begin_ns = std::min(data_.whole.begin_ns, chunk.first_ns);
      data_.whole.end_ns = std::max(data_.whole.end_ns, chunk.last_ns);
      for (std::size_t i = 0; i < chunk.size(); ++i) add(chunk, i, number++);
    }
    if (number == 0) data_.whole = {};
    for (const auto& [key, at] : rows_) mend(at);
    std::ranges::sort(data_.rows, {}, [](const TimelineRow& row) {
      return std::tuple(row.thread, row.level, row.lane);
    });
    std::ranges::sort(data_.steps, {}, [](const StepSpan& step) { return step.range.begin_ns; });
    finish_counters();
    return std::move(data_);
  }

 private:
  using Key = std::pair<std::uint16_t, SpanLevel>;

  // So that no row grows by moving.
  void count() {
    std::vector<std::size_t> counts;
    for (const EventChunk& chunk : events_.chunks) {
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        if (profiler::is_counter(chunk.kind[i])) continue;
        const std::size_t slot = slot_of(chunk, i);
        if (slot >= counts.size()) counts.resize(slot + 1, 0);
        ++counts[slot];
      }
    }
    row_of_slot_.resize(counts.size());
    for (std::size_t slot = 0; slot < counts.size(); ++slot) {
      if (counts[slot] == 0) continue;
      const Key key{static_cast<std::uint16_t>(slot / kSpanLevels),
                    static_cast<SpanLevel>(slot % kSpanLevels)};
      row_of_slot_[slot] = data_.rows.size();
      rows_.emplace(key, data_.rows.size());
      data_.rows.push_back({.thread = key.first, .level = key.second});
      data_.rows.back().events.reserve(counts[slot]);
    }
  }

  static std::size_t slot_of(const EventChunk& chunk, std::size_t i) {
    return chunk.thread[i] * kSpanLevels + static_cast<std::size_t>(level_of(chunk.kind[i]));
  }

  void add(const EventChunk& chunk, std::size_t i, std::uint32_t number) {
    if (profiler::is_of_step(chunk.kind[i])) return add_counter(chunk.event(i));
    if (profiler::is_counter(chunk.kind[i])) return;
    data_.rows[row_of_slot_[slot_of(chunk, i)]].events.push_back(number);
    if (chunk.kind[i] != EventKind::kStep || chunk.thread[i] != 0) return;
    const Event event = chunk.event(i);
    data_.steps.push_back(
        {.step = event.id, .range = {.begin_ns = event.begin_ns, .end_ns = event.end_ns()}});
  }

  void add_counter(const Event& event) {
    CounterSeries& series = counters_[event.kind];
    series.kind = event.kind;
    series.points.push_back({.ns = event.begin_ns, .step = event.id, .value = event.number()});
  }

  void finish_counters() {
    for (auto& [kind, series] : counters_) {
      std::ranges::stable_sort(series.points, {}, &CounterPoint::ns);
      series.least = std::numeric_limits<double>::infinity();
      series.greatest = -series.least;
      for (const CounterPoint& point : series.points) {
        if (!(point.value - point.value == 0.0)) continue;  // not finite
        series.least = std::min(series.least, point.value);
        series.greatest = std::max(series.greatest, point.value);
      }
      if (series.least > series.greatest) series.least = series.greatest = 0.0;
      data_.counters.push_back(std::move(series));
    }
  }

  bool is_sorted(const std::vector<std::uint32_t>& row) const {
    std::int64_t end = std::numeric_limits<std::int64_t>::min();
    for (const std::uint32_t i : row) {
      const Event event = data_.index.event(i);
      if (event.begin_ns < end || event.end_ns() < event.begin_ns) return false;
      end = event.end_ns();
    }
    return true;
  }

  // Spans that overlap go to further rows, each to the first where it fits.
  void mend(std::size_t at) {
    std::vector<std::uint32_t>& row = data_.rows[at].events;
    if (is_sorted(row)) return;
    // A damaged file may hold spans whose end is beyond all numbers.
    std::erase_if(row, [this](std::uint32_t i) {
      const Event event = data_.index.event(i);
      return event.end_ns() < event.begin_ns;
    });
    std::ranges::stable_sort(row, {}, [this](std::uint32_t i) { return data_.index.begin_ns(i); });
    constexpr std::size_t kMostLanes = 16;
    std::vector<std::vector<std::uint32_t>> lanes;
    std::vector<std::int64_t> ends;
    for (const std::uint32_t i : row) {
      const Event event = data_.index.event(i);
      std::size_t lane = 0;
      while (lane < ends.size() && ends[lane] > event.begin_ns) ++lane;
      if (lane == kMostLanes) continue;
      if (lane == ends.size()) {
        ends.push_back(0);
        lanes.emplace_back();
      }
      ends[lane] = event.end_ns();
      lanes[lane].push_back(i);
    }
    row = lanes.empty() ? std::vector<std::uint32_t>() : std::move(lanes[0]);
    for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
      data_.rows.push_back({.thread = data_.rows[at].thread,
                            .level = data_.rows[at].level,
                            .lane = static_cast<std::int32_t>(lane),
                            .events = std::move(lanes[lane])});
    }
  }

  const EventView& events_;
  TimelineData data_;
  std::map<Key, std::size_t> rows_;
  std::vector<std::size_t> row_of_slot_;  // by thread and level
  std::map<EventKind, CounterSeries> counters_;
};

}  // namespace

TimelineData timeline_data(const EventView& events) { return RowSorter(events).sort(); }

std::size_t TimelineData::first_ending_after(const TimelineRow& row, std::int64_t ns) const {
  const auto found = std::ranges::partition_point(
      row.events, [&](std::uint32_t i) { return index.event(i).end_ns() <= ns; });
  return static_cast<std::size_t>(found - row.events.begin());
}

std::size_t TimelineData::next_ending(const TimelineRow& row, std::int64_t ns,
                                      std::size_t from) const {
  const auto ends_before = [&](std::uint32_t i) { return index.event(i).end_ns() < ns; };
  // Steps that double, then bisection between the last two.
  std::size_t step = 1;
  std::size_t low = from;
  std::size_t high = from;
  while (high < row.events.size() && ends_before(row.events[high])) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = std::min(high, row.events.size());
  const auto begin = row.events.begin();
  const auto found = std::partition_point(begin + static_cast<std::ptrdiff_t>(low),
                                          begin + static_cast<std::ptrdiff_t>(high), ends_before);
  return static_cast<std::size_t>(found - begin);
}

}  // namespace trainscope::gui
