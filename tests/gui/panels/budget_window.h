// The Budget panel alone, on a recorded run.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "gui/panels/panels.h"
#include "gui/platform/headless.h"
#include "tests/gui/budget/budget_tools.h"
#include "tests/gui/platform/all_looks.h"

namespace trainscope::gui::test {

inline constexpr int kFirstSteps = 3;  // of the runs that are trained on

struct BudgetWindow {
  Headless window;

  explicit BudgetWindow(const std::filesystem::path& run) : window({}, {}) {
    window.workbench().open(run);
    window.app().show_only("budget");
    settle();
  }

  // Until nothing is under way: under the thread sanitizer, and on a busy machine, a plan and a
  // worker take longer than one wait.
  void settle() {
    constexpr int kMostWaits = 10;
    for (int i = 0; i < kMostWaits; ++i) {
      window.settle();
      if (!window.workbench().under_way) return;
    }
    FAIL("something is still under way");
  }

  const Item* find(const std::string& name) {
    const Item* item = window.items().find("main/budget/" + name);
    return item;
  }
  const Item& item(const std::string& name) {
    const Item* found = find(name);
    REQUIRE_MESSAGE(found != nullptr, name);
    return *found;
  }
  double number(const std::string& name) { return item(name).number; }
  void click(const std::string& name) {
    CAPTURE(name);
    REQUIRE(window.click("main/budget/" + name));
    settle();
  }
  void key(std::string_view chord) {
    window.key(chord);
    settle();
  }
  // The whole window in place of the panel alone, for what has to be done by keys.
  void show_window() {
    window.app().show_only({});
    window.workbench().request("panel budget");
    settle();
  }
  // From the palette, by the title of a command; what it has begun goes on.
  void run_by_keys(std::string_view title) {
    CAPTURE(title);
    window.key("Ctrl+P");
    window.type(title);
    window.step();
    const Item* first = window.items().find("palette/0/");
    REQUIRE(first != nullptr);
    REQUIRE(first->label == title);
    window.key("Enter");
    window.step();
  }
  // The plan as the panel has it.
  std::string twin() { return panel_named("budget")->twin(window.workbench()); }
};

inline void check_looks(BudgetWindow& panel) {
  for (const std::string& fault : faults_of(panel.window.items())) FAIL_CHECK(fault);
}

// In every theme, size and scale.
inline void check_all_looks(BudgetWindow& panel) {
  const auto show = [&](ThemeName theme, const Screen& screen) {
    panel.window.workbench().settings.theme = theme;
    panel.window.resize(screen.logical);
    panel.window.rescale(screen.scale);
    panel.settle();
  };
  for (const ThemeName theme : kThemeNames) {
    for (const Screen& screen : kScreens) {
      CAPTURE(theme_of(theme).name);
      CAPTURE(screen.logical.width);
      CAPTURE(screen.scale);
      show(theme, screen);
      check_looks(panel);
    }
  }
  show(ThemeName::kDark, kScreens[0]);
}

}  // namespace trainscope::gui::test
