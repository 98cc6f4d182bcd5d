// Bisection to the first span that is visible, then jumps over spans below two pixels.
#include "gui/views/timeline_frame.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_map>

namespace trainscope::gui {
namespace {

using profiler::Event;
using profiler::EventKind;

constexpr float kLeastPixels = 2.0f;
constexpr std::int64_t kLeastNs = 50;  // that a view shows

class TimelineFramer {
 public:
  TimelineFramer(const TimelineData& data, const TimeRange& range, float width,
                 TimelineFrame& frame)
      : data_(data),
        range_(range),
        per_ns_(static_cast<double>(width) / static_cast<double>(range.end_ns - range.begin_ns)),
        pixel_ns_(std::max<std::int64_t>(1, static_cast<std::int64_t>(1.0 / per_ns_))),
        frame_(frame) {}

  void add_row(std::uint32_t number) {
    const TimelineRow& row = data_.rows[number];
    std::size_t i = data_.first_ending_after(row, range_.begin_ns);
    while (i < row.events.size()) {
      const Event event = data_.index.event(row.events[i]);
      if (event.begin_ns >= range_.end_ns) return;
      const bool small = pixels(event.begin_ns, event.end_ns()) < kLeastPixels;
      i = small ? add_merged(number, i) : add_span(number, i, event);
    }
  }

 private:
  float x_of(std::int64_t ns) const {
    const std::int64_t inside = std::clamp(ns, range_.begin_ns, range_.end_ns);
    return static_cast<float>(static_cast<double>(inside - range_.begin_ns) * per_ns_);
  }
  float pixels(std::int64_t from, std::int64_t to) const {
    return static_cast<float>(static_cast<double>(to - from) * per_ns_);
  }

  std::size_t add_span(std::uint32_t row, std::size_t i, const Event& event) {
    const float x = x_of(event.begin_ns);
    frame_.boxes.push_back({.row = row,
                            .event = data_.rows[row].events[i],
                            .x = x,
                            .width = x_of(event.end_ns()) - x});
    return i + 1;
  }

  // One box for spans below two pixels with less than two pixels between them.
  std::size_t add_merged(std::uint32_t number, std::size_t first) {
    const TimelineRow& row = data_.rows[number];
    Event event = data_.index.event(row.events[first]);
    const std::int64_t begin = event.begin_ns;
    std::uint32_t longest = row.events[first];
    std::uint64_t longest_ns = event.value;
    std::int64_t end = event.end_ns();
    std::size_t i = first + 1;
    while (i < row.events.size()) {
      const std::size_t next = data_.next_ending(row, end + pixel_ns_, i);
      if (next > i) {  // those jumped over end within the pixel
        end = std::max(end, data_.index.event(row.events[next - 1]).end_ns());
        i = next;
        if (i == row.events.size()) break;
      }
      event = data_.index.event(row.events[i]);
      const bool ends_here = pixels(end, event.begin_ns) >= kLeastPixels ||
                             pixels(event.begin_ns, event.end_ns()) >= kLeastPixels ||
                             event.begin_ns >= range_.end_ns;
      if (ends_here) break;
      if (event.value > longest_ns) {
        longest_ns = event.value;
        longest = row.events[i];
      }
      end = event.end_ns();
      ++i;
    }
    const float x = x_of(begin);
    frame_.boxes.push_back({.row = number,
                            .event = longest,
                            .count = static_cast<std::uint32_t>(i - first),
                            .x = x,
                            .width = std::max(1.0f, x_of(end) - x)});
    return i;
  }

