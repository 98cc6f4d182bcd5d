// What lies above the panels, in every theme and size: menus, tooltips, and the boxes over the
// window.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/app/commands.h"
#include "gui/panels/panels.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/all_looks.h"
#include "tests/gui/platform/start_folder.h"

namespace trainscope::gui {
namespace {

using test::all_faults;
using test::hidden_parts;
using test::in_all_looks;
using test::in_each_look;
using test::on_all_pages;
using test::WindowDriver;
using trainscope::test::TemporaryFolder;

constexpr std::string_view kBoxes[] = {"palette", "help",  "tour",       "settings", "welcome",
                                       "open",    "notes", "open_model", "layouts"};

void show(WindowDriver& window, std::string_view panel) {
  window.workbench().request(fmt::format("panel {}", panel));
  window.step(2);
}

void show_box(WindowDriver& window, std::string_view command) {
  window.workbench().overlay = Overlay::kNone;
  window.step();
  REQUIRE(run_command(window.workbench(), command));
  window.step(3);
}

// Buttons that open a list: those of the bar, of heads, and those that say so.
std::vector<std::string> menus_of(const WindowDriver& window) {
  std::vector<std::string> paths;
  for (const Item& item : window.items().items()) {
    if (item.kind != ItemKind::kButton || item.seen.empty() || !item.enabled) continue;
    const bool in_bar = item.path.starts_with("menu/") && item.path != "menu/find" &&
                        std::ranges::count(item.path, '/') == 1;
    const bool opens = in_bar || item.path.ends_with("/head/copy") || item.label.ends_with("▼");
    if (opens) paths.push_back(item.path);
  }
  return paths;
}

// What the mouse can rest on: of many things of a kind (rows, marks, cells) a few.
std::vector<std::string> hoverable(const WindowDriver& window, std::string_view prefix) {
  constexpr int kMostOfAKind = 6;
  std::map<std::pair<std::string, ItemKind>, int> counts;
  std::vector<std::string> paths;
  for (const Item* item : window.items().below(prefix)) {
    if (item->kind >= ItemKind::kLabel || item->seen.empty() || !item->enabled) continue;
    std::size_t end = 0;
    for (int i = 0; i < 3 && end != std::string::npos; ++i) end = item->path.find('/', end + 1);
    const int before = counts[{item->path.substr(0, end), item->kind}]++;
    if (before < kMostOfAKind || item->kind == ItemKind::kColumn) paths.push_back(item->path);
  }
  return paths;
}

// Rests on each that it did not rest on yet; how many tooltips there were.
int check_tooltips(WindowDriver& window, std::set<std::string>& hovered,
                   std::string_view prefix = {}) {
  int tooltips = 0;
  for (const std::string& path : hoverable(window, prefix)) {
    if (!hovered.insert(path).second) continue;
    INFO(path);
    if (!window.hover(path) || window.items().below("tooltip/").empty()) continue;
    ++tooltips;
    CHECK(all_faults(window) == "");
    CHECK(hidden_parts(window, "tooltip/") == "");
  }
  return tooltips;
}

// The open list of a menu: all of its rows that can be chosen are reached by keys, and are seen
// then, also of one that is longer than the window is high.
void check_menu(WindowDriver& window, const std::string& path) {
  INFO(path);
  CHECK(all_faults(window) == "");
  std::vector<std::string> rows;
  bool is_scrolled = false;
  for (const Item* item : window.items().below(path + "/menu/")) {
    if (item->kind != ItemKind::kRow) continue;
    if (item->enabled) rows.push_back(item->path);
    is_scrolled = is_scrolled || !test::is_whole(*item);
  }
  REQUIRE_FALSE(rows.empty());
  if (is_scrolled) {
    if (window.app().memory().focus != rows.front()) window.key("Down");  // the first is disabled
    for (const std::string& row : rows) {
      CHECK(window.app().memory().focus == row);
      CHECK(test::is_whole(*window.items().find(row)));
      CHECK(all_faults(window) == "");
      window.key("Down");
    }
  }
  window.key("Esc");
  CHECK(window.app().memory().open_popup.empty());
}

// Boxes whose content is not scrolled, but for lists in them.
void check_boxes(WindowDriver& window) {
  for (const char* command : {"view.settings", "file.open", "file.open_model", "view.layouts",
                              "file.welcome", "help.tour"}) {
    INFO(command);
    show_box(window, command);
    CHECK(all_faults(window) == "");
    for (const std::string_view box : kBoxes) CHECK(hidden_parts(window, box) == "");
  }
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("rules: every menu, open") {
  in_all_looks(test::text_run().folder(), [](WindowDriver& window) {
    window.workbench().open(test::image_run().folder());  // runs can be chosen, and held together
    window.settle();
    std::set<std::string> opened;
    for (const Panel& panel : all_panels()) {
      show(window, panel.id);
      for (const std::string& path : menus_of(window)) {
        if (!opened.insert(path).second) continue;
        INFO(path);
        REQUIRE(window.click(path));
        window.step();
        REQUIRE(window.app().memory().open_popup == path);
        check_menu(window, path);
      }
    }
    for (const char* path : {"menu/File", "menu/View", "menu/Go", "menu/Help", "menu/run",
                             "main/head/copy", "main/graph/stage", "main/graph/compare"}) {
      CHECK(opened.contains(path));
    }
  });
}

TEST_CASE("rules: every tooltip" * doctest::test_suite("long")) {
  in_each_look(test::text_run().folder(), [](WindowDriver& window) {
    int tooltips = 0;
    std::set<std::string> hovered;
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      show(window, panel.id);
      tooltips += check_tooltips(window, hovered);
    }
    CHECK(tooltips > 50);
  });
}

TEST_CASE("rules: help of each panel, the keys and the glossary, to their ends") {
  in_each_look(test::text_run().folder(), [](WindowDriver& window) {
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      show(window, panel.id);
      show_box(window, "help.panel");
      for (const std::string page : {"This panel", "Keys", "Glossary"}) {
        if (page != "This panel" && panel.id != "overview") continue;  // the same of all panels
        REQUIRE(window.click("help/page/" + page));
        window.step();
        for (const Item* item : window.items().below("help/text ")) {
          if (item->kind != ItemKind::kSlider) continue;
          const std::string scrolled = item->path;
          on_all_pages(window, scrolled, [&] { CHECK(all_faults(window) == ""); });
          break;
        }
        CHECK(all_faults(window) == "");
      }
      window.workbench().overlay = Overlay::kNone;
    }
  });
}

TEST_CASE("rules: boxes over the window, the tour step by step, the palette with what it finds") {
  in_all_looks(test::text_run().folder(), [](WindowDriver& window) {
    check_boxes(window);
    show_box(window, "help.panel");
    CHECK(all_faults(window) == "");
    window.workbench().complain("no run or model: /nowhere/at/all, which was to be opened");
    show_box(window, "file.welcome");
    CHECK(all_faults(window) == "");
    show_box(window, "help.tour");
    for (int i = 0; i < 6; ++i) {
      INFO(i);
      CHECK(all_faults(window) == "");
      CHECK(hidden_parts(window, "tour/") == "");
      REQUIRE(window.click("tour/next"));
      window.step(2);
    }
    for (const char* query : {"", "theme", "[*,16]", "LayerNormalization->*", "nothing has this"}) {
      INFO(query);
      show_box(window, "go.palette");
      window.type(query);
      window.step();
      CHECK(all_faults(window) == "");
    }
  });
}

TEST_CASE("rules: notes and bookmarks of a run") {
  const TemporaryFolder folder;
  std::filesystem::copy(test::text_run().folder(), folder / "run",
                        std::filesystem::copy_options::recursive);
  in_all_looks(folder / "run", [](WindowDriver& window) {
    show_box(window, "file.note");
    CHECK(all_faults(window) == "");
    REQUIRE(window.click("notes/text"));
    window.type("why does this take longer than the other one does, on the same machine?");
    REQUIRE(window.click("notes/add"));
    window.step();
    REQUIRE(window.has("notes/0/show"));
    CHECK(all_faults(window) == "");
    std::set<std::string> hovered;
    CHECK(check_tooltips(window, hovered, "notes/") > 0);
    REQUIRE(window.click("notes/0/remove"));
    window.step();
  });
}

TEST_CASE("rules: menus and boxes with the largest text and the smallest") {
  for (const auto& [text, number] : {std::pair{24.0F, 24.0F}, std::pair{11.0F, 10.0F}}) {
    for (const test::Screen& screen : test::kScreens) {
      Settings settings;
      settings.text_size = text;
      settings.number_size = number;
      INFO(text);
      test::in_look(test::text_run().folder(), settings, screen, [](WindowDriver& window) {
        const test::StartFolder folder;  // the welcome screen says whether it has a demo run
        check_boxes(window);
        folder.put_demo("demo-1", test::plain_run().folder());
        window.step(75);  // it is looked for once a second
        show_box(window, "file.welcome");
        CHECK(all_faults(window) == "");
        CHECK(hidden_parts(window, "welcome") == "");
        window.workbench().overlay = Overlay::kNone;
        window.step();
        for (const std::string& path : menus_of(window)) {
          INFO(path);
          REQUIRE(window.click(path));
          window.step();
          check_menu(window, path);
        }
      });
    }
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
