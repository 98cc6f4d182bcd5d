// The page of a run: what it holds, and what of a stranger's run can never become markup.
#include "profiler/report/report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "engine/machine/machine.h"
#include "profiler/report/charts.h"
#include "profiler/report/html.h"
#include "profiler/report/sections.h"
#include "tests/profiler/analysis/profile_tools.h"
#include "tests/profiler/report/page_text.h"

namespace trainscope::profiler::test {
namespace {

std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

RunManifest manifest_of(std::vector<std::string> command) {
  RunManifest manifest;
  manifest.sessions.push_back({.command = std::move(command),
                               .program_version = "0.1",
                               .device = "cpu",
                               .threads = 2,
                               .isa = "AVX2",
                               .start_time = "2026-01-01T00:00:00Z"});
  return manifest;
}

// Three buffers, of which two meet at time 1.
PlanRecord plan_with_buffers(const char* label) {
  PlanRecord plan = small_plan();
  plan.facts.times = 4;
  plan.facts.update_begin = 3;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) plan.calls[i].time = i;
  plan.spaces[0].bytes = 4096;
  plan.spaces[0].lower_bound_bytes = 2048;
  const TextId name = plan.texts.id(label);
  plan.buffers.push_back({.holds = BufferClass::kParameter,
                          .label = name,
                          .producer = name,
                          .begin = 0,
                          .end = 4,
                          .offset = 0,
                          .bytes = 1024});
  plan.buffers.push_back({.holds = BufferClass::kActivation,
                          .label = name,
                          .producer = name,
                          .begin = 0,
                          .end = 2,
                          .offset = 1024,
                          .bytes = 2048});
  plan.buffers.push_back({.holds = BufferClass::kGradient,
                          .label = name,
                          .producer = name,
                          .begin = 1,
                          .end = 3,
                          .offset = 3072,
                          .bytes = 1024});
  return plan;
}

Machine small_machine() {
  const Rate rate{.one = 1e9, .all = 2e9};
  Machine machine;
  machine.cores = 2;
  machine.levels = {
      {.name = "memory", .bytes = 1 << 30, .read = rate, .write = rate, .copy = rate}};
  machine.flops_per_second[DType::kF32] = {.one = 1e10, .all = 2e10};
  return machine;
}

}  // namespace

TEST_CASE("report: a run without anything yet says what is not there") {
  const std::string page =
      html_report({.name = "fresh", .manifest = manifest_of({"trainscope"}), .session = 1});
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(contains(page, "<title>Run fresh</title>"));
  CHECK(contains(page, "The run has no plan yet."));
  CHECK(contains(page, "The run has no stages yet."));
  CHECK(contains(page, "This session was not profiled"));
  CHECK_FALSE(contains(page, "id=\"curves\""));
  CHECK_FALSE(contains(page, "<script"));
  CHECK_FALSE(contains(page, "://"));  // nothing is fetched from anywhere
}

