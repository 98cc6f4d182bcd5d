// Layouts that are kept by name, in each way that there is to save, choose and delete them.
#include "gui/app/layouts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gui/app/commands.h"
#include "gui/app/frame.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

TEST_SUITE_BEGIN("gui");

TEST_CASE("window: regions have their sizes") {
  const Regions wide = regions_of(Layout(), {0.0F, 0.0F, 1280.0F, 720.0F}, 18.0F);
  CHECK(wide.menu.height == 22.0F);
  CHECK(wide.status.height == 20.0F);
  CHECK(wide.rail.width == 36.0F);
  CHECK(wide.inspector.width == 300.0F);
  CHECK_FALSE(wide.inspector_is_over);
  CHECK(wide.strip.height == 96.0F);
  const Regions narrow = regions_of(Layout(), {0.0F, 0.0F, 899.0F, 720.0F}, 18.0F);
  CHECK(narrow.inspector_is_over);
  CHECK(narrow.inspector.width == 300.0F);
  CHECK(narrow.strip.height == 48.0F);
  CHECK(narrow.main.right() == 899.0F);
}

TEST_CASE("window: the strip is higher by its splitter, by mouse and by keys") {
  WindowDriver window(test::text_run().folder());
  REQUIRE(window.drag("splitter/strip", {0.0F, -50.0F}));
  CHECK(window.layout().strip_height == doctest::Approx(146.0F));
  window.key("Down");  // it has the focus
  CHECK(window.layout().strip_height == doctest::Approx(130.0F));
  REQUIRE(window.drag("splitter/strip", {0.0F, 300.0F}));
  CHECK(window.layout().strip_height == 48.0F);
}

TEST_CASE("window: the rail opens by its key, and is wider by its splitter") {
  WindowDriver window(test::text_run().folder());
  CHECK_FALSE(window.has("splitter/rail"));
  const auto row_of_rail = [&] { return window.items().below("stages/stages/").size(); };
  const std::size_t closed = row_of_rail();
  window.type("s");
  window.step();
  CHECK(window.layout().rail_pinned);
  CHECK(row_of_rail() > closed);
  REQUIRE(window.drag("splitter/rail", {40.0F, 0.0F}));
  CHECK(window.layout().rail_width == doctest::Approx(260.0F));
  window.key("Left");  // it has the focus
  CHECK(window.layout().rail_width == doctest::Approx(244.0F));
  REQUIRE(window.drag("splitter/rail", {-400.0F, 0.0F}));
  CHECK(window.layout().rail_width == 120.0F);
  window.type("s");
  window.step();
  CHECK_FALSE(window.has("splitter/rail"));
}

TEST_CASE("window: below 900 pixels what cannot open says so, and changes nothing") {
  Settings settings;
  settings.layout.rail_pinned = true;
  WindowDriver window(test::text_run().folder(), settings, {.size = {800.0F, 500.0F}});
  Workbench& bench = window.workbench();
  for (const char* splitter : {"splitter/strip", "splitter/rail", "splitter/inspector"}) {
    CHECK_FALSE(window.has(splitter));
  }
  const auto press = [&](std::string_view key) {
    bench.notice = {};
    window.type(key);
    window.step();
    CHECK_FALSE(bench.notice.is_error);
    return bench.notice.text;
  };
  CHECK(press("s").find("900 px") != std::string::npos);
  CHECK(press("i").starts_with("select something"));
  CHECK(window.layout() == settings.layout);
  REQUIRE(window.click("menu/View"));
  window.step();
  for (const Item* item : window.items().below("menu/View/menu/")) {
    if (item->label == "Pin the stages" && item->kind == ItemKind::kRow) CHECK(item->value == "");
  }
  window.key("Esc");
  // For what is selected it opens, and is closed and opened by its key.
  REQUIRE(bench.select_named("node:/h.0/mlp/c_fc"));
  window.step(2);
  CHECK(window.has("inspector/head/copy"));
  CHECK(window.has("splitter/inspector"));
  CHECK(press("i").empty());
  CHECK_FALSE(window.has("inspector/head/copy"));
  CHECK_FALSE(window.layout().inspector);
  // Closed and without a selection, it is ready for the next one.
  bench.select({});
  window.step();
  CHECK(press("i").starts_with("select something"));
  CHECK(window.layout().inspector);
  window.resize({1280.0F, 720.0F});
  window.step(2);
  CHECK(window.has("splitter/rail"));
  CHECK(window.has("splitter/strip"));
  CHECK(window.layout() == settings.layout);
}

