// Trace event JSON: names of any kind, values that are no numbers, and arrows.
#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "profiler/formats/formats.h"
#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

std::string text_of(const EventView& events, const PlanRecord& plan, const std::string& name) {
  std::string text;
  format_named("chrome")->write({.events = &events, .plan = view_of(plan), .name = name},
                                [&text](std::string_view piece) { text += piece; });
  return text;
}

TEST_CASE("chrome trace: names with quotes, backslashes and control characters stay JSON") {
  const std::string odd = "a\"b\\c\n\x01\xff</script>";
  PlanRecord plan = plan_of({{odd.c_str(), "MatMul", odd.c_str(), PlanPhase::kForward, 1}});
  plan.facts.times = 1;
  const EventBytes bytes({span_of(EventKind::kCall, 0, 1'234'567, 2'000'000)});
  const Json trace = Json::parse(text_of(bytes.view(), plan, odd));
  bool found = false;
  for (const Json& row : trace.array_at("traceEvents")) {
    if (row.get<std::string>("ph") != "X") continue;
    found = true;
    CHECK(row.get<std::string>("name") == "onnx::MatMul");
    CHECK(row.at("args").get<std::string>("onnx_node") == "a\"b\\c\n\x01\xEF\xBF\xBD</script>");
    CHECK(row.get<double>("ts") == 1234.567);
    CHECK(row.get<double>("dur") == 765.433);
  }
  CHECK(found);
}

TEST_CASE("chrome trace: a loss that is no number has no row") {
  const PlanRecord plan = plan_of({{"a", "MatMul", "a", PlanPhase::kForward, 1}});
  const auto loss = [](std::int64_t at, double value) {
    return Event{
        .begin_ns = at, .value = std::bit_cast<std::uint64_t>(value), .kind = EventKind::kLoss};
  };
  const EventBytes bytes({loss(5, 1.5), loss(6, std::numeric_limits<double>::quiet_NaN()),
                          loss(7, std::numeric_limits<double>::infinity())});
  const Json trace = Json::parse(text_of(bytes.view(), plan, "run"));
  int rows = 0;
  for (const Json& row : trace.array_at("traceEvents")) {
    if (row.get<std::string>("ph") == "C") ++rows;
  }
  CHECK(rows == 1);
}

// "s1@1.11 f1@1.35 ": ends of arrows of a category, with their times.
std::string arrows_of(const Json& trace, const std::string& category) {
  std::string arrows;
  for (const Json& row : trace.array_at("traceEvents")) {
    const std::string kind = row.get<std::string>("ph");
    if ((kind != "s" && kind != "f") || row.get<std::string>("cat") != category) continue;
    arrows += kind + std::to_string(row.get<int>("id")) + "@" + row.at("ts").dump() + " ";
  }
  return arrows;
}

TEST_CASE("chrome trace: arrows lead from a forward call to the calls of its gradient") {
  PlanRecord plan = small_plan();
  plan.nodes[0].serial = 11;
  plan.nodes[3].backward_of = 11;
  const EventBytes bytes(small_events());
  const Json trace = Json::parse(text_of(bytes.view(), plan, "run"));
  CHECK(arrows_of(trace, "fwdbwd") == "s1@1.11 f1@1.35 s2@2.12 f2@2.43 ");
}

// Call 2, a batch tile on the other thread, begins before call 1 of the same node.
TEST_CASE("chrome trace: arrows lead from a node's first call in a micro-step to its others") {
  const PlanRecord plan = small_plan();
  std::vector<Event> events = small_events();
  std::erase_if(events, [](const Event& event) { return event.begin_ns >= 3000; });
  const EventBytes bytes(events);
  const Json trace = Json::parse(text_of(bytes.view(), plan, "run"));
  CHECK(arrows_of(trace, "onnx_node") ==
        "s1@1.215 f1@1.22 s2@1.11 f2@1.35 s3@2.33 f3@2.33 s4@2.12 f4@2.43 ");
}

// Three calls on two streams, the last of which the file does not tell of: two kernels, a copy that
// the plan calls one, and a kernel of the gradient of the first.
std::vector<Event> device_events() {
  using enum EventKind;
  return {span_of(kBind, 0, 1010, 1030),
          span_of(kStepPart, 0, 1030, 1060),
          span_of(kRead, 0, 1070, 1600),
          span_of(kStep, 6, 1000, 2000),
          on_thread(1, span_of(kDeviceWork, 0, 1100, 1150)),
          on_thread(1, span_of(kDeviceWork, 0, 1160, 1200)),
          on_thread(1, span_of(kCall, 0, 1100, 1200)),
          on_thread(1, span_of(kDeviceWork, 3, 1200, 1500)),
          on_thread(1, span_of(kCall, 3, 1200, 1500)),
          on_thread(3, span_of(kDeviceWork, 1, 1210, 1240)),
          on_thread(3, span_of(kCall, 1, 1210, 1240))};
}

PlanRecord device_plan() {
  PlanRecord plan = small_plan();
  plan.facts.device = plan.texts.id("a GPU");
  plan.facts.times = 1;
  plan.nodes[0].serial = 11;
  plan.nodes[3].backward_of = 11;
  plan.calls[1].kind = PlanCallKind::kStateCopy;
  return plan;
}

