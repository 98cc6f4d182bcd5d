// The Stages panel by its items.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "gui/panels/graph/graph_state.h"
#include "gui/panels/panels.h"
#include "tests/gui/panels/table_rows.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

class StagesWindow : public test::WindowDriver {
 public:
  explicit StagesWindow(const Headless::Look& look = {})
      : WindowDriver(test::text_run().folder(), {}, look) {
    app().show_only("stages");
    step(2);
  }
  std::size_t rows() const { return test::rows_below(items(), "main/stages/table/row/"); }
  StageChoice& choice() { return workbench().state<StageChoice>(); }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("stages: the changed ones are listed, all on demand") {
  StagesWindow window;
  std::size_t changed = 1;
  for (const StageFacts& stage : window.workbench().run()->stages()) {
    changed += stage.record.changed && stage.record.name != "imported";
  }
  const std::size_t few = window.rows();
  CHECK(few > 5);
  REQUIRE(window.click("main/stages/changed_only"));
  window.step(2);
  CHECK(window.rows() > few);
}

TEST_CASE("stages: what a pass counted stands behind its name, where there is room") {
  const auto says = [](const StagesWindow& window) {
    return std::ranges::any_of(window.items().items(), [](const Item& item) {
      return item.label.ends_with("bytes saved");
    });
  };
  CHECK(says(StagesWindow()));
  CHECK_FALSE(says(StagesWindow({.size = {600.0F, 720.0F}})));
}

TEST_CASE("stages: a clicked stage is shown, [ and ] go on from there") {
  StagesWindow window;
  REQUIRE(window.click("main/stages/table/row/2/"));
  window.step();
  const std::size_t shown = shown_stage(window.workbench());
  CHECK(shown > 0);
  window.key("]");
  window.step();
  CHECK(shown_stage(window.workbench()) > shown);
  window.key("[");
  window.step();
  CHECK(shown_stage(window.workbench()) == shown);
}

TEST_CASE("stages: a Shift-click holds the shown stage against another one, and no longer") {
  StagesWindow window;
  REQUIRE(window.click("main/stages/table/row/2/"));
  const std::size_t shown = shown_stage(window.workbench());
  REQUIRE(test::shift_click(window, "main/stages/table/row/1/"));
  CHECK(shown_stage(window.workbench()) == shown);
  REQUIRE(window.choice().compare >= 0);
  CHECK(static_cast<std::size_t>(window.choice().compare) < shown);
  CHECK(window.says("main/stages/table/row/1/", "vs"));
  REQUIRE(test::shift_click(window, "main/stages/table/row/1/"));
  CHECK(window.choice().compare == -1);
}

TEST_CASE("stages: playing goes from stage to stage to the last one") {
  StagesWindow window;
  REQUIRE(window.click("main/stages/play"));
  window.step(2);
  CHECK(window.choice().plays);
  CHECK(shown_stage(window.workbench()) == 0);
  for (int seconds = 0; seconds < 60 && window.choice().plays; ++seconds) window.step(60);
  CHECK(!window.choice().plays);
  CHECK(changed_stage(*window.workbench().run(), shown_stage(window.workbench()), 1) ==
        shown_stage(window.workbench()));
}

TEST_CASE("stages: numbers are those of inspect --stages") {
  StagesWindow window;
  std::size_t numbers = 0;
  for (const Item& item : window.items().items()) {
    if (item.kind != ItemKind::kNumber) continue;
    CHECK(item.fact.starts_with("/stages/"));
    ++numbers;
  }
  CHECK(numbers > 20);
  CHECK(panel_named("stages")->twin(window.workbench()).find("--stages") != std::string::npos);
}

TEST_CASE("stages: near misses are listed with their reasons, or it is said that there are none") {
  StagesWindow window;
  REQUIRE(window.click("main/stages/near_misses"));
  window.step(2);
  std::size_t misses = 0;
  for (const StageFacts& stage : window.workbench().run()->stages()) {
    misses += stage.record.near_misses.size();
  }
  CHECK((window.items().below("main/stages/misses/row/").empty()) == (misses == 0));
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("stages: where there is no room for names there are numbers to click") {
  test::WindowDriver window(test::text_run().folder());
  window.key("F1");
  window.step(2);
  const std::vector<const Item*> numbers = window.items().below("stages/stages/number/");
  REQUIRE(numbers.size() > 5);
  REQUIRE(window.click(numbers[2]->path));
  window.step();
  CHECK(shown_stage(window.workbench()) > 0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
