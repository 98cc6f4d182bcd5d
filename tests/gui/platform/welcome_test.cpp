// The first screen, and the boxes that it leads to.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "gui/app/commands.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

TEST_SUITE_BEGIN("gui");

TEST_CASE("window: the welcome screen opens what was opened before") {
  Settings settings;
  settings.remember(test::text_run().folder());
  WindowDriver window({}, settings);
  run_command(window.workbench(), "file.welcome");
  window.step(2);
  REQUIRE(window.click("welcome/recent/0/"));
  window.step();
  REQUIRE(window.workbench().run() != nullptr);
  CHECK(window.workbench().run()->path() == test::text_run().folder());
  CHECK(window.workbench().overlay == Overlay::kNone);
}

TEST_CASE("window: the welcome screen leads to the boxes for runs and for models, by keys alone") {
  for (const auto& [name, box] :
       {std::pair{"open", Overlay::kOpen}, {"open_model", Overlay::kOpenModel}}) {
    INFO(name);
    WindowDriver window({});
    run_command(window.workbench(), "file.welcome");
    window.step(2);
    const std::string path = std::string("welcome/") + name;
    for (int i = 0; i < 20 && window.app().memory().focus != path; ++i) window.key("Tab");
    REQUIRE(window.app().memory().focus == path);
    window.key("Enter");
    window.step();
    CHECK(window.workbench().overlay == box);
    window.key("Esc");
    CHECK(window.workbench().overlay == Overlay::kNone);
    run_command(window.workbench(), "file.welcome");
    window.step(2);
    REQUIRE(window.click(path));
    window.step();
    CHECK(window.workbench().overlay == box);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