  const TimelineData& data_;
  TimeRange range_;
  double per_ns_;
  std::int64_t pixel_ns_;
  TimelineFrame& frame_;
};

}  // namespace

TimeRange zoomed(const TimelineData& data, const TimeRange& range, double factor, double share) {
  const auto whole = static_cast<double>(data.whole.end_ns - data.whole.begin_ns);
  const auto length = static_cast<double>(range.end_ns - range.begin_ns);
  const double wanted = std::clamp(length * factor, static_cast<double>(kLeastNs),
                                   std::max(static_cast<double>(kLeastNs), whole));
  const auto stays = range.begin_ns + static_cast<std::int64_t>(length * share);
  const std::int64_t begin = stays - static_cast<std::int64_t>(wanted * share);
  return moved(data, {.begin_ns = begin, .end_ns = begin + static_cast<std::int64_t>(wanted)}, 0);
}

TimeRange moved(const TimelineData& data, const TimeRange& range, std::int64_t ns) {
  const std::int64_t length = range.end_ns - range.begin_ns;
  const std::int64_t last = std::max(data.whole.begin_ns, data.whole.end_ns - length);
  const std::int64_t begin = std::clamp(range.begin_ns + ns, data.whole.begin_ns, last);
  return {.begin_ns = begin, .end_ns = begin + length};
}

void frame_timeline(const TimelineData& data, const TimeRange& range, float width,
                    TimelineFrame& frame) {
  frame.boxes.clear();
  if (range.empty() || width < 1.0f) return;
  TimelineFramer framer(data, range, width, frame);
  for (std::uint32_t row = 0; row < data.rows.size(); ++row) framer.add_row(row);
}

const StepSpan* step_at(const TimelineData& data, std::int64_t ns) {
  if (data.steps.empty()) return nullptr;
  const auto after = std::ranges::upper_bound(
      data.steps, ns, {}, [](const StepSpan& step) { return step.range.begin_ns; });
  return after == data.steps.begin() ? &*after : &*std::prev(after);
}

namespace {

const StepSpan* step_numbered(const TimelineData& data, std::uint32_t step) {
  const auto found = std::ranges::find(data.steps, step, &StepSpan::step);
  return found == data.steps.end() ? nullptr : &*found;
}

// Calls f(place, event) for each span of a call in a step.
template <typename F>
void each_call(const TimelineData& data, const StepSpan& step, F f) {
  for (std::uint32_t row = 0; row < data.rows.size(); ++row) {
    const TimelineRow& events = data.rows[row];
    if (events.level != SpanLevel::kCall) continue;
    for (std::size_t at = data.first_ending_after(events, step.range.begin_ns);
         at < events.events.size(); ++at) {
      const Event event = data.index.event(events.events[at]);
      if (event.begin_ns >= step.range.end_ns) break;
      if (event.kind == EventKind::kCall) {
        f(SpanPlace{.row = row, .at = static_cast<std::uint32_t>(at)}, event);
      }
    }
  }
}

using SpanOfCall = std::unordered_map<std::uint32_t, SpanPlace>;

// The first span of each of these calls, which ascend.
SpanOfCall first_spans(const TimelineData& data, const StepSpan& step,
                       std::span<const std::uint32_t> calls) {
  SpanOfCall spans;
  each_call(data, step, [&](const SpanPlace& place, const Event& event) {
    if (std::ranges::binary_search(calls, event.id)) spans.try_emplace(event.id, place);
  });
  return spans;
}

// As far as both have a span.
void add_flow(std::vector<Flow>& flows, const SpanOfCall& spans, std::uint32_t from,
              std::uint32_t to) {
  const auto begin = spans.find(from);
  const auto end = spans.find(to);
  if (begin == spans.end() || end == spans.end()) return;
  flows.push_back({.from = begin->second, .to = end->second});
}

}  // namespace

std::vector<Flow> flows_of(const TimelineData& data, const PlanLinks& links, std::uint32_t call,
                           std::uint32_t step) {
  std::vector<Flow> flows;
  const StepSpan* span = step_numbered(data, step);
  if (span == nullptr) return flows;
  const std::vector<std::uint32_t> before = links.calls_before(call);
  const std::vector<std::uint32_t> after = links.calls_after(call);
  std::vector<std::uint32_t> calls = before;
  calls.push_back(call);
  calls.insert(calls.end(), after.begin(), after.end());
  const SpanOfCall spans = first_spans(data, *span, calls);
  for (const std::uint32_t other : before) add_flow(flows, spans, other, call);
  for (const std::uint32_t other : after) add_flow(flows, spans, call, other);
  return flows;
}

std::vector<Flow> flows_through(const TimelineData& data, const PlanLinks& links,
                                std::uint32_t value, std::uint32_t step) {
  std::vector<Flow> flows;
  const StepSpan* span = step_numbered(data, step);
  if (span == nullptr) return flows;
  const std::span<const std::uint32_t> writers = links.writers_of(value);
  const std::span<const std::uint32_t> readers = links.readers_of(value);
  std::vector<std::uint32_t> calls;
  std::ranges::set_union(writers, readers, std::back_inserter(calls));
  const SpanOfCall spans = first_spans(data, *span, calls);
  for (const std::uint32_t writer : writers) {
    for (const std::uint32_t reader : readers) {
      if (reader > writer) add_flow(flows, spans, writer, reader);
    }
  }
  return flows;
}

}  // namespace trainscope::gui
