// Times of a small plan: what is alive, what is free, what waits.
#include "engine/bundle/plan_moment.h"

#include <doctest/doctest.h>

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

TEST_CASE("plan_moment: alive buffers are by offset, and the fullest call is that of their peak") {
  const PlanRecord record = small_plan();
  const PlanView plan = view_of(record);
  CHECK(alive_at(plan, 0) == std::vector<std::uint32_t>{0, 1});
  CHECK(alive_at(plan, 2) == std::vector<std::uint32_t>{0, 2, 1});
  CHECK(fullest_call(plan, live_bytes(plan)) == 1);
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
