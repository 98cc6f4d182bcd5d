// Two runs by node: times joined with what the plans have.
#include "profiler/analysis/run_difference.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler {
namespace {

using test::EventBytes;
using test::small_events;
using test::small_plan;

// Each call writes a value of its own.
PlanRecord plan_with_values(std::int64_t bytes) {
  PlanRecord plan = small_plan();
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    plan.values.push_back({.kind = PlanValueKind::kNode, .bytes = bytes});
    plan.operands.push_back({.value = i});
    plan.calls[i].outputs = {.begin = i, .count = 1};
  }
  plan.spaces[0].bytes = 10 * bytes;
  return plan;
}

const DifferenceRow& row_named(const RunDifference& difference, std::string_view name) {
  const auto found = std::ranges::find_if(
      difference.rows, [&](const DifferenceRow& row) { return row.time.name == name; });
  REQUIRE(found != difference.rows.end());
  return *found;
}

TEST_CASE("run_difference: a node has the bytes of its calls in both plans, and their times") {
  const PlanRecord a = plan_with_values(100);
  const PlanRecord b = plan_with_values(40);
  const PlanView plan_a = view_of(a);
  const PlanView plan_b = view_of(b);
  const EventBytes bytes(small_events());
  const EventView view = bytes.view();
  const StepTimes times = step_times(view, plan_a);
  const RunDifference difference =
      difference_of({.plan = plan_a, .times = &times}, {.plan = plan_b, .times = &times});
  CHECK(difference.arena_a == 1000);
  CHECK(difference.arena_b == 400);
  const DifferenceRow& matmul = row_named(difference, "/fc/MatMul");
  CHECK(matmul.a.calls == 2);
  CHECK(matmul.a.bytes == 200);
  CHECK(matmul.b.bytes == 80);
  CHECK(matmul.a.kernels == "gemm");
  CHECK(matmul.time.difference_ns() == 0.0);
  CHECK(matmul.time.a.count == 2);
}

TEST_CASE("run_difference: runs without times are compared by their plans, most bytes first") {
  const PlanRecord a = plan_with_values(100);
  PlanRecord b = plan_with_values(100);
  b.values[1].bytes = 5000;
  const PlanView plan_a = view_of(a);
  const PlanView plan_b = view_of(b);
  const RunDifference difference = difference_of({.plan = plan_a}, {.plan = plan_b});
  REQUIRE(difference.rows.size() == 2);
  CHECK(difference.rows[0].time.name == "/fc/act/Gelu");
  CHECK(difference.rows[0].b.bytes == 5100);
  CHECK(difference.times.step.a.count == 0);
}

TEST_CASE("run_difference: a node of one run alone has nothing in the other") {
  const PlanRecord a = plan_with_values(100);
  const PlanRecord b = test::plan_of({{"mm", "MatMul", "/fc/MatMul", PlanPhase::kForward, 1}});
  const PlanView plan_a = view_of(a);
  const PlanView plan_b = view_of(b);
  const RunDifference difference = difference_of({.plan = plan_a}, {.plan = plan_b});
  const DifferenceRow& gelu = row_named(difference, "/fc/act/Gelu");
  CHECK(gelu.a.calls == 2);
  CHECK(gelu.b == NodeInPlan{});
}

}  // namespace
}  // namespace trainscope::profiler
