// Rows of spans, merging by pixels, flows and sums of ranges.
#include "gui/views/timeline_frame.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "gui/views/range_statistics.h"
#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::gui {
namespace {

using profiler::Event;
using profiler::EventKind;
using profiler::test::EventBytes;
using profiler::test::on_thread;
using profiler::test::small_events;
using profiler::test::small_plan;
using profiler::test::span_of;

void check_rows(const TimelineData& data) {
  for (const TimelineRow& row : data.rows) {
    for (std::size_t i = 1; i < row.events.size(); ++i) {
      CHECK(data.index.event(row.events[i]).begin_ns >=
            data.index.event(row.events[i - 1]).end_ns());
    }
  }
}

TEST_CASE("timeline_rows: spans of a thread and level are one row, in order and apart") {
  const EventBytes bytes(small_events());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  check_rows(data);
  std::size_t spans = 0;
  for (const TimelineRow& row : data.rows) spans += row.events.size();
  CHECK(spans == small_events().size());
  REQUIRE(data.steps.size() == 2);
  CHECK(data.steps[0].step == 6);
  CHECK(data.steps[1].range == TimeRange{.begin_ns = 2100, .end_ns = 2900});
  CHECK(data.rows.front().thread == 0);
  CHECK(data.rows.front().level == SpanLevel::kStep);
  CHECK(data.rows.back().thread == 1);
}

TEST_CASE("timeline_rows: spans that overlap take further rows, and none is lost") {
  const EventBytes bytes(
      {span_of(EventKind::kCall, 0, 100, 200), span_of(EventKind::kCall, 1, 150, 250),
       span_of(EventKind::kCall, 2, 120, 130), span_of(EventKind::kCall, 3, 260, 270)});
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  check_rows(data);
  std::size_t spans = 0;
  for (const TimelineRow& row : data.rows) spans += row.events.size();
  CHECK(spans == 4);
  CHECK(data.rows.size() == 2);
}

// A call of a device on its stream, and what it did: two kernels, and of the next call one.
std::vector<Event> device_events() {
  return {span_of(EventKind::kBind, 0, 110, 150),
          span_of(EventKind::kRead, 0, 200, 900),
          span_of(EventKind::kStep, 6, 100, 1000),
          on_thread(1, span_of(EventKind::kDeviceWork, 0, 140, 200)),
          on_thread(1, span_of(EventKind::kDeviceWork, 0, 210, 300)),
          on_thread(1, span_of(EventKind::kCall, 0, 140, 300)),
          on_thread(1, span_of(EventKind::kDeviceWork, 3, 300, 700)),
          on_thread(1, span_of(EventKind::kCall, 3, 300, 700)),
          on_thread(2, span_of(EventKind::kDeviceWork, 1, 650, 800)),
          on_thread(2, span_of(EventKind::kCall, 1, 650, 800))};
}

TEST_CASE("timeline_rows: what a device does is below its calls, in one row") {
  const EventBytes bytes(device_events());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  check_rows(data);
  CHECK(level_of(EventKind::kDeviceWork) == SpanLevel::kWork);
  CHECK(level_of(EventKind::kInputs) == SpanLevel::kPart);
  CHECK(level_of(EventKind::kResults) == SpanLevel::kPart);
  CHECK(level_of(EventKind::kRankWait) == SpanLevel::kCall);
  const auto spans_of = [&](std::uint16_t thread, SpanLevel level) {
    std::size_t spans = 0;
    for (const TimelineRow& row : data.rows) {
      CHECK(row.lane == 0);
      if (row.thread == thread && row.level == level) spans += row.events.size();
    }
    return spans;
  };
  CHECK(data.rows.size() == 6);  // steps and copies of the host, calls and work of two streams
  CHECK(spans_of(1, SpanLevel::kCall) == 2);
  CHECK(spans_of(1, SpanLevel::kWork) == 3);
  CHECK(spans_of(2, SpanLevel::kCall) == 1);
  CHECK(spans_of(2, SpanLevel::kWork) == 1);
  CHECK(data.device.within(0, 1000) == 800 - 140);
}

TEST_CASE("timeline_rows: counters are series by time") {
  const auto counter = [](EventKind kind, std::uint32_t step, std::int64_t ns, double value) {
    return Event{
        .begin_ns = ns, .value = std::bit_cast<std::uint64_t>(value), .id = step, .kind = kind};
  };
  const EventBytes bytes({counter(EventKind::kLoss, 1, 10, 4.0),
                          counter(EventKind::kLoss, 2, 20, 2.0),
                          counter(EventKind::kResidentBytes, 2, 20, 1e9)});
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  REQUIRE(data.counters.size() == 2);
  CHECK(data.counters[0].kind == EventKind::kLoss);
  CHECK(data.counters[0].least == 2.0);
  CHECK(data.counters[0].greatest == 4.0);
  CHECK(data.counters[1].points.size() == 1);
}

// 10,000 spans of 60 ns, one every 100 ns, and a long one in their middle.
std::vector<Event> many_spans() {
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const std::int64_t begin = 100 * static_cast<std::int64_t>(i) + (i >= 5000 ? 100000 : 0);
    if (i == 5000) events.push_back(span_of(EventKind::kCall, 9, 500000, 600000));
    events.push_back(span_of(EventKind::kCall, i % 4, begin, begin + 60));
  }
  return events;
}

