// The first screen, and the boxes that it leads to.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/app/commands.h"
#include "gui/app/workspaces.h"
#include "tests/gui/platform/all_looks.h"
#include "tests/gui/platform/start_folder.h"
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

namespace {

void show_welcome(WindowDriver& window) {
  REQUIRE(run_command(window.workbench(), "file.welcome"));
  window.step(2);
}

}  // namespace

TEST_CASE("window: the welcome screen opens the newest demo run, whatever numbers there are") {
  const std::filesystem::path made = test::plain_run().folder();
  const test::StartFolder folder;
  WindowDriver window({});
  show_welcome(window);
  CHECK_FALSE(window.items().find("welcome/demo")->enabled);
  CHECK(window.says("welcome/", "./demo.sh"));
  for (const char* name : {"demo-2", "demo-10"}) folder.put_demo(name, made);
  // One that ended before it wrote anything, and what has no number.
  std::filesystem::create_directories("runs/demo-11/run");
  std::filesystem::create_directories("runs/demo-x");
  std::filesystem::create_directories("below/it");
  std::filesystem::current_path("below/it");  // the folder above has them
  window.step(75);                            // it is looked for once a second
  CHECK_FALSE(window.says("welcome/", "./demo.sh"));
  REQUIRE(window.click("welcome/demo"));
  window.step();
  REQUIRE(window.workbench().run() != nullptr);
  CHECK(window.workbench().run()->path() == folder.path() / "runs/demo-10/run");
  CHECK(window.workbench().run()->plan() != nullptr);
  CHECK(window.workbench().overlay == Overlay::kNone);
}

TEST_CASE("window: the welcome screen fits where there is nothing yet, with the largest text too") {
  const test::StartFolder folder;
  for (const float size : {11.0F, 24.0F}) {
    for (const test::Screen& screen : test::kScreens) {
      Settings settings;
      settings.text_size = size;
      test::in_look({}, settings, screen, [](WindowDriver& window) {
        show_welcome(window);
        CHECK(test::all_faults(window) == "");
        CHECK(test::hidden_parts(window, "welcome") == "");
      });
    }
  }
}

TEST_CASE("window: the welcome screen offers the tour first to who has not seen it") {
  const auto paper_of = [](const WindowDriver& window, std::string_view label) {
    for (const Item* item : window.items().below("welcome/")) {
      if (item->kind == ItemKind::kLabel && item->label == label) return item->paper;
    }
    return Color{};
  };
  for (const bool seen : {false, true}) {
    INFO(seen);
    Settings settings;
    settings.tour_seen = seen;
    WindowDriver window({}, settings);
    CHECK(window.workbench().overlay == Overlay::kNone);  // it opens by itself over nothing
    show_welcome(window);
    const Color first = theme_of(settings.theme).accent;
    CHECK((paper_of(window, "Take the tour") == first) == !seen);
    CHECK((paper_of(window, "Open a run...") == first) == seen);
    REQUIRE(window.click("welcome/tour"));
    CHECK(window.workbench().overlay == Overlay::kTour);
  }
}

TEST_CASE("window: the tour goes by Budget, and leaves F2 as it was") {
  WindowDriver window(test::text_run().folder());
  run_command(window.workbench(), "help.tour");
  window.step(2);
  std::vector<std::string> panels;
  for (int i = 0; i < 6; ++i) {
    panels.emplace_back(main_panel_of(window.layout()).id);
    REQUIRE(window.click("tour/next"));
    window.step(2);
  }
  CHECK(panels ==
        std::vector<std::string>{"overview", "graph", "memory", "budget", "kernels", "kernels"});
  window.key("F2");
  CHECK(main_panel_of(window.layout()).id == "memory");
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
