// The Graph panel by its items: stages, comparison, search, where nodes went.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gui/panels/graph/graph_state.h"
#include "gui/panels/panels.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

class GraphWindow : public WindowDriver {
 public:
  GraphWindow() : WindowDriver(test::text_run().folder()) {
    app().show_only("graph");
    step(2);
  }
  GraphState& graph() { return workbench().state<GraphState>(); }
  StageChoice& choice() { return workbench().state<StageChoice>(); }
  const PictureNode& node(std::uint32_t place) { return graph().picture.nodes[place]; }
  void run(const std::string& command) {
    workbench().request(command);
    step(2);
  }
  std::vector<const Item*> marks() const { return items().below("main/graph/node/"); }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("graph: the last stage is shown first, its nodes as marks with their ops") {
  GraphWindow window;
  CHECK(window.graph().stage == window.workbench().run()->stages().size() - 1);
  REQUIRE(window.marks().size() > 10);
  for (const Item* mark : window.marks()) CHECK(!mark->label.empty());
}

TEST_CASE("graph: a clicked node is selected, with its call and buffer") {
  GraphWindow window;
  const std::string path = window.marks()[3]->path;
  REQUIRE(window.click(path));
  window.step();
  const std::string name = path.substr(std::string("main/graph/node/").size());
  const std::uint32_t place = selected_place(window.graph(), window.workbench());
  REQUIRE(place != kNoPlace);
  CHECK(window.node(place).name == name);
  CHECK(window.workbench().selection().call != kNoRow);
}

TEST_CASE("graph: arrows go from node to node and keep the selected one in the view") {
  GraphWindow window;
  window.click("main/graph/canvas");
  window.click(window.marks()[0]->path);
  std::uint32_t before = window.workbench().selection().node;
  std::size_t moves = 0;
  for (int i = 0; i < 30; ++i) {
    window.key("Down");
    window.step();
    if (window.workbench().selection().node != before) ++moves;
    before = window.workbench().selection().node;
    const std::uint32_t place = selected_place(window.graph(), window.workbench());
    REQUIRE(place != kNoPlace);
    CHECK(window.has(std::string("main/graph/node/") + std::string(window.node(place).name)));
  }
  CHECK(moves > 10);
}

TEST_CASE("graph: [ and ] go through the stages that changed the graph") {
  GraphWindow window;
  window.click("main/graph/canvas");
  const std::size_t last = window.graph().stage;
  window.key("[");
  window.step(2);
  const std::size_t before = window.graph().stage;
  CHECK(before < last);
  CHECK(window.workbench().run()->stages()[before].record.changed);
  window.key("]");
  window.step(2);
  CHECK(window.graph().stage > before);
}

TEST_CASE(
    "graph: held against the imported model, counts are those of diff, and reasons are told") {
  GraphWindow window;
  window.run("graph.compare_model");
  REQUIRE(window.graph().compared == 0);
  CHECK(window.graph().changes.added > 0);
  const Item* added = window.items().find("main/graph/count/added");
  REQUIRE(added != nullptr);
  CHECK(added->number == doctest::Approx(static_cast<double>(window.graph().changes.added)));
  CHECK(added->fact == "/nodes/added");
  window.run("graph.compare");
  CHECK(window.graph().compared == -1);
}

TEST_CASE("graph: compared, arrows follow edges, and walk the list once it has the focus") {
  GraphWindow window;
  window.run("graph.compare_model");
  window.settle();
  const std::size_t rows = window.graph().changes.rows.size();
  REQUIRE(rows > 5);
  const auto chosen = [&] {
    for (const Item* item : window.items().below("main/graph/changes/row/")) {
      if (item->kind == ItemKind::kRow && item->value == "chosen") return item->path;
    }
    return std::string();
  };
  const auto row = [](std::size_t i) {
    return "main/graph/changes/row/" + std::to_string(i) + "/";
  };
  const std::vector<const Item*> marks = window.marks();
  REQUIRE_FALSE(marks.empty());
  REQUIRE(window.click(marks[0]->path));
  const std::uint32_t from = selected_place(window.graph(), window.workbench());
  const std::uint32_t below =
      neighbour_of(window.graph().picture, window.graph().layout, from, Direction::kDown);
  window.key("Down");
  CHECK(selected_place(window.graph(), window.workbench()) == below);
  // The list: also through values, and rows of what is gone.
  REQUIRE(window.click("main/graph/changes/row/0/"));
  CHECK(window.app().memory().focus == "main/graph/changes/keys");
  window.step();
  CHECK(chosen() == row(0));
  for (std::size_t i = 1; i < 6; ++i) {
    window.key("Down");
    CHECK(chosen() == row(i));
  }
  window.key("End");
  window.step();
  CHECK(chosen() == row(rows - 1));
  const StageChange& last = window.graph().changes.rows.back();
  CHECK_FALSE(last.is_node);
  CHECK(window.says("main/graph/", last.stage));  // why, below the list
  window.key("Up");
  CHECK(chosen() == row(rows - 2));
}

TEST_CASE("graph: a search selects what it finds, one after the other") {
  GraphWindow window;
  window.click("main/graph/search");
  window.type("gelu");
  window.key("Enter");
  window.step(2);
  const std::uint32_t first = window.workbench().selection().node;
  REQUIRE(first != 0);
  const std::string all = std::to_string(window.graph().found.size());
  CHECK(window.says("main/graph/", "1 of " + all));
  window.key("Enter");
  window.step(2);
  CHECK(window.workbench().selection().node != first);
  CHECK(window.graph().found.size() > 1);
  CHECK(window.says("main/graph/", "2 of " + all));
  window.type("x");  // something else is looked for
  window.step();
  CHECK_FALSE(window.says("main/graph/", " of " + all));
}

TEST_CASE("graph: a drag on the map brings the camera there, and chooses no node below it") {
  GraphWindow window;
  window.wheel("main/graph/canvas", 3.0F);
  window.step();
  REQUIRE(window.has("main/graph/map"));
  const std::string selected = window.workbench().selected_name();
  const float zoom = window.graph().camera.zoom;
  const auto middle_after_drag = [&](float from, float to) {
    REQUIRE(window.drag_within("main/graph/map", {0.5F, from}, {0.5F, to}));
    const Item* canvas = window.items().find("main/graph/canvas");
    return window.graph().camera.y + canvas->rect.height / zoom / 2.0F;
  };
  const float low = middle_after_drag(0.2F, 0.9F);
  const float high = middle_after_drag(0.8F, 0.1F);
  CHECK(low == doctest::Approx(9.0F * high).epsilon(0.01));
  CHECK(window.graph().camera.zoom == zoom);
  CHECK(window.workbench().selected_name() == selected);
}

TEST_CASE("graph: passes beyond the colours are one, and what the legend leaves out is counted") {
  GraphWindow window;
  while (window.graph().coloring != ColorBy::kPass) window.run("graph.color");
  std::vector<std::string>& passes = window.graph().values.passes;
  passes.clear();
  for (std::size_t i = 0; i < kSeriesColors + 3; ++i) passes.push_back("p" + std::to_string(i));
  const auto names = [&] {
    std::vector<std::string> labels;
    for (const Item* item : window.items().below("main/graph/legend/")) {
      if (item->kind == ItemKind::kLabel) labels.push_back(item->label);
    }
    return labels;
  };
  window.step();
  REQUIRE(names().size() == kSeriesColors + 1);
  CHECK(names().back() == "other passes");
  CHECK_FALSE(window.has("main/graph/legend/left_out"));
  const Theme& theme = theme_of(ThemeName::kDark);
  CHECK(color_of_category(theme, kSeriesColors - 1) == theme.series.back());
  CHECK(color_of_category(theme, kSeriesColors + 2) == theme.control);
  window.resize({300.0F, 500.0F});
  window.step(2);
  const std::size_t drawn = names().size() - 1;  // without the count itself
  CHECK(drawn < kSeriesColors);
  CHECK(names().back() == "+" + std::to_string(kSeriesColors + 1 - drawn));
  REQUIRE(window.hover("main/graph/legend/left_out"));
  CHECK(window.says("tooltip/", "other passes"));
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("graph: a node that a later stage has no more says where it went, and leads there") {
  GraphWindow window;
  Selection selection = window.workbench().selection();
  selection.stage = 0;
  window.workbench().select(selection);
  window.step(2);
  const auto& nodes = window.graph().picture.nodes;
  const auto tanh = std::ranges::find(nodes, "Tanh", &PictureNode::op);
  REQUIRE(tanh != nodes.end());
  select_place(window.graph(), window.workbench(),
               static_cast<std::uint32_t>(tanh - nodes.begin()));
  window.step();
  selection = window.workbench().selection();
  selection.stage = static_cast<std::int32_t>(window.workbench().run()->stages().size() - 1);
  window.workbench().select(selection);
  window.step(2);
  CHECK(window.graph().gone.find("inside") != std::string::npos);
  REQUIRE(window.click("main/graph/follow"));
  window.step(2);
  const std::uint32_t place = selected_place(window.graph(), window.workbench());
  REQUIRE(place != kNoPlace);
  CHECK(window.node(place).op == "Gelu");
}

TEST_CASE("graph: nodes that a step to the next stage takes away stay a moment as ghosts" *
          doctest::test_suite("long")) {
  for (const bool reduced_motion : {false, true}) {
    INFO(reduced_motion);
    GraphWindow window;
    window.workbench().settings.reduced_motion = reduced_motion;
    window.run("select stage:06-dead_code");
    window.run("graph.fit");
    window.settle();
    REQUIRE(window.graph().stage == 6);
    const auto ghosts = [&] { return window.items().below("main/graph/ghost/"); };
    CHECK(ghosts().empty());
    window.run("select stage:07-fuse_gelu");
    REQUIRE_FALSE(ghosts().empty());
    CHECK(window.workbench().under_way);
    // Each is one that the stage has not, and says where it went.
    for (const Item* ghost : ghosts()) {
      CHECK_FALSE(ghost->value.empty());
      const std::string name = ghost->path.substr(std::string("main/graph/ghost/").size());
      CHECK(window.items().find("main/graph/node/" + name) == nullptr);
    }
    const auto lies_in_gelu = [](const Item* ghost) { return ghost->value.starts_with("inside "); };
    CHECK(std::ranges::any_of(ghosts(), lies_in_gelu));
    const auto places = [&] {
      std::vector<Rect> rects;
      for (const Item* mark : window.marks()) rects.push_back(mark->rect);
      return rects;
    };
    const std::vector<Rect> first = places();
    window.settle();
    CHECK(ghosts().empty());
    CHECK((places() == first) == reduced_motion);
  }
}

TEST_CASE("graph: every colouring has its legend, and unknown values are said to be") {
  GraphWindow window;
  for (std::size_t i = 0; i < kColorings; ++i) {
    window.run("graph.color");
    CHECK(faults_of(window.items()).empty());
  }
  CHECK(window.graph().coloring == ColorBy::kOp);
}

TEST_CASE("graph: blocks collapse by a click on their heads, and all by a key") {
  GraphWindow window;
  const std::vector<const Item*> blocks = window.items().below("main/graph/block/");
  const auto control = std::ranges::find(blocks, ItemKind::kToggle, &Item::kind);
  REQUIRE(control != blocks.end());
  const std::string path = (*control)->path;
  const std::string label = (*control)->label;
  REQUIRE(window.click(path));
  window.step(2);
  CHECK(window.graph().collapsed.contains(label));
  window.run("graph.blocks");
  CHECK(window.graph().collapsed.size() == window.graph().layout.blocks.size());
  window.run("graph.blocks");
  CHECK(window.graph().collapsed.empty());
}

TEST_CASE("graph: the wheel zooms, fit shows all of it") {
  GraphWindow window;
  const float before = window.graph().camera.zoom;
  window.wheel("main/graph/canvas", 2.0F);
  window.step();
  CHECK(window.graph().camera.zoom > before);
  window.run("graph.fit");
  CHECK(window.graph().frame.nodes.size() == window.graph().picture.nodes.size());
}

TEST_CASE("graph: the twin names the stage, or both") {
  GraphWindow window;
  const Panel* panel = panel_named("graph");
  REQUIRE(panel != nullptr);
  CHECK(panel->twin(window.workbench()).find("inspect") != std::string::npos);
  CHECK(panel->table(window.workbench()).rows.size() == window.graph().picture.nodes.size());
  window.run("graph.compare_model");
  CHECK(panel->twin(window.workbench()).find("trainscope diff") == 0);
  CHECK(panel->table(window.workbench()).rows.size() == window.graph().changes.rows.size());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
