// Steps of a device: whose time each moment is, and runs that met in the bytes of a plan.
#include "profiler/analysis/device_time.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/buffer_overlaps.h"
#include "profiler/analysis/range_times.h"
#include "profiler/analysis/step_times.h"
#include "profiler/analysis/timeline.h"
#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

Event span(EventKind kind, std::uint32_t id, std::int64_t begin, std::int64_t end,
           std::uint16_t thread = 0) {
  return {.begin_ns = begin,
          .value = static_cast<std::uint64_t>(end - begin),
          .id = id,
          .kind = kind,
          .thread = thread};
}
Event run(std::uint32_t call, std::int64_t begin, std::int64_t end, std::uint16_t thread = 1) {
  return span(EventKind::kCall, call, begin, end, thread);
}

PlanRecord two_calls() {
  return plan_of({{"a", "MatMul", "/a", PlanPhase::kForward, 100},
                  {"b", "Add", "/b", PlanPhase::kForward, 10}});
}

TEST_CASE("device time: pieces one behind the other, of calls side by side the first") {
  const EventBytes bytes({run(0, 10, 20), run(1, 15, 30, 2), run(0, 40, 50), run(1, 42, 44, 2)});
  const DeviceTime time(bytes.view());
  CHECK(time.within(0, 100) == 30);
  CHECK(time.within(0, 10) == 0);
  CHECK(time.within(12, 18) == 6);
  CHECK(time.within(18, 45) == 17);
  CHECK(time.within(30, 40) == 0);
  CHECK(time.within(45, 45) == 0);
  CHECK(time.within(49, 200) == 1);
  std::string text;
  time.each(12, 43, [&](std::uint32_t call, std::int64_t ns) {
    text += std::to_string(call) + ":" + std::to_string(ns) + " ";
  });
  CHECK(text == "0:8 1:10 0:3 ");
  CHECK(DeviceTime(EventBytes({run(0, 1, 2, 0), run(0, 3, 4)}).view()).is_empty());
}

// The host waits in a read for what the device does; the last run goes on beyond the first step.
std::vector<Event> two_steps() {
  return {span(EventKind::kBind, 1, 102, 110),
          span(EventKind::kStepPart, 0, 110, 120),
          span(EventKind::kRead, 2, 150, 190),
          span(EventKind::kStep, 1, 100, 200),
          span(EventKind::kStep, 2, 200, 300),
          run(0, 105, 170),
          run(1, 170, 180, 2),
          run(0, 195, 210)};
}

TEST_CASE("device time: a moment of a step is the device's where it computes, else the host's") {
  const PlanRecord plan = two_calls();
  const EventBytes bytes(two_steps());
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  REQUIRE(times.steps.size() == 2);
  CHECK(times.are_of_device);
  CHECK(times.calls[0].ns[0] == 65 + 5);
  CHECK(times.calls[0].ns[1] == 10);
  CHECK(times.calls[1].ns[0] == 10);
  CHECK(times.calls[0].runs == 2);
  CHECK(times.calls[0].busy_ns == 80);
  const auto& other = times.steps[0].other_ns;
  CHECK(other[static_cast<std::size_t>(OtherTime::kCopy)] == 3 + 10);
  CHECK(other[static_cast<std::size_t>(OtherTime::kDispatch)] == 0);  // the device computes then
  CHECK(other[static_cast<std::size_t>(OtherTime::kUnrecorded)] == 2 + 5);
  std::int64_t sum = 0;
  for (const BreakdownRow& row : breakdown(times, view_of(plan), GroupBy::kNode).rows)
    sum += row.ns;
  CHECK(sum == times.total_ns);
  CHECK(breakdown(times, view_of(plan), GroupBy::kNode).is_of_device);
}

TEST_CASE("device time: the pieces of steps are side by side, and add up to what query has") {
  const PlanRecord plan = two_calls();
  const EventBytes bytes(two_steps());
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  const std::vector<TimelinePiece> pieces = timeline(bytes.view(), view_of(plan));
  std::map<std::string, std::int64_t> sums;
  std::int64_t behind = 100;
  for (const TimelinePiece& piece : pieces) {
    CHECK(piece.begin_ns == behind);
    CHECK(piece.ns() > 0);
    CHECK(piece.step == (piece.begin_ns < 200 ? 1U : 2U));
    behind = piece.end_ns;
    sums[path_of(view_of(plan), piece).back()] += piece.ns();
    if (piece.call != kNoRow) sums[std::to_string(piece.call)] += piece.ns();
  }
  CHECK(behind == 300);
  CHECK(sums["0"] == times.calls[0].sum());
  CHECK(sums["1"] == times.calls[1].sum());
  CHECK(sums["gemm"] == 90);  // the kernel of both calls
  for (const OtherTime other : {OtherTime::kCopy, OtherTime::kDispatch, OtherTime::kUnrecorded}) {
    std::int64_t ns = 0;
    for (const StepTime& step : times.steps) ns += step.other_ns[static_cast<std::size_t>(other)];
    CHECK(sums["(" + std::string(name_of(other)) + ")"] == ns);
  }
  const EventBytes foreign({span(EventKind::kStep, 1, 0, 100), run(9, 10, 20)});
  CHECK_THROWS_AS(timeline(foreign.view(), view_of(plan)), Error);
}

