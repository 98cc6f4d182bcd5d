// The Budget panel alone, on a recorded run.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "gui/panels/panels.h"
#include "gui/platform/headless.h"
#include "tests/gui/budget/budget_tools.h"

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
  // The plan as the panel has it.
  std::string twin() { return panel_named("budget")->twin(window.workbench()); }
};

inline void check_looks(BudgetWindow& panel) {
  for (const std::string& fault : faults_of(panel.window.items())) FAIL_CHECK(fault);
}

}  // namespace trainscope::gui::test
