// What nodes are coloured by, against the plan and the times.
#include "gui/views/graph/node_values.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "gui/data/run_data.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

TEST_CASE("node_values: times of nodes add up to those of the calls") {
  const auto step = test::compiled("gpt2", test::kSmallText);
  const test::MadeRun made("values", *step);
  const auto run = RunData::open(made.folder());
  REQUIRE(run->times() != nullptr);
  const PlanLinks links(*run->plan());
  const Graph* graph = run->graph(run->stages().size() - 1);
  REQUIRE(graph != nullptr);
  const GraphPicture picture = picture_of(*graph);
  const NodeFacts facts{.links = &links, .times = run->times()};
  const NodeValues values = node_values(picture, ColorBy::kTime, facts);
  double sum = 0.0;
  for (const NodeValue& node : values.nodes) {
    if (node.value == node.value) sum += node.value;
    CHECK(node.shade >= 0.0f);
    CHECK(node.shade <= 1.0f);
  }
  double calls = 0.0;
  for (const profiler::CallTime& call : run->times()->calls) {
    calls += static_cast<double>(call.sum()) / 1e6;
  }
  CHECK(sum == doctest::Approx(calls / static_cast<double>(run->times()->steps.size())));
}

TEST_CASE("node_values: what is not known is NaN, and without a shade") {
  const auto step = test::compiled("mlp");
  const GraphPicture picture = picture_of(step->stages.back().graph);
  for (const ColorBy coloring : {ColorBy::kTime, ColorBy::kBytes, ColorBy::kRoof}) {
    const NodeValues values = node_values(picture, coloring, {});
    for (const NodeValue& node : values.nodes) {
      CHECK(!(node.value == node.value));
      CHECK(node.shade == 0.0f);
    }
    CHECK(values.greatest == 0.0);
  }
}

TEST_CASE("node_values: passes are numbered, each once, that with the most nodes first") {
  const auto step = test::compiled("mlp");
  const GraphPicture picture = picture_of(step->stages.back().graph);
  const NodeValues values = node_values(picture, ColorBy::kPass, {});
  CHECK(values.passes.size() > 1);
  for (std::uint32_t i = 0; i < picture.nodes.size(); ++i) {
    CHECK(values.passes[values.nodes[i].category] == picture.nodes[i].pass);
  }
  std::vector<std::size_t> counts(values.passes.size());
  for (const NodeValue& node : values.nodes) ++counts[node.category];
  CHECK(std::ranges::is_sorted(counts, std::ranges::greater()));
}

}  // namespace
}  // namespace trainscope::gui
