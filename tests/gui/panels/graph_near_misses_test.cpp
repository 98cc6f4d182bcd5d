// Near misses in the Graph panel: an outline around all the nodes of each, by mouse and by keys.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "gui/panels/graph/graph_state.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::MadeRun;
using test::WindowDriver;

constexpr std::string_view kStage = "fuse_gelu";

// What a Tanh of the middle layer makes is asked for: its Gelu is a near miss, the others are not.
const MadeRun& missed_run() {
  static const MadeRun run(
      "missed", *[] {
        const OnnxModel model = test::model_of("gpt2", test::kSmallText);
        CompileOptions options = test::options_for(model);
        const Graph imported = compile(model, options)->stages.front().graph;
        std::vector<std::string> made;
        for (const NodeId id : imported.order()) {
          const Node& node = imported.node(id);
          if (node.op->name == "Tanh") made.push_back(imported.value(node.outputs[0]).name);
        }
        REQUIRE(made.size() == 3);
        options.training.gradient_of = {made[1]};
        return compile(model, options);
      }());
  return run;
}

class MissedWindow : public WindowDriver {
 public:
  explicit MissedWindow(const Headless::Look& look = {})
      : WindowDriver(missed_run().folder(), {}, look) {
    app().show_only("graph");
    workbench().settings.reduced_motion = true;  // nodes are in their places at once
    run("select stage:" + std::string(kStage));
    run("graph.fit");
    settle();
  }
  void run(const std::string& command) {
    workbench().request(command);
    step(2);
  }
  GraphState& graph() { return workbench().state<GraphState>(); }
  const NearMissRecord& record() {
    const std::vector<NearMissRecord>& all =
        workbench().run()->stages()[graph().stage].record.near_misses;
    REQUIRE(all.size() == 1);
    return all[0];
  }
  const Item& outline() {
    const std::vector<const Item*> all = items().below("main/graph/miss/");
    REQUIRE(all.size() == 1);
    return *all[0];
  }
  bool is_missed(const std::string& node) {
    return std::ranges::find(record().nodes, node) != record().nodes.end();
  }
  std::string selected_node() {
    const std::uint32_t place = selected_place(graph(), workbench());
    return place == kNoPlace ? std::string() : std::string(graph().picture.nodes[place].name);
  }
};

bool contains(const Rect& outer, const Rect& inner) {
  return outer.x <= inner.x && outer.y <= inner.y && outer.right() >= inner.right() &&
         outer.bottom() >= inner.bottom();
}

std::string node_of(const Item& mark) {
  return mark.path.substr(std::string("main/graph/node/").size());
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("near misses: one outline surrounds all the nodes, at every zoom and scale" *
          doctest::test_suite("long")) {
  for (const float scale : {1.0F, 2.0F}) {
    MissedWindow window({.scale = scale});
    REQUIRE(window.record().nodes.size() > 3);
    for (const float zoom : {1.0F, 0.3F, 0.1F, 0.02F}) {
      INFO(scale, " ", zoom);
      window.graph().camera.zoom = zoom;
      window.run("graph.near_miss");
      const Rect outline = window.outline().rect;
      std::size_t inside = 0;
      for (const Item* mark : window.items().below("main/graph/node/")) {
        const bool missed = window.is_missed(node_of(*mark));
        inside += missed;
        if (missed) CHECK(contains(outline, mark->rect));
      }
      CHECK(inside == window.record().nodes.size());
    }
    // Most others are outside.
    window.run("graph.fit");
    std::size_t outside = 0;
    for (const Item* mark : window.items().below("main/graph/node/")) {
      outside += window.outline().rect.intersected(mark->rect).empty();
    }
    CHECK(outside > window.graph().picture.nodes.size() / 2);
  }
}

TEST_CASE("near misses: where its block hides the nodes, the outline surrounds the block") {
  MissedWindow window;
  window.run("graph.blocks");
  const Rect outline = window.outline().rect;
  std::size_t inside = 0;
  for (const Item* block : window.items().below("main/graph/block/")) {
    if (block->kind == ItemKind::kNumber) continue;
    const bool surrounded = contains(outline, block->rect);
    CHECK((surrounded || outline.intersected(block->rect).empty()));
    if (!surrounded) continue;
    CHECK(block->value == "collapsed");
    CHECK(window.record().node().find(block->label) != std::string::npos);
    ++inside;
  }
  CHECK(inside == 1);
}

TEST_CASE("near misses: the item says the pass and its reason, and names the nodes") {
  MissedWindow window;
  const Item item = window.outline();
  CHECK(item.kind == ItemKind::kMark);
  CHECK(item.label.starts_with(kStage));
  CHECK(item.label.find(window.record().reason) != std::string::npos);
  for (const std::string& node : window.record().nodes) {
    INFO(node);
    CHECK(item.value.find(node) != std::string::npos);
  }
  REQUIRE(window.hover("main/graph/node/" + window.record().node()));
  std::string tooltip;
  for (const Item* line : window.items().below("tooltip/")) tooltip += line->label + " ";
  CHECK(tooltip.find(std::string(kStage) + " nearly rewrote") != std::string::npos);
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("near misses: Tab comes to the outline and Enter selects its node") {
  MissedWindow window;
  const std::string path = window.outline().path;
  std::size_t tabs = 0;
  while (window.app().memory().focus != path && tabs < 200) {
    window.key("Tab");
    ++tabs;
  }
  REQUIRE(window.app().memory().focus == path);
  window.key("Enter");
  window.step(2);
  CHECK(window.selected_node() == window.record().node());
}

TEST_CASE("near misses: without a list of all items there is one to come to all the same") {
  MissedWindow window({.keeps_items = false});
  CHECK(window.items().below("main/graph/node/").empty());
  CHECK(window.outline().focusable);
}

TEST_CASE("near misses: arrows walk the list of all, and each shows its stage") {
  MissedWindow window;
  std::vector<std::size_t> stages;
  const std::span<const StageFacts> all = window.workbench().run()->stages();
  for (std::size_t i = 0; i < all.size(); ++i) {
    stages.insert(stages.end(), all[i].record.near_misses.size(), i);
  }
  REQUIRE_FALSE(stages.empty());
  window.app().show_only("stages");
  window.run("stages.near_misses");
  const std::string row = "main/stages/misses/row/";
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i == 0) window.key("Home");
    if (i > 0) window.key("Down");
    CHECK(shown_stage(window.workbench()) == stages[i]);
    CHECK(window.items().find(row + std::to_string(i) + "/")->value == "chosen");
  }
}

TEST_CASE("near misses: a command goes from one to the next, and says where there are none") {
  MissedWindow window;
  window.run("graph.blocks");
  window.run("graph.near_miss");
  CHECK(window.selected_node() == window.record().node());
  // Its block is open again, and the node is seen.
  CHECK(window.has("main/graph/node/" + window.record().node()));
  window.run("select stage:imported");
  CHECK(window.items().below("main/graph/miss/").empty());
  window.run("graph.near_miss");
  CHECK(window.workbench().notice.text.find("no near miss") != std::string::npos);
}

TEST_CASE("near misses: pictures have the dashes" * doctest::test_suite("long")) {
  MissedWindow window;
  const auto dashes = [&] {
    const std::string svg = window.svg();
    std::size_t count = 0;
    for (std::size_t at = svg.find("stroke-dasharray"); at != std::string::npos;
         at = svg.find("stroke-dasharray", at + 1)) {
      ++count;
    }
    return count;
  };
  CHECK(dashes() == 1);
  window.run("select stage:imported");
  window.settle();  // also from where nodes were
  CHECK(dashes() == 0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
