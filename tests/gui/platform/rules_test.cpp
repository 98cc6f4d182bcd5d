// Every panel and overlay in every theme and size: no label cut off, no control too small, no ink
// that is hard to read.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gui/app/commands.h"
#include "gui/panels/panels.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

struct Screen {
  Extent logical;
  float scale;
};
constexpr Screen kScreens[] = {{{1280.0F, 720.0F}, 1.0F},  // 1280x720
                               {{1280.0F, 720.0F}, 2.0F},  // 2560x1440
                               {{640.0F, 360.0F}, 1.5F}};  // 960x540

std::string all_faults(WindowDriver& window) {
  std::string text;
  for (const std::string& fault : faults_of(window.items())) text += fault + "\n";
  return text;
}

template <typename Check>
void in_all_looks(const std::filesystem::path& run, Check check) {
  for (const ThemeName theme : kThemeNames) {
    for (const Screen& screen : kScreens) {
      Settings settings;
      settings.theme = theme;
      WindowDriver window(run, settings, {.size = screen.logical, .scale = screen.scale});
      INFO(theme_of(theme).name, " ", screen.logical.width, "x", screen.logical.height, " x",
           screen.scale);
      check(window);
    }
  }
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("rules: panels of a run with a profile") {
  in_all_looks(test::text_run().folder(), [](WindowDriver& window) {
    window.workbench().select_named("node:" + std::string("/h.0/mlp/c_fc"));
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      window.app().show_only(panel.id);
      window.step(3);
      CHECK(all_faults(window) == "");
      CHECK(window.items().items().size() > 4);
    }
  });
}

TEST_CASE("rules: panels of a run without one") {
  in_all_looks(test::plain_run().folder(), [](WindowDriver& window) {
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      window.app().show_only(panel.id);
      window.step(3);
      CHECK(all_faults(window) == "");
    }
  });
}

TEST_CASE("rules: the window in each workspace, and what lies over it") {
  in_all_looks(test::text_run().folder(), [](WindowDriver& window) {
    for (const char* key : {"F1", "F2", "F3", "F4", "F5"}) {
      INFO(key);
      window.key(key);
      window.step(2);
      CHECK(all_faults(window) == "");
    }
    for (const char* command : {"go.palette", "help.panel", "help.tour", "view.settings",
                                "file.welcome", "file.open", "file.note"}) {
      INFO(command);
      window.workbench().overlay = Overlay::kNone;
      REQUIRE(run_command(window.workbench(), command));
      window.step(3);
      CHECK(all_faults(window) == "");
    }
  });
}

TEST_CASE("rules: a window without a run") {
  in_all_looks({}, [](WindowDriver& window) {
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      window.app().show_only(panel.id);
      window.step(2);
      CHECK(all_faults(window) == "");
    }
  });
}

TEST_CASE("rules: large text, and text and numbers of sizes apart") {
  for (const auto& [text, number] : {std::pair{20.0F, 13.0F}, std::pair{14.0F, 20.0F}}) {
    Settings settings;
    settings.text_size = text;
    settings.number_size = number;
    WindowDriver window(test::text_run().folder(), settings);
    for (const Panel& panel : all_panels()) {
      INFO(panel.id, " ", text, " ", number);
      window.app().show_only(panel.id);
      window.step(3);
      CHECK(all_faults(window) == "");
    }
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
