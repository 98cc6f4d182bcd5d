// The errors of values as a picture, beside other runs and the truth.
#include <doctest/doctest.h>

#include "profiler/report/heat_map.h"
#include "profiler/report/report.h"
#include "profiler/report/sections.h"

namespace trainscope::profiler::test {
namespace {

const std::string kTraces = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/numerics/";

bool has(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

ReportInput against(const std::string& other) {
  ReportInput input{.name = "run"};
  input.trace = Trace::open(kTraces + "mlp-trainscope");
  const Trace peer = Trace::open(kTraces + other);
  input.peers.push_back(
      {.name = other, .losses = {}, .tensors = compare_tensors(*input.trace, peer)});
  return input;
}

TEST_CASE("heat map: colours follow the logarithm of errors") {
  CHECK(heat_color(0.0) == "#2c3e78");
  CHECK(heat_color(kLeastError) == "#2c3e78");
  CHECK(heat_color(1.0) == "#d1495b");
  CHECK(heat_color(1e300) == "#d1495b");
  CHECK(heat_color(1e-6) != heat_color(1e-5));
}

TEST_CASE("heat map: names are text, never markup") {
  const HeatMap map{.title = "t",
                    .rows = {"<script>"},
                    .columns = {{.group = "a<b", .name = "1"}},
                    .cells = {{.error = 1e-3, .is_beyond = true, .title = "x\"<"}}};
  const std::string text = heat_map(map);
  CHECK_FALSE(has(text, "<script>"));
  CHECK(has(text, "&lt;script&gt;"));
  CHECK(has(text, "class=\"beyond\""));
  CHECK(heat_map({.title = "t"}).empty());
}

TEST_CASE("report: errors of every value against the truth and a peer") {
  const std::string page = numbers_section(against("mlp-pytorch"));
  CHECK(has(page, "this run - f64"));
  CHECK(has(page, "mlp-pytorch - f64"));
  CHECK(has(page, "this run - mlp-pytorch"));
  CHECK(has(page, "act:/3/Relu_output_0"));
  CHECK(has(page, "grad:0.weight"));
  CHECK(has(page, "none beyond its limit"));
  CHECK_FALSE(has(page, "class=\"beyond\""));
}

TEST_CASE("report: the first value beyond its limit is named, and framed") {
  const std::string page = numbers_section(against("mlp-pytorch-faulty"));
  CHECK(has(page, "the first: step 1, forward, <code>act:/3/Relu_output_0</code>"));
  CHECK(has(page, "class=\"beyond\""));
}

TEST_CASE("report: why tensors are not compared is said") {
  ReportInput input{.name = "run"};
  input.peers.push_back({.name = "other", .no_tensors = "other <models>"});
  CHECK(has(numbers_section(input), "other &lt;models&gt;"));
  CHECK(numbers_section({.name = "run"}).empty());
}

}  // namespace
}  // namespace trainscope::profiler::test