TEST_CASE("layouts: saved, chosen and deleted by commands") {
  WindowDriver window(test::text_run().folder());
  Workbench& bench = window.workbench();
  const Layout first = window.layout();
  window.drag("splitter/inspector", {-100.0F, 0.0F});
  REQUIRE(run_command(bench, "save_layout wide inspector"));
  CHECK(bench.notice.text == "saved the layout 'wide inspector'");
  const Layout wide = window.layout();
  REQUIRE(run_command(bench, "go.kernels"));
  REQUIRE(run_command(bench, "view.stages"));
  REQUIRE(run_command(bench, "save_layout kernels"));
  const Layout kernels = window.layout();
  CHECK_FALSE(kernels == wide);
  REQUIRE(run_command(bench, "view.reset_layout"));
  CHECK(window.layout() == Layout{});
  REQUIRE(run_command(bench, "layout wide inspector"));
  CHECK(window.layout() == wide);
  CHECK(window.layout().inspector_width == doctest::Approx(400.0F));
  REQUIRE(run_command(bench, "layout kernels"));
  CHECK(window.layout() == kernels);
  bench.settings.layout = first;
  REQUIRE(run_command(bench, "save_layout kernels"));
  CHECK(bench.notice.text == "replaced the layout 'kernels'");
  CHECK(bench.settings.saved_layouts.at("kernels") == first);
  REQUIRE(run_command(bench, "delete_layout wide inspector"));
  CHECK(bench.settings.saved_layouts.size() == 1);
  for (const char* gone : {"layout wide inspector", "delete_layout wide inspector"}) {
    CHECK_FALSE(run_command(bench, gone));
    CHECK(bench.notice.text == "there is no layout 'wide inspector'");
  }
  const std::string long_name(kMostNameBytes + 1, 'x');
  CHECK_FALSE(run_command(bench, "save_layout " + long_name));
  CHECK(bench.settings.saved_layouts.size() == 1);
}

TEST_CASE("layouts: saved, chosen and deleted in their box, by keys alone") {
  WindowDriver window(test::text_run().folder());
  Workbench& bench = window.workbench();
  const auto go_to = [&](const std::string& path) {
    for (int i = 0; i < 40 && window.app().memory().focus != path; ++i) window.key("Tab");
    REQUIRE(window.app().memory().focus == path);
    window.key("Enter");
    window.step();
  };
  window.key("F4");
  window.type("l");
  REQUIRE(bench.overlay == Overlay::kLayouts);
  window.step();
  window.type("by kernel");
  window.key("Enter");
  window.step();
  CHECK(bench.overlay == Overlay::kLayouts);
  REQUIRE(bench.settings.saved_layouts.contains("by kernel"));
  window.type("second");
  window.key("Enter");
  window.step();
  REQUIRE(bench.settings.saved_layouts.size() == 2);
  window.key("Esc");
  CHECK(bench.overlay == Overlay::kNone);
  window.key("F5");
  CHECK(window.layout().workspace == "overview");
  window.type("L");
  window.step();
  go_to("layouts/by kernel/show");
  CHECK(bench.overlay == Overlay::kNone);
  CHECK(window.layout().workspace == "kernels");
  window.type("l");
  window.step();
  go_to("layouts/second/delete");
  CHECK(bench.overlay == Overlay::kLayouts);
  CHECK(bench.settings.saved_layouts.size() == 1);
  go_to("layouts/reset");
  CHECK(window.layout() == Layout{});
}

TEST_CASE(
    "layouts: a name that is none cannot be saved in the box, one that is there is replaced") {
  WindowDriver window(test::plain_run().folder());
  window.type("l");
  window.step();
  CHECK_FALSE(window.items().find("layouts/save")->enabled);
  window.type(std::string(kMostNameBytes + 1, 'x'));
  window.key("Enter");
  window.step();
  CHECK(window.workbench().settings.saved_layouts.empty());
  window.key("Ctrl+A");
  window.type("one");
  window.step();
  CHECK(window.label("layouts/save") == "Save");
  REQUIRE(window.click("layouts/save"));
  window.step();
  CHECK(window.workbench().settings.saved_layouts.contains("one"));
  REQUIRE(window.click("layouts/name"));
  window.type("one");
  window.step();
  CHECK(window.label("layouts/save") == "Replace");
}

TEST_CASE("layouts: the View menu has them, the one of now with its mark") {
  Settings settings;
  settings.saved_layouts["of now"] = settings.layout;
  settings.saved_layouts["wide"] = {.workspace = "memory", .inspector_width = 500.0F};
  WindowDriver window(test::text_run().folder(), settings);
  const auto row_of = [&](std::string_view title) -> const Item* {
    window.click("menu/View");
    window.step();
    for (const Item* item : window.items().below("menu/View/menu/")) {
      if (item->label == title && item->kind == ItemKind::kRow) return item;
    }
    return nullptr;
  };
  const Item* now = row_of("Layout: of now");
  REQUIRE(now != nullptr);
  CHECK(now->value == "on");
  window.key("Esc");
  window.step();
  const Item* wide = row_of("Layout: wide");
  REQUIRE(wide != nullptr);
  CHECK(wide->value == "");
  REQUIRE(window.click(std::string(wide->path)));
  window.step();
  CHECK(window.layout() == settings.saved_layouts["wide"]);
}

TEST_CASE("layouts: the palette finds each, to choose and to delete it") {
  Settings settings;
  settings.saved_layouts["wide"] = {.workspace = "memory", .inspector_width = 500.0F};
  WindowDriver window(test::text_run().folder(), settings);
  window.key("Ctrl+P");
  window.type("Layout: wide");
  window.step();
  CHECK(window.label("palette/0/") == "Layout: wide");
  window.key("Enter");
  window.step();
  CHECK(window.layout() == settings.saved_layouts["wide"]);
  window.key("Ctrl+P");
  window.type("Delete the layout wide");
  window.step();
  window.key("Enter");
  window.step();
  CHECK(window.workbench().settings.saved_layouts.empty());
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
