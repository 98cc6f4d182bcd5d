// Every panel and overlay in every theme and size: no label cut off, no control too small, no ink
// that is hard to read.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gui/app/commands.h"
#include "gui/panels/panels.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;
using trainscope::test::TemporaryFolder;

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
      CHECK_FALSE(window.items().below(fmt::format("main/{}/", panel.id)).empty());
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

TEST_CASE("rules: panels of runs whose losses are very large, very small, or no numbers") {
  const TemporaryFolder folder;
  std::filesystem::copy(test::plain_run().folder(), folder / "run",
                        std::filesystem::copy_options::recursive);
  for (const char* loss : {"1.977105332476779e31", "-3.25e-9", "1e999"}) {
    std::ofstream(folder / "run" / "metrics.jsonl", std::ios::app)
        << R"({"kind":"step","step":6,"loss":)" << loss
        << R"(,"learning_rate":0.1,"gradient_norm":null,"step_ms":123456.0,"samples":4,"tokens":0})"
        << "\n";
    for (const char* panel : {"overview", "runs"}) {
      INFO(panel, " ", loss);
      WindowDriver window(folder / "run");
      window.app().show_only(panel);
      window.step(3);
      CHECK(all_faults(window) == "");
    }
  }
}

TEST_CASE("rules: panels of a trace that another tool has written") {
  const TemporaryFolder folder;
  const std::string trace = TRAINSCOPE_SOURCE_DIR "/tests/data/traces/pytorch-gpu-graph.json.gz";
  REQUIRE(trainscope::test::run({"import", trace, "-o", (folder / "run").string()}).exit_code == 0);
  in_all_looks(folder / "run", [](WindowDriver& window) {
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      window.app().show_only(panel.id);
      window.step(3);
      CHECK(all_faults(window) == "");
      CHECK_FALSE(window.items().below(fmt::format("main/{}/", panel.id)).empty());
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