std::size_t count_of(const TimelineFrame& frame) {
  std::size_t count = 0;
  for (const TimelineBox& box : frame.boxes) count += box.count;
  return count;
}

TEST_CASE("timeline_frame: small spans are merged, so that boxes depend on pixels") {
  const EventBytes bytes(many_spans());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  TimelineFrame frame;
  frame_timeline(data, data.whole, 1000.0f, frame);
  CHECK(frame.boxes.size() <= 3);
  CHECK(count_of(frame) == 10001);
  const auto longest = std::ranges::max_element(
      frame.boxes, {}, [](const TimelineBox& box) { return box.count == 1 ? box.width : 0.0f; });
  CHECK(data.index.event(longest->event).id == 9);
}

TEST_CASE("timeline_frame: near enough every span is a box with its own width") {
  const EventBytes bytes(many_spans());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  TimelineFrame frame;
  const TimeRange range{.begin_ns = 1000, .end_ns = 2000};
  frame_timeline(data, range, 1000.0f, frame);
  REQUIRE(frame.boxes.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(frame.boxes[i].count == 1);
    CHECK(frame.boxes[i].x == doctest::Approx(100.0 * static_cast<double>(i)));
    CHECK(frame.boxes[i].width == doctest::Approx(60.0));
  }
}

TEST_CASE("timeline_frame: boxes of any range are apart, in order and within the view") {
  const EventBytes bytes(many_spans());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  TimelineFrame frame;
  TimeRange range = data.whole;
  for (int i = 0; i < 40; ++i) {
    frame_timeline(data, range, 700.0f, frame);
    CHECK(frame.boxes.size() <= 701);
    for (std::size_t k = 0; k < frame.boxes.size(); ++k) {
      CHECK(frame.boxes[k].x >= 0.0f);
      CHECK(frame.boxes[k].x + frame.boxes[k].width <= 701.0f);
      if (k > 0) CHECK(frame.boxes[k].x > frame.boxes[k - 1].x);
    }
    range = zoomed(data, range, 0.7, 0.37);
  }
  CHECK(range.end_ns - range.begin_ns >= 50);
  CHECK(range.end_ns - range.begin_ns < 2000);
}

TEST_CASE("timeline_frame: zooming out ends at the whole profile") {
  const EventBytes bytes(many_spans());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  const TimeRange range = zoomed(data, {.begin_ns = 900, .end_ns = 1000}, 1e9, 0.5);
  CHECK(range == data.whole);
  CHECK(moved(data, range, 1'000'000).begin_ns == data.whole.begin_ns);
}

TEST_CASE("timeline_frame: flows lead from what a call reads to it, within its step") {
  PlanRecord record = small_plan();
  record.values = {{}, {}};
  // Call 0 writes value 0, calls 1 and 2 read it; call 3 reads value 1, which call 1 writes.
  record.operands = {{.value = 0}, {.value = 0}, {.value = 1}, {.value = 0}, {.value = 1}};
  record.calls[0].outputs = {0, 1};
  record.calls[1].inputs = {1, 1};
  record.calls[1].outputs = {2, 1};
  record.calls[2].inputs = {3, 1};
  record.calls[3].inputs = {4, 1};
  const PlanLinks links(view_of(record));
  const EventBytes bytes(small_events());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  const std::vector<Flow> flows = flows_of(data, links, 1, 7);
  REQUIRE(flows.size() == 2);
  const auto event_at = [&](const SpanPlace& place) {
    return data.index.event(data.rows[place.row].events[place.at]);
  };
  CHECK(event_at(flows[0].from).id == 0);
  CHECK(event_at(flows[0].from).begin_ns == 2120);
  CHECK(event_at(flows[0].to).id == 1);
  CHECK(event_at(flows[1].to).id == 3);
  CHECK(flows_of(data, links, 1, 99).empty());
  CHECK(step_at(data, 2050)->step == 6);
  CHECK(step_at(data, 2150)->step == 7);
}