TEST_CASE("device time: a range has what the device is at, and of copies the rest") {
  const PlanRecord plan = two_calls();
  const EventBytes bytes(two_steps());
  const auto rows_of_range = [&](std::int64_t begin, std::int64_t end) {
    const RangeTimes times = range_times(bytes.view(), view_of(plan), begin, end, GroupBy::kNode);
    CHECK(times.is_of_device);
    CHECK(times.range_ns == end - begin);
    std::string text;
    for (const RangeRow& row : times.rows) {
      text += row.name + ":" + std::to_string(row.ns) + "x" + std::to_string(row.spans) + " ";
    }
    return text;
  };
  // As query has them of both steps: 70 and 10 of /a, 10 of /b, 13 of copies.
  CHECK(rows_of_range(100, 300) == "/a:80x2 /b:10x1 read:10x1 bind:3x1 ");
  CHECK(rows_of_range(160, 175) == "/a:10x1 /b:5x1 read:0x1 ");
  CHECK(rows_of_range(210, 300).empty());
}

// Buffers x [0, 64), y [32, 96) and z [128, 160) of the device, and of the host one at y's place;
// each call reads `in` and writes `out`.
PlanRecord with_buffers(std::vector<std::pair<std::uint32_t, std::uint32_t>> in_out) {
  PlanRecord plan = two_calls();
  const auto buffer = [&](const char* label, std::int64_t offset, std::int64_t size) {
    plan.buffers.push_back({.label = plan.texts.id(label), .offset = offset, .bytes = size});
  };
  buffer("x", 0, 64);
  buffer("y", 32, 64);
  buffer("z", 128, 32);
  buffer("of the host", 32, 64);
  plan.buffers.back().space = PlanSpaceKind::kHost;
  for (std::size_t i = 0; i < in_out.size(); ++i) {
    const auto begin = static_cast<std::uint32_t>(plan.operands.size());
    plan.operands.push_back({.buffer = in_out[i].first});
    plan.operands.push_back({.buffer = in_out[i].second});
    plan.calls[i].inputs = {.begin = begin, .count = 1};
    plan.calls[i].outputs = {.begin = begin + 1, .count = 1};
  }
  return plan;
}

std::vector<BufferOverlap> overlaps(const PlanRecord& plan, const std::vector<Event>& events) {
  return buffer_overlaps(EventBytes(events).view(), view_of(plan));
}

constexpr std::uint32_t kX = 0, kY = 1, kZ = 2, kHost = 3;

TEST_CASE(
    "buffer overlaps: a run that writes bytes of another buffer while that is in use is listed") {
  // The first call reads x, the second one writes y over half of it.
  const PlanRecord plan = with_buffers({{kX, kZ}, {kZ, kY}});
  const std::vector<BufferOverlap> found =
      overlaps(plan, {run(0, 0, 100), run(1, 90, 120, 2), run(0, 200, 300), run(1, 210, 220, 2)});
  REQUIRE(found.size() == 1);
  CHECK(found[0].first_call == 0);
  CHECK(found[0].call == 1);
  CHECK(found[0].first_buffer == kX);
  CHECK(found[0].buffer == kY);
  CHECK(found[0].runs == 2);
  CHECK(text_of(found[0], view_of(plan)) ==
        "call 1 b used 'y' while call 0 a used 'x', which has the same bytes: in 2 runs, first "
        "from 90 to 100 ns");
}

