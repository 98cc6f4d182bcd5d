// Questions that a researcher has, answered in at most six actions from opening, on three runs.
#include <doctest/doctest.h>

#include <algorithm>

#include "engine/bundle/plan_moment.h"
#include "gui/app/workspaces.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

// Counts what a user does: a chord, a click, a typed word each.
class Walk : public WindowDriver {
 public:
  using WindowDriver::WindowDriver;
  void press(std::string_view chord) {
    ++actions;
    key(chord);
  }
  bool pick(std::string_view path) {
    ++actions;
    return click(path);
  }
  void write(std::string_view text) {
    ++actions;
    type(text);
  }
  // Whether the inspector says this.
  bool tells(std::string_view part) const {
    const auto shown = items().below("inspector/inspector/");
    return std::ranges::any_of(
        shown, [&](const Item* item) { return item->label.find(part) != std::string::npos; });
  }
  int actions = 0;
};

const std::filesystem::path& run_of(int i) {
  if (i == 0) return test::text_run().folder();
  return i == 1 ? test::image_run().folder() : test::branched_run().folder();
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("walk: which op holds the peak?") {
  for (int i = 0; i < 3; ++i) {
    INFO(i);
    Walk walk(run_of(i));
    REQUIRE(walk.pick("main/overview/ask/peak"));
    walk.step(2);
    const PlanView& plan = *walk.workbench().run()->plan();
    const Selection& selected = walk.workbench().selection();
    REQUIRE(selected.buffer < plan.buffers.size());
    // It is alive when most bytes are, and no other that a node makes is larger then.
    const std::uint32_t time = plan.calls[fullest_call(plan, trainscope::live_bytes(plan))].time;
    const std::vector<std::uint32_t> alive = alive_at(plan, time);
    CHECK(std::ranges::find(alive, selected.buffer) != alive.end());
    CHECK(walk.tells(plan.text(plan.buffers[selected.buffer].label)));
    CHECK(walk.actions <= 6);
  }
}

TEST_CASE("walk: which pass made this node?") {
  for (int i = 0; i < 3; ++i) {
    INFO(i);
    Walk walk(run_of(i));
    const PlanView& plan = *walk.workbench().run()->plan();
    const PlanNode& node = plan.nodes[plan.nodes.size() / 2];
    walk.press("Ctrl+P");
    walk.write(plan.text(node.name));
    walk.press("Enter");
    walk.step(2);
    CHECK(walk.workbench().selected_name() == "node:" + std::string(plan.text(node.name)));
    CHECK(walk.tells("made by"));
    CHECK(walk.tells(plan.text(node.pass)));
    CHECK(walk.actions <= 6);
  }
}

TEST_CASE("walk: why is this op slow?") {
  for (int i = 0; i < 3; ++i) {
    INFO(i);
    Walk walk(run_of(i));
    walk.press("F4");
    REQUIRE(walk.pick("main/kernels/table/row/0/"));
    walk.step(2);
    CHECK(walk.tells("chosen"));  // its kernel
    CHECK(walk.tells("of a step"));
    CHECK(walk.actions <= 6);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
