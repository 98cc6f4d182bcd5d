// Nodes that one plan computes in one call and the other in several.
#include "profiler/analysis/fused_nodes.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/profiler/analysis/profile_tools.h"

namespace trainscope::profiler::test {
namespace {

// A forward call for each list of ONNX nodes.
PlanRecord plan_of_sources(const std::vector<std::vector<const char*>>& calls) {
  PlanRecord plan;
  for (const std::vector<const char*>& sources : calls) {
    const auto begin = static_cast<std::uint32_t>(plan.names.size());
    for (const char* source : sources) plan.names.push_back(plan.texts.id(source));
    const auto id = static_cast<std::uint32_t>(plan.nodes.size());
    plan.nodes.push_back(
        {.name = plan.texts.id("node"),
         .op = plan.texts.id("MatMul"),
         .sources = {.begin = begin, .count = static_cast<std::uint32_t>(sources.size())}});
    plan.calls.push_back({.node = id});
  }
  return plan;
}

TEST_CASE("fused nodes: those of one call have the name of its first, in both runs") {
  const PlanRecord a = plan_of_sources({{"mm"}, {"softmax"}, {"mm2"}, {"gelu"}});
  const PlanRecord b = plan_of_sources({{"mm", "softmax", "mm2"}, {"gelu"}});
  for (const FusedNodes& fused :
       {FusedNodes(view_of(a), view_of(b)), FusedNodes(view_of(b), view_of(a))}) {
    CHECK(fused.name_of("softmax") == "mm");
    CHECK(fused.name_of("mm2") == "mm");
    CHECK(fused.name_of("mm") == "mm");
    CHECK(fused.name_of("gelu") == "gelu");
    CHECK(fused.name_of("elsewhere") == "elsewhere");
  }
}

TEST_CASE("fused nodes: calls of both plans that overlap are one row, in whatever order") {
  const PlanRecord a = plan_of_sources({{"x", "y"}, {"z"}});
  const PlanRecord b = plan_of_sources({{"x"}, {"y", "z"}});
  const FusedNodes fused(view_of(a), view_of(b));
  CHECK(fused.name_of("z") == "x");
  CHECK(fused.name_of("y") == "x");
  const PlanRecord c = plan_of_sources({{"y", "x"}});
  const FusedNodes circle(view_of(a), view_of(c));
  CHECK(circle.name_of("x") == circle.name_of("y"));
}

TEST_CASE("fused nodes: what several calls share glues none of them together") {
  const PlanRecord a = plan_of_sources({{"h0", "mask"}, {"h1", "mask"}});
  const FusedNodes fused(view_of(a), view_of(a));
  CHECK(fused.name_of("mask") == "mask");
  CHECK(fused.name_of("h0") == "h0");
  CHECK(fused.name_of("h1") == "h1");
}

TEST_CASE("fused nodes: rows of one name are added up, what is no call stays") {
  const PlanRecord a = plan_of_sources({{"mm", "softmax"}});
  const FusedNodes fused(view_of(a), view_of(a));
  Breakdown table{.rows = {{.name = "softmax", .ns = 30, .step_ns = {10, 20}, .runs = 2},
                           {.name = "softmax", .is_call = false, .ns = 5, .step_ns = {2, 3}},
                           {.name = "mm", .ns = 70, .step_ns = {30, 40}, .runs = 2}},
                  .steps = 2};
  fused.merge(table);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].name == "mm");
  CHECK(table.rows[0].ns == 100);
  CHECK(table.rows[0].runs == 4);
  CHECK(table.rows[0].step_ns == std::vector<double>{40, 60});
  CHECK(table.rows[0].median_ns == 50);
  CHECK(table.rows[1].name == "softmax");
}

}  // namespace
}  // namespace trainscope::profiler::test