TEST_CASE("buffer overlaps: none where runs follow each other, nobody writes, or bytes differ") {
  const std::vector<Event> together = {run(0, 0, 100), run(1, 50, 120, 2)};
  const PlanRecord plan = with_buffers({{kX, kZ}, {kZ, kY}});
  CHECK(overlaps(plan, {run(0, 0, 90), run(1, 90, 120, 2)}).empty());
  CHECK(overlaps(plan, {run(0, 0, 100, 0), run(1, 50, 120, 0)}).empty());  // of the host
  CHECK(overlaps(plan, {run(0, 0, 100), run(9, 50, 120, 2)}).empty());     // no such call
  CHECK(overlaps(with_buffers({{kX, kZ}, {kY, kZ}}), together).empty());   // both read
  CHECK(overlaps(with_buffers({{kX, kX}, {kX, kX}}), together).empty());   // one buffer
  CHECK(overlaps(with_buffers({{kX, kZ}, {kZ, kHost}}), together).empty());
  PlanRecord external = plan;
  external.buffers[kY].external = 1;
  CHECK(overlaps(external, together).empty());
  CHECK(overlaps(plan, together).size() == 1);
  PlanRecord workspace = with_buffers({{kX, kX}, {kZ, kZ}});
  CHECK(overlaps(workspace, together).empty());
  workspace.calls[1].workspace = kY;
  CHECK(overlaps(workspace, together).size() == 1);
}

std::string text_of_all(const PlanRecord& plan, const std::vector<Event>& events) {
  std::string text;
  for (const BufferOverlap& each : overlaps(plan, events)) {
    text += std::to_string(each.call) + (each.is_early ? " before " : " while ") +
            std::to_string(each.first_call) + " x" + std::to_string(each.runs) + "; ";
  }
  return text;
}

// The first call reads x late: the second one has written over it and ended.
TEST_CASE("buffer overlaps: a run that writes bytes before they were read is listed") {
  const PlanRecord plan = with_buffers({{kX, kZ}, {kZ, kY}});
  const std::vector<Event> late = {span(EventKind::kStep, 1, 0, 100), run(0, 60, 70),
                                   run(1, 40, 60, 2)};
  const std::vector<BufferOverlap> found = overlaps(plan, late);
  REQUIRE(found.size() == 1);
  CHECK(found[0].is_early);
  CHECK(text_of(found[0], view_of(plan)) ==
        "call 1 b used 'y' before call 0 a used 'x', which has the same bytes: in 1 runs, first "
        "from 40 to 70 ns");
  CHECK(text_of_all(plan, {run(0, 60, 70), run(1, 40, 60, 2)}) == "1 before 0 x1; ");
  CHECK(text_of_all(plan, {run(0, 40, 60), run(1, 60, 70, 2)}).empty());
  CHECK(text_of_all(with_buffers({{kX, kZ}, {kY, kZ}}), late).empty());     // both read
  CHECK(text_of_all(with_buffers({{kX, kX}, {kX, kX}}), late).empty());     // one buffer
  CHECK(text_of_all(with_buffers({{kX, kZ}, {kZ, kHost}}), late).empty());  // other memory
  // Half of the time both run: that is said once, as such.
  CHECK(text_of_all(plan, {run(0, 50, 70), run(1, 40, 60, 2)}) == "0 while 1 x1; ");
}

TEST_CASE("buffer overlaps: runs are held against those of their own step and of the next one") {
  const PlanRecord plan = with_buffers({{kX, kZ}, {kZ, kY}});
  const Event first = span(EventKind::kStep, 1, 0, 100);
  const Event second = span(EventKind::kStep, 2, 100, 200);
  const std::vector<Event> good = {
      first, second, run(0, 10, 20), run(1, 20, 30, 2), run(0, 110, 120), run(1, 120, 130, 2)};
  CHECK(text_of_all(plan, good).empty());
  CHECK(text_of_all(plan, {first, second, run(0, 20, 30), run(1, 10, 20, 2), run(0, 120, 130),
                           run(1, 110, 120, 2)}) == "1 before 0 x2; ");
  // The run of the first step is lost: that of the second one is not taken for it.
  CHECK(text_of_all(plan, {first, second, run(1, 20, 30, 2), run(0, 110, 120), run(1, 120, 130, 2)})
            .empty());
  // One run more than there should be has no place in the order.
  CHECK(text_of_all(plan, {first, run(0, 20, 30), run(0, 40, 50), run(1, 10, 20, 2)}).empty());
}

