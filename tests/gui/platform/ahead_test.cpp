// A window that somebody looks at: what takes long is read on threads, and frames say so.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gui/app/commands.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/views/past_nodes.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

std::vector<std::string> lines(const WindowDriver& window) {
  std::vector<std::string> lines;
  for (const Item& item : window.items().items()) {
    if (item.kind == ItemKind::kLabel) lines.push_back(item.path + " " + item.label);
  }
  return lines;
}

// What is drawn of the commands, after each of which only one frame is waited for, in the end.
std::vector<std::string> drawn(bool works_ahead, std::string_view panel,
                               const std::vector<std::string>& commands) {
  WindowDriver window({});
  window.workbench().works_ahead = works_ahead;
  window.workbench().open(test::text_run().folder());
  window.app().show_only(panel);
  window.frame();
  for (const std::string& command : commands) {
    window.workbench().request(command);
    window.frame();
  }
  window.settle();
  window.step(2);
  return lines(window);
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("ahead: what is shown in the end is what a window shows that waits") {
  struct Case {
    const char* panel;
    std::vector<std::string> commands;
  };
  const std::vector<Case> cases = {
      {"inspector", {"select call:3", "select call:5"}},
      {"inspector", {"select stage:0", "select model:/h.0/attn/MatMul"}},
      {"graph", {"graph.stage_before", "graph.stage_before", "graph.stage_after"}},
      {"graph", {"graph.compare_model", "graph.stage_before"}},
      {"graph", {"graph.compare", "graph.compare_earlier"}},
      {"kernels", {"select call:3"}},
  };
  for (const Case& each : cases) {
    INFO(each.panel, " ", each.commands[0]);
    const std::vector<std::string> waits = drawn(false, each.panel, each.commands);
    CHECK(waits.size() > 5);
    CHECK(drawn(true, each.panel, each.commands) == waits);
  }
}

TEST_CASE("ahead: a stage that is being read leaves the one before on the screen") {
  WindowDriver window({});
  window.workbench().works_ahead = true;
  window.workbench().open(test::text_run().folder());
  window.app().show_only("graph");
  window.settle();
  auto& graph = window.workbench().state<GraphState>();
  const std::size_t last = graph.stage;
  REQUIRE(last > 0);
  window.workbench().request("graph.stage_before");
  window.frame();  // runs it
  window.frame();  // begins to read
  CHECK(graph.waits);
  CHECK(graph.stage == last);
  CHECK(window.workbench().under_way);
  CHECK(window.says("main/graph/", "Reading the stage"));
  CHECK_FALSE(window.items().below("main/graph/node/").empty());
  select_place(graph, window.workbench(), 0);  // does not take the wish back
  window.settle();
  CHECK_FALSE(graph.waits);
  CHECK(graph.stage == shown_stage(window.workbench()));
  CHECK(graph.stage < last);
  CHECK_FALSE(window.says("main/graph/", "Reading the stage"));
  // What has been read is there at once.
  window.workbench().request("graph.stage_after");
  window.frame();
  window.frame();
  CHECK_FALSE(graph.waits);
  CHECK(graph.stage == last);
}

TEST_CASE("ahead: the palette that is open finds past nodes as soon as they have been read") {
  const auto read = RunData::open(test::text_run().folder());
  const std::string name = past_nodes(*read).front().name;
  WindowDriver window({});
  window.workbench().works_ahead = true;
  window.workbench().open(test::text_run().folder());
  run_command(window.workbench(), "go.palette");
  window.frame();  // begins to read
  window.frame();
  window.type(name);
  window.settle();
  const auto found = window.items().below("palette/");
  const bool is_found = std::ranges::any_of(found, [&](const Item* item) {
    return item->kind == ItemKind::kLabel && item->label == "past node";
  });
  CHECK(is_found);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
