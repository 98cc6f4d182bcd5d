// Steps of a device: whose time each moment is, and runs that met in the bytes of a plan.
#include "profiler/analysis/device_time.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/buffer_overlaps.h"
#include "profiler/analysis/step_times.h"
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

TEST_CASE("device time: a moment of a step is the device's where it computes, else the host's") {
  const PlanRecord plan = two_calls();
  // The host waits in a read for what the device does; the second call runs beyond the first step.
  const EventBytes bytes({span(EventKind::kBind, 1, 102, 110),
                          span(EventKind::kStepPart, 0, 110, 120),
                          span(EventKind::kRead, 2, 150, 190), span(EventKind::kStep, 1, 100, 200),
                          span(EventKind::kStep, 2, 200, 300), run(0, 105, 170),
                          run(1, 170, 180, 2), run(0, 195, 210)});
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
  CHECK(other[static_cast<std::size_t>(OtherTime::kUnrecorded)] == 2 + 5);
  std::int64_t sum = 0;
  for (const BreakdownRow& row : breakdown(times, view_of(plan), GroupBy::kNode).rows)
    sum += row.ns;
  CHECK(sum == times.total_ns);
  CHECK(breakdown(times, view_of(plan), GroupBy::kNode).is_of_device);
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

}  // namespace
}  // namespace trainscope::profiler::test
