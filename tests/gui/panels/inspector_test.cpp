// The Inspector by its items: nodes of earlier stages, links and what numbers mean.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/panels.h"
#include "gui/views/inspection.h"
#include "gui/views/past_nodes.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

class InspectorWindow : public test::WindowDriver {
 public:
  InspectorWindow() : WindowDriver(test::text_run().folder()) {
    app().show_only("inspector");
    step(2);
  }
  const PlanView& plan() { return *workbench().run()->plan(); }
  Inspection shown() {
    return inspection_of(workbench().selection(), *workbench().run(), workbench().links());
  }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE(
    "inspector: a node of an earlier stage that is clicked in Graph is told of, by its name") {
  test::WindowDriver window(test::text_run().folder());
  Workbench& bench = window.workbench();
  const std::vector<PastNode> past = past_nodes(*bench.run());
  REQUIRE_FALSE(past.empty());
  const PastNode& node = past[past.size() / 2];
  const std::string& label = bench.run()->stages()[node.stage].label;
  window.key("F1");
  bench.request("select stage:" + label);
  window.step(2);
  auto& graph = bench.state<GraphState>();
  REQUIRE(graph.stage == node.stage);
  const auto place = std::ranges::find(graph.picture.nodes, node.name, &PictureNode::name);
  REQUIRE(place != graph.picture.nodes.end());
  select_place(graph, bench, static_cast<std::uint32_t>(place - graph.picture.nodes.begin()));
  window.step(2);
  const std::string name = fmt::format("node@{}:{}", label, node.name);
  CHECK(bench.selected_name() == name);
  CHECK_FALSE(window.says("status/", "nothing selected"));
  CHECK_FALSE(window.says("inspector/inspector/", "Nothing selected"));
  CHECK(window.says("inspector/inspector/", "node of the stage " + label));
  CHECK(window.says("inspector/inspector/", place->op));
  CHECK(window.says("inspector/inspector/", "Where it went"));
  const std::string twin = panel_named("inspector")->twin(bench);
  CHECK(twin.find(" --stage " + label + " --node ") != std::string::npos);
  // The name brings it back, whatever is shown.
  const Selection selected = bench.selection();
  bench.request("select stage:" + bench.run()->stages().back().label);
  window.step();
  REQUIRE(bench.select_named("call:1"));
  REQUIRE(bench.select_named(name));
  CHECK(bench.selection().node == selected.node);
  CHECK(bench.selection().stage == selected.stage);
  CHECK(bench.selected_name() == name);
  for (const char* other : {"node@no such stage:x", "node@00-imported:no such node"}) {
    CHECK_FALSE(bench.select_named(other));
    CHECK(bench.selected_name() == name);
  }
}

TEST_CASE("inspector: every link of a node of an earlier stage selects what it names") {
  InspectorWindow window;
  Workbench& bench = window.workbench();
  const std::vector<PastNode> past = past_nodes(*bench.run());
  REQUIRE_FALSE(past.empty());
  std::size_t links = 0;
  for (std::size_t i = 0; i < past.size(); i += 1 + past.size() / 6) {
    const std::string& label = bench.run()->stages()[past[i].stage].label;
    const std::string name = fmt::format("node@{}:{}", label, past[i].name);
    REQUIRE(bench.select_named(name));
    for (const InspectionRow& row : window.shown().rows) {
      if (row.target.empty()) continue;
      INFO(name, " ", row.target);
      ++links;
      REQUIRE(bench.select_named(row.target));
      CHECK(bench.selected_name() == row.target);
      CHECK_FALSE(window.shown().what.empty());
    }
  }
  CHECK(links > 12);
}

TEST_CASE("inspector: a source of a node is a link to the ONNX node, followed by a click") {
  InspectorWindow window;
  Workbench& bench = window.workbench();
  REQUIRE(bench.select_named(fmt::format(
      "node:{}", window.plan().text(window.plan().nodes[window.plan().calls[2].node].name))));
  window.step(2);
  std::string path;
  std::string target;
  for (int page = 0; page < 20 && path.empty(); ++page) {
    for (const Item* item : window.items().below("main/inspector/")) {
      if (!item->value.starts_with("model:") || item->seen.height < 10.0F) continue;
      path = item->path;
      target = item->value;
    }
    if (path.empty()) window.wheel("main/inspector/scroll", -3.0F);
  }
  REQUIRE_FALSE(path.empty());
  REQUIRE(window.click(path));
  window.step();
  CHECK(bench.selected_name() == target);
  CHECK(window.says("main/inspector/", "ONNX node"));
}

TEST_CASE("inspector: which op holds the peak is a link under the buffer that holds most") {
  InspectorWindow window;
  const std::uint32_t largest = memory_peak(window.plan()).alive.front();
  REQUIRE(window.workbench().select_named(fmt::format("buffer:{}", largest)));
  window.step(2);
  const auto items = window.items().below("main/inspector/");
  const auto link = std::ranges::find_if(items, [](const Item* item) {
    return item->value.starts_with("node:") && !item->seen.empty();
  });
  REQUIRE(link != items.end());
  const std::string target = (*link)->value;
  REQUIRE(window.click((*link)->path));
  window.step();
  CHECK(window.workbench().selected_name() == target);
}

TEST_CASE("inspector: the mouse over a number says what it is, with its unit") {
  InspectorWindow window;
  REQUIRE(window.workbench().select_named("buffer:5"));
  window.step(2);
  int told = 0;
  const std::vector<InspectionRow> rows = window.shown().rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_number(rows[i].kind)) continue;
    INFO(rows[i].label);
    if (!window.hover(fmt::format("main/inspector/{}/row", i))) continue;
    window.step(60);
    std::string text;
    for (const Item* item : window.items().below("tooltip/")) text += item->label + " ";
    if (!text.empty()) text.pop_back();
    CHECK(text == meaning_of(rows[i].kind));
    ++told;
  }
  CHECK(told >= 5);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
