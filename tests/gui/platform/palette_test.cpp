// What the palette finds is shown: nodes that only stages between the model and the plan have,
// nodes of the model, views.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "gui/panels/timeline_state.h"
#include "gui/views/palette_index.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

// The first of what is found, of this kind.
void pick(test::WindowDriver& window, std::string_view query, FindKind kind) {
  CAPTURE(query);
  window.key("Ctrl+P");
  window.type(query);
  window.step();
  const auto is_of_kind = [&](int i) {
    const auto shown = window.items().below("palette/" + std::to_string(i) + "/");
    return std::ranges::any_of(shown,
                               [&](const Item* item) { return item->label == name_of(kind); });
  };
  int found = 0;
  while (found < 8 && !is_of_kind(found)) ++found;
  REQUIRE(found < 8);
  for (int i = 0; i < found; ++i) window.key("Down");
  window.key("Enter");
  window.step(2);
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("palette: a node that a pass made and another took away is shown in its last stage") {
  test::WindowDriver window(test::text_run().folder());
  window.workbench().request("panel graph");
  window.step(2);
  const PastNode past = past_nodes(*window.workbench().run()).front();
  pick(window, past.name, FindKind::kPastNode);
  const Selection& selection = window.workbench().selection();
  CHECK(selection.subject == Subject::kNode);
  CHECK(selection.stage == static_cast<std::int32_t>(past.stage));
  const std::string& label = window.workbench().run()->stages()[past.stage].label;
  CHECK(window.workbench().selected_name() == "node@" + label + ":" + past.name);
  CHECK(window.says("inspector/", past.name));
}

TEST_CASE(
    "palette: two ops, one of which reads the other, of a model whose passes took them away") {
  test::WindowDriver window(test::text_run().folder());
  pick(window, "Transpose->Reshape", FindKind::kModelNode);
  CHECK(window.workbench().selection().subject == Subject::kModelNode);
  CHECK(window.says("inspector/", "Transpose"));
}

TEST_CASE("palette: a Reshape that is found has flows through it in Timeline") {
  test::WindowDriver window(test::text_run().folder());
  window.workbench().request("panel timeline");
  window.step(2);
  pick(window, "Reshape->Attention", FindKind::kNode);
  const PlanLinks& links = *window.workbench().links();
  const Selection& selection = window.workbench().selection();
  const std::uint32_t node = links.node_of_serial(selection.node);
  REQUIRE(node != kNoRow);
  CHECK(links.plan().text(links.plan().nodes[node].op) == "Reshape");
  CHECK(selection.call == kNoRow);
  CHECK_FALSE(window.workbench().state<TimelineState>().flows.empty());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
