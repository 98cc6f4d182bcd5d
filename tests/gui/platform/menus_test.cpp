// The menu of a panel at the mouse: by the right button, and by keys.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "gui/app/commands.h"
#include "gui/panels/panels.h"
#include "tests/gui/platform/all_looks.h"

namespace trainscope::gui {
namespace {

using test::all_faults;
using test::WindowDriver;

class MenuWindow : public WindowDriver {
 public:
  MenuWindow() : WindowDriver(test::text_run().folder()) { show("kernels"); }
  void show(std::string_view panel) {
    workbench().request(fmt::format("panel {}", panel));
    step(2);
  }
  bool is_open() { return !app().memory().open_popup.empty(); }
  // The row of the open menu that runs the command; empty: there is none.
  std::string row_of(std::string_view command) const {
    for (const Item* item : items().below("main/kernels/context/menu/")) {
      if (item->kind == ItemKind::kRow && item->label == command_named(command)->title) {
        return item->path;
      }
    }
    return {};
  }
};

constexpr std::string_view kRow = "main/kernels/table/row/1/";

TEST_SUITE_BEGIN("gui");

TEST_CASE("menus: the right button selects the row below it, and opens the menu") {
  MenuWindow window;
  REQUIRE(window.click(kRow));
  const std::string name = window.workbench().selected_name();
  REQUIRE_FALSE(name.empty());
  REQUIRE(window.click("main/kernels/table/row/0/"));
  REQUIRE(window.workbench().selected_name() != name);
  REQUIRE(window.right_click(kRow));
  window.step();
  CHECK(window.workbench().selected_name() == name);
  CHECK(window.app().memory().open_popup == "main/kernels/context");
  CHECK(all_faults(window) == "");
  // A press elsewhere closes it.
  REQUIRE(window.click("main/kernels/table/column/name"));
  window.step();
  CHECK_FALSE(window.is_open());
}

TEST_CASE("menus: what is chosen with the mouse is run") {
  MenuWindow window;
  REQUIRE(window.right_click(kRow));
  window.step();
  REQUIRE(window.click(window.row_of("file.copy_tsv")));
  window.step(2);
  CHECK(window.app().memory().clipboard.starts_with("node\tms\tshare"));
  CHECK_FALSE(window.is_open());
}

TEST_CASE("menus: by keys alone: Shift+F10, arrows, Enter") {
  MenuWindow window;
  window.key("Shift+F10");
  window.step();
  REQUIRE(window.app().memory().open_popup == "main/kernels/context");
  const std::string wanted = window.row_of("view.maximize");
  REQUIRE_FALSE(wanted.empty());
  constexpr int kMostRows = 40;
  for (int i = 0; i < kMostRows && window.app().memory().focus != wanted; ++i) window.key("Down");
  REQUIRE(window.app().memory().focus == wanted);
  window.key("Up");
  CHECK(window.app().memory().focus != wanted);
  window.key("Down");
  window.key("Enter");
  window.step(2);
  CHECK(window.workbench().maximized);
  CHECK_FALSE(window.is_open());
}

TEST_CASE("menus: Escape closes the menu, and leaves the selection") {
  MenuWindow window;
  REQUIRE(window.right_click(kRow));
  window.step();
  REQUIRE(window.is_open());
  const std::string name = window.workbench().selected_name();
  window.key("Esc");
  window.step();
  CHECK_FALSE(window.is_open());
  CHECK(window.items().below("main/kernels/context/menu/").empty());
  CHECK(window.workbench().selected_name() == name);
}

TEST_CASE("menus: Escape gives the keys back to what had them") {
  MenuWindow window;
  REQUIRE(window.click(kRow));
  const std::string focus = window.app().memory().focus;
  const std::string name = window.workbench().selected_name();
  REQUIRE_FALSE(focus.empty());
  window.key("Shift+F10");
  window.step();
  REQUIRE(window.app().memory().focus != focus);
  window.key("Esc");
  window.step();
  CHECK(window.app().memory().focus == focus);
  window.key("Down");
  CHECK(window.workbench().selected_name() != name);
}

TEST_CASE("menus: one whose panel is not shown any more is closed, and the next has the keys") {
  MenuWindow window;
  window.key("Shift+F10");
  window.step();
  REQUIRE(window.is_open());
  window.key("F1");
  window.step(3);
  CHECK_FALSE(window.is_open());
  const std::size_t stage = window.workbench().run()->stages().size() - 1;
  window.key("[");
  window.step(2);
  CHECK(window.workbench().selection().stage >= 0);
  CHECK(window.workbench().selection().stage < static_cast<std::int32_t>(stage));
}

TEST_CASE("menus: that of every panel has its commands") {
  MenuWindow window;
  for (const Panel& panel : all_panels()) {
    INFO(panel.id);
    window.app().show_only(panel.id);
    window.step(2);
    window.key("Shift+F10");
    window.step();
    const std::string path = fmt::format("main/{}/context", panel.id);
    REQUIRE(window.app().memory().open_popup == path);
    CHECK(window.items().find(fmt::format("{}/menu/{}", path, panel.commands.size())) != nullptr);
    CHECK(all_faults(window) == "");
    window.key("Esc");
    CHECK_FALSE(window.is_open());
  }
}

TEST_CASE("rules: the menu of a panel, open") {
  test::in_all_looks(test::text_run().folder(), [](WindowDriver& window) {
    window.workbench().request("panel graph");  // it has the most commands
    window.step(2);
    window.key("Shift+F10");
    window.step();
    REQUIRE(window.app().memory().open_popup == "main/graph/context");
    CHECK(all_faults(window) == "");
    window.key("Esc");
    REQUIRE(window.right_click("main/graph/canvas"));
    window.step();
    REQUIRE(window.app().memory().open_popup == "main/graph/context");
    CHECK(all_faults(window) == "");
  });
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
