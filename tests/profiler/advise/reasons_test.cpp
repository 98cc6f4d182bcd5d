// Sentences: what holds the peak, what takes the time, and why a call is not at its roof.
#include "profiler/advise/reasons.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

// Two buffers meet at time 1, where "gelu.0" runs.
PlanRecord plan_with_a_peak() {
  PlanRecord plan = small_plan();
  plan.facts.times = 4;
  plan.spaces[0].bytes = 4096;
  plan.spaces[0].lower_bound_bytes = 3072;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) plan.calls[i].time = i;
  plan.buffers.push_back({.holds = BufferClass::kParameter,
                          .label = plan.texts.id("w"),
                          .begin = 0,
                          .end = 4,
                          .bytes = 1024});
  plan.buffers.push_back({.holds = BufferClass::kActivation,
                          .label = plan.texts.id("x\x1b[2J"),
                          .begin = 1,
                          .end = 2,
                          .offset = 1024,
                          .bytes = 3072});
  return plan;
}

Machine machine_of(double flops, double bytes) {
  Machine machine;
  machine.levels = {{.name = "L2",
                     .bytes = 1 << 20,
                     .read = {.one = bytes, .all = bytes},
                     .write = {.one = bytes, .all = bytes},
                     .copy = {.one = bytes, .all = bytes}}};
  machine.flops_per_second[DType::kF32] = {.one = flops, .all = flops};
  return machine;
}

TEST_CASE("peak: when it is, what is alive, the largest first") {
  const PlanRecord plan = plan_with_a_peak();
  const MemoryPeak peak = memory_peak(view_of(plan));
  CHECK(peak.time == 1);
  CHECK(peak.live_bytes == 4096);
  CHECK(peak.call == 1);
  CHECK(peak.alive == std::vector<std::uint32_t>{1, 0});
  CHECK(peak.share(3072) == 0.75);
  CHECK(memory_peak(view_of(PlanRecord{})).live_bytes == 0);
}

TEST_CASE("reasons: three sentences on the peak, with names that a terminal can show") {
  const PlanRecord plan = plan_with_a_peak();
  const auto sentences = peak_sentences(view_of(plan), memory_peak(view_of(plan)));
  REQUIRE(sentences.size() == 3);
  CHECK(sentences[0] ==
        "The most bytes are alive at time 1 of 4, when Gelu 'gelu.0' of the forward phase runs: "
        "4 KiB of an arena of 4 KiB, whose lower bound is 3 KiB.");
  CHECK(sentences[1] ==
        "Of these bytes are 75.0 % activations of the forward phase (3 KiB) and 25.0 % parameters "
        "(1 KiB).");
  CHECK(sentences[2] ==
        "The largest of the 2 buffers are 'x\\x1b[2J' (activation, 3 KiB, alive from time 1 to 2) "
        "and 'w' (parameter, 1 KiB, alive from time 0 to 4).");
}

TEST_CASE("reasons: three sentences on the time, the last about the call that takes longest") {
  const PlanRecord plan = small_plan();
  const EventBytes bytes(small_events());
  const StepTimes times = step_times(bytes.view(), view_of(plan));
  const auto sentences = time_sentences(times, view_of(plan), nullptr);
  REQUIRE(sentences.size() == 3);
  CHECK(
      contains(sentences[0], "A step takes 0.001 ms (median of 2): 50.0 % in the backward phase"));
  CHECK(contains(sentences[1], "MatMul 66.1 % in 2 calls"));
  CHECK(contains(sentences[2], "MatMul of the node '/fc/MatMul' (backward phase, kernel gemm)"));
  CHECK(contains(sentences[2], "doctor --roofs"));
  const Machine machine = machine_of(1e11, 1e9);
  const auto with_roof = time_sentences(times, view_of(plan), &machine);
  CHECK(contains(with_roof[2], "% of its roof, which is bytes of L2, because "));
}

TEST_CASE("roof reason: the largest loss that is known of is named") {
  PlanRecord plan = small_plan();
  PlanCall& call = plan.calls[3];  // 8000 FLOPs, 160 bytes
  call.dtype = plan.texts.id("f32");
  const Machine machine = machine_of(1e9, 1e12);  // 8 us of arithmetic
  const auto reason = [&](double seconds, const Machine& of) {
    return roof_reason(of, view_of(plan), plan.calls[3], seconds);
  };
  CHECK(reason(8e-6, machine).share == doctest::Approx(1.0));
  CHECK(reason(8e-6, machine).reason.empty());
  CHECK(reason(8e-6, machine).bound == "arithmetic in f32");
  CHECK(contains(reason(16e-6, machine).reason, "gemm reaches no more"));
  Machine slow_start = machine;
  slow_start.seconds_per_call = 7e-6;
  CHECK(contains(reason(16e-6, slow_start).reason, "starting a call takes 7.0 us"));
  call.kernel_flops = 12'000;
  CHECK(reason(16e-6, machine).share == doctest::Approx(0.75));
  CHECK(contains(reason(16e-6, machine).reason, "1.50 times the op's FLOPs"));
  call.kernel_flops = -1;
  call.kernel_bytes_read = 14'000'000;
  call.kernel_bytes_written = 60;
  CHECK(contains(reason(16e-6, machine).reason, "times the bytes of its operands"));
  call.other_kernels = {.begin = 0, .count = 1};
  plan.other_kernels.push_back(
      {.kernel = plan.texts.id("gemm.quick"), .reason = plan.texts.id("no such processor")});
  CHECK(contains(reason(16e-6, machine).reason, "not taken was gemm.quick (no such processor)"));
}

TEST_CASE("roof reason: a call in place is held against an update's rate") {
  PlanRecord plan = small_plan();
  plan.values.push_back({.bytes = 60});
  plan.operands = {{.value = 0, .buffer = 0}, {.value = 0, .buffer = 0}};
  PlanCall& call = plan.calls[3];  // reads 100 bytes, writes 60
  call.flops = 0;
  call.inputs = {.begin = 0, .count = 1};
  call.outputs = {.begin = 1, .count = 1};
  call.kernel_bytes_read = 100;
  call.kernel_bytes_written = 60;
  Machine machine = machine_of(1e12, 1e9);
  machine.levels[0].write = {.one = 1e8, .all = 1e8};
  machine.levels[0].update = Rate{.one = 2e9, .all = 2e9};
  const RoofReason near = roof_reason(machine, view_of(plan), call, 100e-9);
  CHECK(near.share == doctest::Approx(1.0));  // 40 bytes that are read, 120 in place
  CHECK(near.bound == "bytes of L2, 75 % of them in place");
  const RoofReason far = roof_reason(machine, view_of(plan), call, 300e-9);
  CHECK(contains(far.reason, "gemm reaches no more"));  // its kernel moves no byte twice
  machine.levels[0].update.reset();
  CHECK(contains(roof_reason(machine, view_of(plan), call, 300e-9).bound,
                 "in place at a copy's rate, as the machine has none for them"));
}

TEST_CASE("roof reason: a batch tile is held against a core's share") {
  PlanRecord plan = small_plan();
  plan.facts.threads = 2;
  PlanCall& call = plan.calls[3];
  call.dtype = plan.texts.id("f32");
  call.tile = 0;
  call.section = 0;
  Machine machine = machine_of(1e9, 1e12);
  machine.flops_per_second[DType::kF32] = {.one = 1e9, .all = 2e9};
  CHECK(roof_reason(machine, view_of(plan), call, 8e-6).share == doctest::Approx(1.0));
}

}  // namespace
}  // namespace trainscope::profiler::test
