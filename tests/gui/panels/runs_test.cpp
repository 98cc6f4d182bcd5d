// The Runs panel by its items.
#include <doctest/doctest.h>

#include <string>

#include "gui/panels/panels.h"
#include "tests/gui/panels/table_rows.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

class RunsWindow : public test::WindowDriver {
 public:
  explicit RunsWindow(bool two) : WindowDriver(test::text_run().folder()) {
    if (two) {
      workbench().open(test::plain_run().folder());
      workbench().activate(0);
    }
    app().show_only("runs");
    step(2);
  }
};

TEST_SUITE_BEGIN("gui");

TEST_CASE("runs: one run is listed, and a second one asked for") {
  RunsWindow window(false);
  CHECK(test::rows_below(window.items(), "main/runs/runs/row/") == 1);
  CHECK(window.items().below("main/runs/difference/row/").empty());
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("runs: two runs are held against each other by node") {
  RunsWindow window(true);
  CHECK(test::rows_below(window.items(), "main/runs/runs/row/") == 2);
  CHECK(!window.items().below("main/runs/difference/row/").empty());
  const Item* arena = window.items().find("main/runs/arena_a");
  REQUIRE(arena != nullptr);
  CHECK(arena->number ==
        doctest::Approx(static_cast<double>(window.workbench().run()->plan()->arena().bytes)));
  CHECK(arena->fact == "/arena_a");
  CHECK(faults_of(window.items()).empty());
}

TEST_CASE("runs: a clicked run becomes the active one, and the other one B") {
  RunsWindow window(true);
  REQUIRE(window.click("main/runs/runs/row/1/"));
  window.step(2);
  CHECK(window.workbench().active() == 1);
  const std::string twin = panel_named("runs")->twin(window.workbench());
  CHECK(twin.find("trainscope compare") == 0);
  CHECK(twin.find(test::text_run().folder().string()) != std::string::npos);
  CHECK(!panel_named("runs")->table(window.workbench()).rows.empty());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
