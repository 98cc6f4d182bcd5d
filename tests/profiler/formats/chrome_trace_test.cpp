// Trace event JSON: names of any kind, values that are no numbers, and arrows.
#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

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
