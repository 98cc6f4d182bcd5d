// Times of a small plan: what is alive, what is free, what waits.
#include "engine/bundle/plan_moment.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/engine/bundle/plan_tools.h"

namespace trainscope {
namespace {

// Three buffers in an arena of 100: a parameter at [0, 20), one that waits from time 0 to time 4 at
// [40, 70), and one for time 2 alone at [20, 40).
PlanRecord small_plan() {
  PlanRecord plan;
  plan.facts = {.persistent_bytes = 20, .times = 5};
  plan.spaces[0].bytes = 100;
  plan.buffers = {
      {.holds = BufferClass::kParameter, .begin = 0, .end = 5, .offset = 0, .bytes = 20},
      {.begin = 0, .end = 5, .offset = 40, .bytes = 30},
      {.begin = 2, .end = 3, .offset = 20, .bytes = 20}};
  plan.operands = {{.buffer = 0}, {.buffer = 1}, {.buffer = 2}, {.buffer = 1}};
  plan.calls = {{.inputs = {0, 1}, .outputs = {1, 1}, .time = 0},
                {.outputs = {2, 1}, .time = 2},
                {.inputs = {3, 1}, .time = 4}};
  return plan;
}

TEST_CASE("plan_moment: alive buffers are by offset, at the peak the largest first") {
  const PlanRecord record = small_plan();
  const PlanView plan = view_of(record);
  CHECK(alive_at(plan, 0) == std::vector<std::uint32_t>{0, 1});
  CHECK(alive_at(plan, 2) == std::vector<std::uint32_t>{0, 2, 1});
  const MemoryPeak peak = memory_peak(plan);
  CHECK(peak.time == 2);
  CHECK(peak.call == 1);
  CHECK(peak.live_bytes == 70);
  CHECK(peak.alive == std::vector<std::uint32_t>{1, 0, 2});
  CHECK(peak.share(35) == 0.5);
  CHECK(memory_peak(view_of(PlanRecord{})).call == kNoRow);
}

TEST_CASE("plan_moment: bytes elsewhere are neither alive nor idle, nor leave a gap") {
  PlanRecord record = small_plan();
  record.buffers[1].external = 1;
  record.buffers.push_back({.space = PlanSpaceKind::kHost, .end = 5, .offset = 40, .bytes = 60});
  const PlanView plan = view_of(record);
  CHECK(live_bytes(plan) == std::vector<std::int64_t>{20, 20, 40, 20, 20});
  CHECK(memory_peak(plan).live_bytes == 40);
  CHECK(memory_peak(plan).alive == std::vector<std::uint32_t>{0, 2});
  CHECK(alive_at(plan, 0) == std::vector<std::uint32_t>{0});
  CHECK(idle_waits(plan).empty());
  REQUIRE(gaps_at(plan, 0).size() == 1);
  CHECK(gaps_at(plan, 0)[0].bytes == 80);
}

TEST_CASE("plan_moment: at every time what is alive has the bytes that are said to be") {
  for (const PlanRecord& record : {small_plan(), chain_plan(7), plan_with_body(3, chain_plan(2))}) {
    const PlanView plan = view_of(record);
    const std::vector<std::int64_t> live = live_bytes(plan);
    const MemoryPeak peak = memory_peak(plan);
    for (std::uint32_t time = 0; time < live.size(); ++time) {
      std::int64_t bytes = 0;
      for (const std::uint32_t i : alive_at(plan, time)) bytes += plan.buffers[i].bytes;
      CHECK(bytes == live[time]);
      CHECK(live[time] <= peak.live_bytes);
      CHECK((live[time] < peak.live_bytes || peak.time <= time));
    }
    CHECK(live[peak.time] == peak.live_bytes);
    CHECK(std::accumulate(peak.bytes_of.begin(), peak.bytes_of.end(), std::int64_t{0}) ==
          peak.live_bytes);
  }
}

TEST_CASE("plan_moment: the first node makes its buffer too, though it is there from time 0 on") {
  const PlanRecord record = plan_with_body(3, chain_plan(2));
  const PlanView plan = view_of(record);
  REQUIRE(plan.buffers.size() == 5);
  CHECK_FALSE(is_made_by_node(plan, plan.buffers[0]));  // the input
  for (std::size_t i = 1; i < 5; ++i) CHECK(is_made_by_node(plan, plan.buffers[i]));
  CHECK(plan.buffers[1].begin == 0);
}

TEST_CASE("plan_moment: gaps are what no buffer has, up to the end of the arena") {
  const PlanRecord record = small_plan();
  const PlanView plan = view_of(record);
  const std::vector<PlanGap> before = gaps_at(plan, 1);
  REQUIRE(before.size() == 2);
  CHECK(before[0].offset == 20);
  CHECK(before[0].bytes == 20);
  CHECK(before[1].offset == 70);
  CHECK(before[1].bytes == 30);
  CHECK(gaps_at(plan, 2).size() == 1);
}

TEST_CASE("plan_moment: gaps have what is not alive, for as long as nobody has any of it") {
  for (const PlanRecord& record : {small_plan(), chain_plan(7), plan_with_body(3, chain_plan(2))}) {
    const PlanView plan = view_of(record);
    const std::vector<std::int64_t> live = live_bytes(plan);
    // Whether somebody has a byte of it.
    const auto is_taken = [&](const PlanGap& gap, std::uint32_t time) {
      return std::ranges::any_of(alive_at(plan, time), [&](std::uint32_t i) {
        const PlanBuffer& buffer = plan.buffers[i];
        return buffer.offset < gap.offset + gap.bytes && gap.offset < buffer.offset + buffer.bytes;
      });
    };
    for (std::uint32_t time = 0; time < live.size(); ++time) {
      std::int64_t free = 0;
      for (const PlanGap& gap : gaps_at(plan, time)) {
        free += gap.bytes;
        CHECK(gap.begin <= time);
        CHECK(time < gap.end);
        for (std::uint32_t at = gap.begin; at < gap.end; ++at) CHECK_FALSE(is_taken(gap, at));
        CHECK((gap.begin == 0 || is_taken(gap, gap.begin - 1)));
        CHECK((gap.end == plan.facts().times || is_taken(gap, gap.end)));
      }
      CHECK(live[time] + free == plan.arena().bytes);
    }
  }
}

TEST_CASE("plan_moment: a wait is what lies between two uses, of what is not persistent") {
  const PlanRecord record = small_plan();
  const PlanView plan = view_of(record);
  CHECK(buffer_uses(plan)[1] == std::vector<std::uint32_t>{0, 4});
  const std::vector<IdleWait> waits = idle_waits(plan);
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].buffer == 1);
  CHECK(waits[0].from == 0);
  CHECK(waits[0].to == 4);
  CHECK(waits[0].byte_calls == 30 * 3);
}

}  // namespace
}  // namespace trainscope
