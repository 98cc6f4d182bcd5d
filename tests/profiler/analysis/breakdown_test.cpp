// Where the time went: every nanosecond of the steps in one row, whatever rows are.
#include "profiler/analysis/breakdown.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "profiler/analysis/roof.h"
#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

std::map<std::string, std::int64_t> ns_by_name(const Breakdown& table) {
  std::map<std::string, std::int64_t> ns;
  for (const BreakdownRow& row : table.rows) ns[row.name] += row.ns;
  return ns;
}

TEST_CASE("step times: each moment of a step is in one place") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(small_events());
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  REQUIRE(times.steps.size() == 2);
  CHECK(times.steps[0].step == 6);
  CHECK(times.steps[1].ns() == 800);
  CHECK(times.total_ns == 1800);
  using Others = std::array<std::int64_t, kOtherTimes>;
  // copy, batch wait, join wait, dispatch, nothing recorded
  CHECK(times.steps[0].other_ns == Others{30, 50, 60, 75, 115});
  CHECK(times.steps[1].other_ns == Others{10, 10, 25, 75, 10});
  CHECK(times.calls[0].ns == StepNs{90, 200});
  CHECK(times.calls[1].ns == StepNs{80, 70});
  CHECK(times.calls[2].ns == StepNs{0, 0});  // on another thread
  CHECK(times.calls[2].busy_ns == 210);      // but for the step that failed
  CHECK(times.calls[2].runs == 2);
  CHECK(times.calls[3].sum() == 900);
}

TEST_CASE("step times: what is done for inputs and results is copying, ranks are waited for") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(events_of_a_rank());
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  REQUIRE(times.steps.size() == 1);
  using Others = std::array<std::int64_t, kOtherTimes>;
  // copy, batch wait, join wait, dispatch, nothing recorded
  CHECK(times.steps[0].other_ns == Others{20 + 30 + 30 + 90, 10, 300, 5 + 10 + 20 + 10, 55});
  CHECK(times.calls[3].ns == StepNs{420});
}

TEST_CASE("breakdown: rows add up to the steps, whatever they are by") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(small_events());
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  for (const char* by : {"call", "kernel", "op", "node", "layer", "phase", "pass"}) {
    const Breakdown table = breakdown(times, view_of(plan), group_named(by).value());
    std::int64_t sum = 0;
    for (const BreakdownRow& row : table.rows) sum += row.ns;
    CHECK_MESSAGE(sum == 1800, by);
    CHECK(table.steps == 2);
    const Breakdown sums =
        breakdown(times, view_of(plan), group_named(by).value(), {.keeps_steps = false});
    REQUIRE(sums.rows.size() == table.rows.size());
    for (std::size_t i = 0; i < sums.rows.size(); ++i) {
      CHECK(sums.rows[i].ns == table.rows[i].ns);
      CHECK(sums.rows[i].median_ns == table.rows[i].median_ns);
      if (sums.rows[i].is_call) CHECK(sums.rows[i].step_ns.empty());
      CHECK(table.rows[i].step_ns.size() == 2);
    }
  }
  CHECK(!group_named("colour").has_value());
}

