// The errors of values as a picture, beside other runs and the truth.
#include <doctest/doctest.h>

#include "profiler/report/heat_map.h"
#include "profiler/report/report.h"
#include "profiler/report/sections.h"
#include "tests/profiler/report/page_text.h"

namespace trainscope::profiler::test {
namespace {

const std::string kTraces = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/numerics/";

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
  CHECK_FALSE(contains(text, "<script>"));
  CHECK(contains(text, "&lt;script&gt;"));
  CHECK(contains(text, "class=\"beyond\""));
  CHECK(heat_map({.title = "t"}).empty());
}

TEST_CASE("report: errors of every value against the truth and a peer") {
  const std::string page = numbers_section(against("mlp-pytorch"));
  CHECK(contains(page, "this run - f64"));
  CHECK(contains(page, "mlp-pytorch - f64"));
  CHECK(contains(page, "this run - mlp-pytorch"));
  CHECK(contains(page, "act:/3/Relu_output_0"));
  CHECK(contains(page, "grad:0.weight"));
  CHECK(contains(page, "none beyond its limit"));
  CHECK_FALSE(contains(page, "class=\"beyond\""));
}

TEST_CASE("report: the first value beyond its limit is named, and framed") {
  const std::string page = numbers_section(against("mlp-pytorch-faulty"));
  CHECK(contains(page, "the first: step 1, forward, <code>act:/3/Relu_output_0</code>"));
  CHECK(contains(page, "class=\"beyond\""));
}

TEST_CASE("report: why tensors are not compared is said") {
  ReportInput input{.name = "run"};
  input.peers.push_back({.name = "other", .no_tensors = "other <models>"});
  CHECK(contains(numbers_section(input), "other &lt;models&gt;"));
  CHECK(numbers_section({.name = "run"}).empty());
}

}  // namespace
}  // namespace trainscope::profiler::test