// "kernel gemm 0/8 1.1+0.05 6": category, name, process and thread, times, correlation.
std::string stream_rows_of(const Json& trace) {
  std::string rows;
  for (const Json& row : trace.array_at("traceEvents")) {
    if (row.get<std::string>("ph") != "X" || row.at("args").find("stream") == nullptr) continue;
    const Json& args = row.at("args");
    CHECK(args.get<int>("stream") == row.get<int>("tid"));
    CHECK(args.get<int>("device") == row.get<int>("pid"));
    rows += row.get<std::string>("cat") + " " + row.get<std::string>("name") + " " +
            row.at("pid").dump() + "/" + row.at("tid").dump() + " " + row.at("ts").dump() + "+" +
            row.at("dur").dump() + " " + args.at("correlation").dump() + "; ";
  }
  return rows;
}

TEST_CASE("chrome trace: what a device did is on its streams, tied to the step of its time") {
  const PlanRecord plan = device_plan();
  const EventBytes bytes(device_events());
  const Json trace = Json::parse(text_of(bytes.view(), plan, "run"));
  CHECK(stream_rows_of(trace) ==
        "kernel gemm 0/8 1.1+0.05 6; kernel gemm 0/8 1.16+0.04 6; kernel gemm 0/8 1.2+0.3 6; "
        "gpu_memcpy Memcpy DtoD (Device -> Device) 0/10 1.21+0.03 6; ");
  std::set<std::pair<int, int>> named;
  std::set<std::pair<int, int>> used;
  std::string runs;
  std::string labels;
  int live = 0;
  for (const Json& row : trace.array_at("traceEvents")) {
    const std::pair<int, int> place = {row.get<int>("pid"), row.get<int>("tid")};
    const std::string name = row.get<std::string>("name");
    if (name == "thread_name") named.insert(place);
    if (name == "process_labels") labels += row.at("args").get<std::string>("labels") + "; ";
    if (name == "arena bytes") ++live;
    if (row.get<std::string>("ph") != "X") continue;
    used.insert(place);
    const std::string category = row.get<std::string>("cat");
    const bool is_run = row.at("args").find("call") != nullptr;
    CHECK(is_run == (category == "gpu_user_annotation"));
    if (is_run) runs += name + "@" + row.at("ts").dump() + " ";
    const bool is_step = name == "ProfilerStep#6";
    if (is_step) CHECK(row.at("args").get<int>("correlation") == 6);
  }
  CHECK(runs == "onnx::MatMul@1.1 onnx::MatMul@1.2 state_copy@1.21 ");
  CHECK(labels == "CPU; a GPU; ");
  CHECK(live == 3);
  for (const std::pair<int, int>& place : used) CHECK(named.contains(place));
  CHECK(arrows_of(trace, "fwdbwd") == "s1@1.1 f1@1.2 ");
  CHECK(arrows_of(trace, "onnx_node") == "s1@1.1 f1@1.2 ");
  const EventView events = bytes.view();
  const FormatInput as_device{.events = &events, .plan = view_of(plan), .as_device = true};
  CHECK_THROWS_AS(format_named("chrome")->write(as_device, [](std::string_view) {}), Error);
}

// The host was at the second micro-step before the device began with the first.
TEST_CASE("chrome trace: arrows of nodes stay within a micro-step of the device") {
  using enum EventKind;
  const EventBytes bytes(
      {span_of(kStepPart, 0, 1010, 1020), span_of(kStepPart, 0, 1020, 1030),
       span_of(kStep, 6, 1000, 2000), on_thread(1, span_of(kCall, 0, 1100, 1200)),
       on_thread(1, span_of(kCall, 3, 1200, 1300)), on_thread(1, span_of(kCall, 0, 1300, 1400)),
       on_thread(1, span_of(kCall, 3, 1400, 1500))});
  const Json trace = Json::parse(text_of(bytes.view(), device_plan(), "run"));
  CHECK(arrows_of(trace, "onnx_node") == "s1@1.1 f1@1.2 s2@1.3 f2@1.4 ");
  // Nothing tells what the calls did within their runs: these are the work.
  CHECK(stream_rows_of(trace) ==
        "kernel gemm 0/8 1.1+0.1 6; kernel gemm 0/8 1.2+0.1 6; kernel gemm 0/8 1.3+0.1 6; "
        "kernel gemm 0/8 1.4+0.1 6; ");
}

TEST_CASE(
    "chrome trace: a kernel of a CPU has no name that readers take for a copy or collective") {
  for (const std::string name : {"nccl_like", "Memcpy rows", "Memset"}) {
    PlanRecord plan = plan_of({{"a", "MatMul", "a", PlanPhase::kForward, 1}});
    plan.calls[0].kernel = plan.texts.id(name);
    const EventBytes bytes({span_of(EventKind::kCall, 0, 10, 20)});
    const EventView events = bytes.view();
    std::string text;
    format_named("chrome")->write(
        {.events = &events, .plan = view_of(plan), .name = "run", .as_device = true},
        [&text](std::string_view piece) { text += piece; });
    CHECK(text.find("\"cat\": \"kernel\", \"name\": \"kernel " + name + "\"") != std::string::npos);
  }
}

}  // namespace
}  // namespace trainscope::profiler::test