TEST_CASE("breakdown: a backward call counts for the ONNX node that it stems from") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(small_events());
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  Breakdown table = breakdown(times, view_of(plan), GroupBy::kNode);
  const auto ns = ns_by_name(table);
  CHECK(ns.at("/fc/MatMul") == 1190);
  CHECK(ns.at("/fc/act/Gelu") == 150);
  CHECK(ns.at("join wait") == 85);
  REQUIRE(sort_rows(table, "ms"));
  const BreakdownRow& matmul = table.rows.front();
  CHECK(matmul.name == "/fc/MatMul");
  CHECK(matmul.runs == 4);
  CHECK(matmul.flops == 24'000.0);
  CHECK(matmul.bytes == 640.0);
  CHECK(matmul.median_ns == 595.0);  // of 590 and 600
  CHECK(matmul.gflops() == doctest::Approx(24'000.0 / 1190));
  CHECK(column_of(table, matmul, "ms") == doctest::Approx(595e-6));
  CHECK(column_of(table, matmul, "count") == 2.0);
  CHECK(table.share(matmul) == doctest::Approx(1190.0 / 1800));
  // FLOPs of both tiles, time of the driving thread, busy time of both.
  const auto gelu = std::ranges::find(table.rows, "/fc/act/Gelu", &BreakdownRow::name);
  CHECK(gelu->flops == 40.0);
  CHECK(gelu->busy_ns == 360);
  CHECK(!sort_rows(table, "colour"));
}

TEST_CASE("breakdown: layers are the scopes of names") {
  CHECK(layer_of("/h.0/attn/MatMul") == "/h.0/attn");
  CHECK(layer_of("h.0.attn.MatMul") == "h.0.attn");
  CHECK(layer_of("MatMul") == "(top)");
  CHECK(layer_of("/MatMul") == "(top)");
}

TEST_CASE("breakdown: a filter leaves whole calls, and nothing that is no call") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(small_events());
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  const auto left = [&](std::string_view text) {
    const Filter filter = Filter::parse(text, call_fields());
    return ns_by_name(breakdown(times, view_of(plan), GroupBy::kCall, {.filter = &filter}));
  };
  CHECK(left("op==MatMul && phase==backward") ==
        std::map<std::string, std::int64_t>{{"3 mm_grad", 900}});
  CHECK(left("layer==/fc/act").size() == 2);
  CHECK(left("call==0 || flops>=8000").size() == 2);
  CHECK(left("share>0.4").size() == 1);
  CHECK(left("kernel==gemm && pass==imported && count==1 && bytes==160").size() == 4);
  CHECK(left("op==Conv").empty());
}

// f32 at 2 FLOP a nanosecond a core; a cache of 100 bytes a core that reads 10 bytes a nanosecond.
Machine small_machine() {
  const auto rate = [](double one) { return Rate{.one = one, .all = 1.5 * one}; };
  Machine machine;
  machine.levels.resize(2);
  machine.levels[0].name = "L2";
  machine.levels[0].bytes = 100;
  machine.levels[0].read = rate(1e10);
  machine.levels[0].write = rate(5e9);
  machine.levels[1].name = "memory";
  machine.levels[1].bytes = 1000;
  machine.levels[1].read = machine.levels[1].write = rate(1e9);
  machine.flops_per_second = {{DType::kF32, rate(2e9)}, {DType::kBF16, rate(8e9)}};
  return machine;
}

TEST_CASE("roof: the longer of FLOPs and bytes, of the level that the operands fit in") {
  PlanRecord plan = small_plan();
  const Machine machine = small_machine();
  plan.facts.threads = 2;
  plan.calls[1].dtype = plan.texts.id("bf16");
  const PlanView view = view_of(plan);
  CHECK(level_of(machine, view, view.calls[0]).name == "L2");  // 160 bytes, two cores' caches
  CHECK(roof_ns(machine, view, view.calls[0]) == doctest::Approx(4000.0 / 3.0));
  CHECK(roof_ns(machine, view, view.calls[1]) == doctest::Approx(100.0 / 15.0 + 60.0 / 7.5));
  plan.calls[1].tile = 0;  // one core's cache is too small
  CHECK(level_of(machine, view, view.calls[1]).name == "memory");
  CHECK(roof_ns(machine, view, view.calls[1]) == doctest::Approx(160.0 / 1.5));
  plan.facts.threads = 1;
  CHECK(roof_ns(machine, view, view.calls[0]) == doctest::Approx(2000.0));

  const EventBytes bytes(small_events());
  const StepTimes times = step_times(bytes.view(), view);
  const Breakdown table = breakdown(times, view, GroupBy::kCall, {.machine = &machine});
  CHECK(table.rows[0].name == "0 mm");
  CHECK(table.rows[0].roof() == doctest::Approx(2 * 2000.0 / 290.0));
  CHECK(breakdown(times, view, GroupBy::kCall).rows[0].roof() == 0.0);
}

// A call that updates 40 bytes of 60 where they are, and reads 60 more.
PlanRecord plan_in_place() {
  PlanRecord plan = small_plan();
  plan.dims = {5, 10, 15};
  const TextId f32 = plan.texts.id("f32");
  const auto operand = [&](std::uint32_t buffer, std::int64_t offset, std::uint32_t dim) {
    return PlanOperand{.value = 0,
                       .buffer = buffer,
                       .offset = offset,
                       .dtype = f32,
                       .shape = {.begin = dim, .count = 1}};
  };
  plan.values.push_back({.kind = PlanValueKind::kNode, .bytes = 60});
  plan.operands = {operand(0, 0, 1), operand(1, 0, 2),   // reads 40 and 60 bytes
                   operand(0, 0, 1), operand(2, 0, 0)};  // writes 40 there, and 20 elsewhere
  plan.calls[0].inputs = {.begin = 0, .count = 2};
  plan.calls[0].outputs = {.begin = 2, .count = 2};
  plan.calls[0].flops = 0;
  return plan;
}

TEST_CASE("roof: bytes that a call updates in place have the rate of that") {
  PlanRecord plan = plan_in_place();
  const PlanView view = view_of(plan);
  CHECK(bytes_in_place(view, view.calls[0]) == 40);
  CHECK(bytes_in_place(view, view.calls[1]) == 0);
  Machine machine = small_machine();
  machine.levels[1].update = Rate{.one = 4e9, .all = 4e9};
  machine.levels[1].copy = {.one = 5e8, .all = 5e8};
  CHECK(roof_ns(machine, view, view.calls[0]) == doctest::Approx(60.0 + 80.0 / 4.0 + 20.0));
  CHECK(!roof_terms(machine, view, view.calls[0]).like_a_copy);
  machine.levels[1].update.reset();  // a file of an older program
  CHECK(roof_ns(machine, view, view.calls[0]) == doctest::Approx(60.0 + 80.0 / 0.5 + 20.0));
  CHECK(roof_terms(machine, view, view.calls[0]).like_a_copy);
  // Of 160 bytes are 120 there.
  machine.levels[0].bytes = 120;
  CHECK(level_of(machine, view, view.calls[0]).name == "L2");
  machine.levels[0].bytes = 119;
  CHECK(level_of(machine, view, view.calls[0]).name == "memory");
  // Half of the bytes are another's, as a tile's slice beside the next may be.
  plan.operands[2].offset = 20;
  CHECK(bytes_in_place(view, view.calls[0]) == 20);
  plan.operands[2].buffer = 1;
  CHECK(bytes_in_place(view, view.calls[0]) == 40);
  plan.operands[2].buffer = kNoRow;
  CHECK(bytes_in_place(view, view.calls[0]) == 0);
}

TEST_CASE("breakdown: rows that are masked are neither FLOPs nor bytes of the roof") {
  PlanRecord plan = small_plan();
  plan.dims = {10, 4};
  plan.values.push_back({.kind = PlanValueKind::kNode, .bytes = 80});
  plan.operands.push_back({.value = 0, .shape = {.begin = 0, .count = 2}});
  plan.calls[0].inputs = {.begin = 0, .count = 1};
  const PlanView view = view_of(plan);
  std::vector<Event> events = small_events();
  for (const double rows : {2.0, 4.0}) {  // of ten
    events.push_back({.begin_ns = 1200,
                      .value = std::bit_cast<std::uint64_t>(rows),
                      .id = 0,
                      .kind = EventKind::kCountedRows});
  }
  const EventBytes bytes(events);
  const StepTimes times = step_times(bytes.view(), view);
  CHECK(times.calls[0].rows == doctest::Approx(0.3));
  CHECK(times.calls[1].rows == 1.0);
  const Breakdown table = breakdown(times, view, GroupBy::kCall);
  CHECK(table.rows[0].flops == doctest::Approx(2 * 0.3 * 4000));
  CHECK(table.rows[0].direct_flops == 2 * 4000);
  const RoofTerms terms = roof_terms(small_machine(), view, view.calls[0], 0.3);
  CHECK(terms.traffic == doctest::Approx((100 - 0.7 * 80) / 1e10 + 60 / 5e9));
  CHECK(terms.arithmetic == doctest::Approx(0.3 * 4000 / 2e9));
}

TEST_CASE("step times: another run of the same calls behind them") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(small_events());
  const StepTimes once = step_times(bytes.view(), view_of(plan));
  StepTimes both = once;
  both.calls[0].rows = 0.5;
  append(both, once);
  CHECK(both.steps.size() == 4);
  CHECK(both.total_ns == 3600);
  CHECK(both.calls[0].ns == StepNs{90, 200, 90, 200});
  CHECK(both.calls[0].runs == 4);
  CHECK(both.calls[0].rows == doctest::Approx(0.75));
  CHECK(both.calls[2].busy_ns == 420);
}

TEST_CASE("step times: spans that do not nest and calls that there are not are refused") {
  using enum EventKind;
  const PlanRecord plan = small_plan();
  const auto refused = [&](std::vector<Event> events) {
    const EventBytes bytes(events);
    CHECK_THROWS_AS(step_times(bytes.view(), view_of(plan)), Error);
  };
  refused({span_of(kCall, 4, 10, 20), span_of(kStep, 1, 0, 100)});
  refused({on_thread(1, span_of(kCall, 99, 10, 20))});
  refused({span_of(kCall, 0, 10, 50), span_of(kCall, 1, 40, 60), span_of(kStep, 1, 0, 100)});
  refused({span_of(kCall, 0, 10, 90), span_of(kStep, 1, 0, 50)});
}

}  // namespace
}  // namespace trainscope::profiler::test