TEST_CASE("report: a profiled run, by phase, op, layer and node, with its peak") {
  const PlanRecord plan = plan_with_buffers("act");
  const EventBytes events(small_events());
  ReportInput input{
      .name = "r", .manifest = manifest_of({"trainscope", "train", "a model.onnx"}), .session = 1};
  input.plan = view_of(plan);
  input.times = step_times(events.view(), *input.plan);
  input.threads = thread_times(events.view(), *input.plan);
  input.spread = step_spread(events.view(), *input.plan, *input.times);
  for (int i = 1; i <= 5; ++i) {
    input.metrics.steps.push_back({.step = i,
                                   .loss = 5.0 / i,
                                   .learning_rate = 0.1,
                                   .gradient_norm = std::nan(""),
                                   .step_ms = 2.0,
                                   .samples = 8});
  }
  input.metrics.evaluations.push_back({.step = 5, .loss = 1.5, .accuracy = 0.25, .examples = 8});
  input.stages.push_back(
      {.name = "fuse",
       .nodes_before = 9,
       .nodes_after = 7,
       .changed = true,
       .counters = {{"fused", 2}},
       .near_misses = {{{"/fc/MatMul", "/fc/Add", "/Relu"}, "it is read twice"}}});
  const std::string page = html_report(input);
  for (const char* heading :
       {"By phase", "By op", "By layer", "By ONNX node", "Calls that take longest",
        "What holds the peak", "Memory-time plane", "Threads", "Steps, and those that took longer",
        "A step takes", "The most bytes are alive"}) {
    CAPTURE(heading);
    CHECK(contains(page, heading));
  }
  CHECK(contains(page, "2 profiled steps"));
  CHECK(contains(page, "9 to 7"));
  CHECK(contains(page, "fused: 2"));
  CHECK(contains(page, "it is read twice"));
  CHECK(contains(page, "/fc/MatMul</code> and 2 more"));
  CHECK(contains(page, "trainscope train &#39;a model.onnx&#39;"));
  CHECK(contains(page, "4 KiB"));  // 4096 bytes are alive at time 1
  CHECK(contains(page, "at time 1 "));
  CHECK(count_of(page, "<rect ") == 3);
  CHECK(contains(page, "No machine was measured"));
  CHECK_FALSE(contains(page, "Gradient norm"));  // nobody measured it
  input.machine = small_machine();
  CHECK(contains(html_report(input), "of its roof"));
  CHECK(page.size() < 100'000);
}

TEST_CASE("report: names with markup stay text, wherever they stand") {
  const char* const bad = "<script>alert('x')</script>\"&\x1b[31m";
  PlanRecord plan = plan_with_buffers(bad);
  plan.nodes[0].name = plan.texts.id(bad);
  plan.names[0] = plan.texts.id(bad);
  plan.calls[0].kernel = plan.texts.id(bad);
  const EventBytes events(small_events());
  RunManifest manifest = manifest_of({bad});
  manifest.sessions.back().message = bad;
  manifest.model.set(bad, std::string(bad));
  manifest.options.set("data", std::string(bad));
  ReportInput input{.name = bad, .manifest = std::move(manifest), .session = 1};
  input.plan = view_of(plan);
  input.times = step_times(events.view(), *input.plan);
  input.stages.push_back(
      {.name = bad, .changed = true, .counters = {{bad, 1}}, .near_misses = {{{bad}, bad}}});
  const std::string page = html_report(input);
  CHECK_FALSE(contains(page, "<script"));
  CHECK_FALSE(contains(page, "\x1b"));
  CHECK(count_of(page, "&lt;script&gt;") >= 12);
}

TEST_CASE("report: curves with gaps, of one point, of very many points") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(contains(line_chart({.title = "t", .lines = {{.name = "a", .points = {{1, nan}}}}}),
                 "no finite value"));
  const std::string gap = line_chart(
      {.title = "t", .lines = {{.name = "a", .points = {{1, 1}, {2, infinite}, {3, 2}, {4, 3}}}}});
  CHECK(count_of(gap, "h0.01") == 2);  // two pieces
  CHECK_FALSE(contains(gap, "inf"));
  CHECK_FALSE(contains(gap, "nan"));
  const std::string one =
      line_chart({.title = "t", .lines = {{.name = "a", .points = {{7, 0.0}}}}});
  CHECK(count_of(one, "<circle") == 1);
  Line many{.name = "a"};
  for (int i = 0; i < 200'000; ++i) many.points.emplace_back(i, i == 123'456 ? 50.0 : i % 7);
  const std::string thin = line_chart({.title = "t", .lines = {many}});
  CHECK(thin.size() < 40'000);
  CHECK(contains(thin, " 28.0"));  // the one peak is at the top, not thinned away
}

TEST_CASE("report: of very many buffers the largest are drawn, and that is said") {
  PlanRecord plan = plan_with_buffers("act");
  for (int i = 0; i < 3000; ++i)
    plan.buffers.push_back({.begin = 0, .end = 1, .offset = 0, .bytes = 1});
  const std::string chart = memory_chart(view_of(plan));
  CHECK(count_of(chart, "<rect ") == kMostDrawnBuffers);
  CHECK(contains(chart, "The 2000 largest of 3003 buffers are drawn."));
}

TEST_CASE("report: rooflines need a rate and work, and shares size the circles") {
  CHECK(roofline_chart({.title = "t", .peak_flops = 1e9}).empty());
  const std::string chart =
      roofline_chart({.title = "t",
                      .peak_flops = 1e10,
                      .levels = {{"L1", 1e10}, {"memory", 1e9}},
                      .points = {{.name = "MatMul", .intensity = 10.0, .flops = 5e9, .share = 0.25},
                                 {.name = "Copy", .intensity = 0.0, .flops = 0.0, .share = 0.1}}});
  CHECK(count_of(chart, "<circle") == 1);
  CHECK(contains(chart, "r=\"9.0\""));
  CHECK(count_of(chart, "class=\"roof\"") == 2);
}

TEST_CASE("report: a picture of the window has names of its own, and shapes alone") {
  const std::string document =
      "<?xml version=\"1.0\"?>\n<svg width=\"2\"><defs><clipPath "
      "id=\"c1\"><rect/></clipPath></defs>"
      "<g clip-path=\"url(#c1)\"><text>a &lt;script id</text></g>\n</svg>\n";
  CHECK(
      inline_svg(document, "graph-") ==
      "<svg class=\"window\" width=\"2\"><defs><clipPath id=\"graph-c1\"><rect/></clipPath></defs>"
      "<g clip-path=\"url(#graph-c1)\"><text>a &lt;script id</text></g>\n</svg>");
  CHECK(inline_svg("<svg ><script>alert(1)</script></svg>", "a").empty());
  CHECK(inline_svg("<svg ><image href=\"http://x\"/></svg>", "a").empty());
  CHECK(inline_svg("<svg ><!-- --></svg>", "a").empty());
  CHECK(inline_svg("not a picture", "a").empty());
  CHECK(inline_svg("<svg cut off", "a").empty());

  ReportInput input{.name = "r"};
  CHECK(pictures_section(input).empty());
  input.no_pictures = "there is <no> window";
  CHECK(contains(pictures_section(input), "there is &lt;no&gt; window"));
  input.pictures = {{.name = "graph", .svg = document}, {.name = "bad", .svg = "<svg ><b/></svg>"}};
  CHECK(count_of(pictures_section(input), "<svg") == 1);
  CHECK(contains(pictures_section(input), "<h3>graph</h3>"));
  CHECK(contains(pictures_section(input), "<h3>bad</h3><p class=\"soft\">Left out"));
  CHECK_FALSE(contains(pictures_section(input), "no&gt;"));
}

TEST_CASE("charts: one outlier does not flatten the others, and is said to be there") {
  Line line{.name = "step"};
  for (int i = 0; i < 100; ++i) line.points.emplace_back(i, 10.0 + 0.01 * i);
  line.points[50].second = 1000.0;
  LineChart chart{.title = "Time", .lines = {line}, .from_zero = true, .cuts_outliers = true};
  const std::string cut = line_chart(chart);
  CHECK(contains(cut, "Time (1 of them beyond the axis, at most 1000)"));
  CHECK_FALSE(contains(cut, ">800<"));  // no tick of an axis that reaches to 1000
  chart.cuts_outliers = false;
  CHECK(contains(line_chart(chart), ">800<"));
  chart.cuts_outliers = true;
  chart.lines[0].points[50].second = 10.5;
  CHECK_FALSE(contains(line_chart(chart), "beyond the axis"));
}

}  // namespace trainscope::profiler::test