// The update of the first step runs while the host is at the second one.
TEST_CASE("buffer overlaps: a device that is behind the host is not out of order") {
  PlanRecord plan = with_buffers({{kX, kZ}, {kZ, kY}});
  plan.facts.update_call = 1;
  const Event first = span(EventKind::kStep, 1, 0, 100);
  const Event second = span(EventKind::kStep, 2, 100, 300);
  CHECK(text_of_all(plan, {first, second, run(0, 10, 20), run(1, 110, 120, 2), run(0, 120, 130),
                           run(1, 130, 140, 2)})
            .empty());
  CHECK(text_of_all(plan, {first, second, run(0, 120, 130), run(1, 110, 120, 2), run(0, 140, 150),
                           run(1, 150, 160, 2)}) == "1 before 0 x1; ");
  // A step between both was not profiled: the device had done all of the first one before it.
  const Event later = span(EventKind::kStep, 9, 100, 300);
  CHECK(text_of_all(plan, {first, later, run(0, 10, 20), run(1, 20, 30, 2), run(1, 120, 130, 2),
                           run(0, 130, 140)}) == "1 before 0 x1; ");
}

// Calls 0 and 1 are of micro-steps; call 2 of the update writes over the bytes of both.
TEST_CASE("buffer overlaps: each micro-step is compared by itself, and with the one before") {
  PlanRecord plan = plan_of({{"a", "MatMul", "/a", PlanPhase::kForward, 100},
                             {"b", "Add", "/b", PlanPhase::kForward, 10},
                             {"c", "Adam", "/c", PlanPhase::kUpdate, 10}});
  plan.facts.update_call = 2;
  for (const auto& [label, offset] :
       std::vector<std::pair<const char*, std::int64_t>>{{"x", 0}, {"y", 32}, {"w", 0}}) {
    plan.buffers.push_back({.label = plan.texts.id(label), .offset = offset, .bytes = 64});
  }
  for (std::uint32_t call = 0; call < 3; ++call) {
    plan.operands.push_back({.buffer = call});
    plan.calls[call].outputs = {.begin = call, .count = 1};
  }
  const auto with_runs = [](std::vector<Event> runs) {
    runs.push_back(span(EventKind::kStepPart, 0, 1, 5));
    runs.push_back(span(EventKind::kStepPart, 0, 5, 9));
    runs.push_back(span(EventKind::kStepPart, 1, 9, 12));
    runs.push_back(span(EventKind::kStep, 1, 0, 1000));
    return runs;
  };
  CHECK(text_of_all(plan, with_runs({run(0, 10, 20), run(1, 20, 30, 2), run(0, 30, 40),
                                     run(1, 40, 50, 2), run(2, 50, 60)}))
            .empty());
  // In the second micro-step alone the second call comes before the first one.
  CHECK(text_of_all(plan, with_runs({run(0, 10, 20), run(1, 20, 30, 2), run(0, 40, 50),
                                     run(1, 30, 40, 2), run(2, 60, 70)})) == "1 before 0 x1; ");
  // The first call of the second micro-step does not wait for the second one of the first.
  CHECK(text_of_all(plan, with_runs({run(0, 10, 20), run(0, 20, 30), run(1, 30, 40, 2),
                                     run(1, 40, 50, 2), run(2, 60, 70)})) == "0 before 1 x1; ");
  // The update does not wait for the last micro-step; what it has of the one before is right.
  CHECK(text_of_all(plan, with_runs({run(0, 10, 20), run(1, 20, 30, 2), run(2, 30, 40),
                                     run(0, 40, 50), run(1, 50, 60, 2)})) ==
        "2 before 0 x1; 2 before 1 x1; ");
}

// Every call of a chain shares bytes with the buffers beside it, in many steps.
TEST_CASE("buffer overlaps: one run in the wrong order is found among many") {
  constexpr std::uint32_t kCalls = 200;
  constexpr std::int64_t kSteps = 50;
  const PlannedCall each = {"a", "MatMul", "/a", PlanPhase::kForward, 100};
  PlanRecord plan = plan_of(std::vector<PlannedCall>(kCalls, each));
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    plan.buffers.push_back({.label = plan.texts.id("x"), .offset = 32 * (call % 7), .bytes = 64});
    plan.operands.push_back({.buffer = call});
    plan.calls[call].outputs = {.begin = call, .count = 1};
  }
  plan.facts.update_call = kCalls;
  std::vector<Event> events;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const std::int64_t begin = step * 10000;
    for (std::uint32_t call = 0; call < kCalls; ++call) {
      const bool is_swapped = step == 20 && (call == 71 || call == 72);  // 32 bytes of both
      const std::int64_t at = begin + 10 * (is_swapped ? 143 - call : call);
      events.push_back(run(call, at, at + 10));
    }
    events.push_back(
        span(EventKind::kStep, static_cast<std::uint32_t>(step + 1), begin, begin + 9000));
  }
  CHECK(text_of_all(plan, events) == "72 before 71 x1; ");
}

}  // namespace
}  // namespace trainscope::profiler::test