TEST_CASE("timeline_frame: flows lead through views, which have no span") {
  PlanRecord record = small_plan();
  // Call 0 writes value 0; value 2 is a view of its view 1, and call 3 reads it.
  record.values = {{}, {.view_of = 0}, {.view_of = 1}};
  record.operands = {{.value = 0}, {.value = 2}};
  record.calls[0].outputs = {0, 1};
  record.calls[3].inputs = {1, 1};
  const PlanLinks links(view_of(record));
  const EventBytes bytes(small_events());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  const std::vector<Flow> from = flows_of(data, links, 0, 7);
  REQUIRE(from.size() == 1);
  const auto event_at = [&](const SpanPlace& place) {
    return data.index.event(data.rows[place.row].events[place.at]);
  };
  CHECK(event_at(from[0].from).id == 0);
  CHECK(event_at(from[0].to).id == 3);
  CHECK(event_at(from[0].to).begin_ns == 2430);
  for (const std::uint32_t value : {0U, 1U, 2U}) {
    const std::vector<Flow> through = flows_through(data, links, value, 7);
    REQUIRE(through.size() == 1);
    CHECK(through[0].from == from[0].from);
    CHECK(through[0].to == from[0].to);
  }
  const std::vector<Flow> to = flows_of(data, links, 3, 7);
  REQUIRE(to.size() == 1);
  CHECK(to[0].from == from[0].from);
  CHECK(flows_through(data, links, kNoRow, 7).empty());
  CHECK(flows_through(data, links, 0, 99).empty());
}

// Of the driving thread, and of a device.
void check_all_steps(const std::vector<Event>& events) {
  const PlanRecord record = small_plan();
  const PlanView plan = view_of(record);
  const EventBytes bytes(events);
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  const TimeRange steps{.begin_ns = data.steps.front().range.begin_ns,
                        .end_ns = data.steps.back().range.end_ns};
  const profiler::RangeTimes statistics =
      range_statistics(data, plan, steps, profiler::GroupBy::kOp);
  const profiler::StepTimes times = profiler::step_times(view, plan);
  const profiler::Breakdown table = profiler::breakdown(times, plan, profiler::GroupBy::kOp);
  for (const profiler::BreakdownRow& row : table.rows) {
    if (!row.is_call) continue;
    const auto found = std::ranges::find(statistics.rows, row.name, &profiler::RangeRow::name);
    REQUIRE(found != statistics.rows.end());
    CHECK(found->ns == row.ns);
  }
}

TEST_CASE("range_statistics: all steps together give each op what query gives it") {
  check_all_steps(small_events());
  check_all_steps(device_events());
}

TEST_CASE("range_statistics: spans count as far as they are within the range") {
  const PlanRecord record = small_plan();
  const EventBytes bytes(small_events());
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  const profiler::RangeTimes statistics = range_statistics(
      data, view_of(record), {.begin_ns = 1150, .end_ns = 1250}, profiler::GroupBy::kNode);
  CHECK(statistics.range_ns == 100);
  REQUIRE(statistics.rows.size() == 2);
  CHECK(statistics.rows[0].name == "/fc/MatMul");
  CHECK(statistics.rows[0].ns == 50);
  CHECK(statistics.rows[1].ns == 30);
  CHECK(statistics.spans_ns == 80);
}

void check_ranges(const std::vector<Event>& events) {
  const PlanRecord record = small_plan();
  const PlanView plan = view_of(record);
  const EventBytes bytes(events);
  const profiler::EventView view = bytes.view();
  const TimelineData data = timeline_data(view);
  for (const TimeRange range :
       {TimeRange{0, 5000}, {1015, 1360}, {250, 690}, {1300, 1300}, {2400, 2100}}) {
    CAPTURE(range.begin_ns);
    for (const auto by : {profiler::GroupBy::kOp, profiler::GroupBy::kPhase}) {
      const auto a = range_statistics(data, plan, range, by);
      const auto b = profiler::range_times(view, plan, range.begin_ns, range.end_ns, by);
      CHECK(a.range_ns == b.range_ns);
      CHECK(a.spans_ns == b.spans_ns);
      REQUIRE(a.rows.size() == b.rows.size());
      for (std::size_t i = 0; i < a.rows.size(); ++i) {
        CHECK(a.rows[i].name == b.rows[i].name);
        CHECK(a.rows[i].ns == b.rows[i].ns);
        CHECK(a.rows[i].spans == b.rows[i].spans);
      }
    }
  }
}

TEST_CASE("range_statistics: by the timeline's rows or by all events, of any range") {
  std::vector<Event> events = small_events();
  for (Event& event : events) {
    if (event.kind == EventKind::kStep && event.id == 7) event.id = 9;  // step 8 was not profiled
  }
  check_ranges(events);
  check_ranges(device_events());
}

}  // namespace
}  // namespace trainscope::gui
