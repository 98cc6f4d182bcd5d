// What is done in the window, by item path and by keys.
#include <doctest/doctest.h>

#include <algorithm>

#include "gui/app/commands.h"
#include "gui/app/workspaces.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

TEST_SUITE_BEGIN("gui");

TEST_CASE("window: opens on the overview, with the run's name and numbers") {
  WindowDriver window(test::text_run().folder());
  CHECK(main_panel_of(window.layout()).id == "overview");
  CHECK(window.has("main/overview/card/peak memory"));
  CHECK(window.has("menu/find"));
  CHECK(window.has("inspector/head/copy"));
}

TEST_CASE("window: F keys go to workspaces, tabs to the panels of one") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  CHECK(main_panel_of(window.layout()).id == "kernels");
  REQUIRE(window.click("main/head/tabs/Roofline"));
  CHECK(main_panel_of(window.layout()).id == "roofline");
  window.key("F5");
  CHECK(main_panel_of(window.layout()).id == "overview");
  window.key("F4");
  CHECK(main_panel_of(window.layout()).id == "roofline");
  REQUIRE(window.click("menu/workspaces/Overview"));
  CHECK(main_panel_of(window.layout()).id == "overview");
}

TEST_CASE("window: a row that is clicked is the selection, the inspector tells of it") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  REQUIRE(window.click("main/kernels/table/row/0/"));
  CHECK(window.workbench().selection().subject == Subject::kNode);
  const std::string selected = window.workbench().selected_name();
  CHECK(selected.starts_with("node:"));
  window.step();
  const auto labels = window.items().below("inspector/inspector/");
  CHECK(std::ranges::any_of(labels,
                            [&](const Item* item) { return "node:" + item->label == selected; }));
}

TEST_CASE("window: the selection goes back and forward") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.click("main/kernels/table/row/0/");
  const std::string first = window.workbench().selected_name();
  window.key("Down");
  const std::string second = window.workbench().selected_name();
  CHECK(first != second);
  window.key("Alt+Left");
  CHECK(window.workbench().selected_name() == first);
  window.key("Alt+Right");
  CHECK(window.workbench().selected_name() == second);
  window.key("Esc");
  CHECK(window.workbench().selected_name().empty());
  window.key("Alt+Left");
  CHECK(window.workbench().selected_name() == second);
}

TEST_CASE("window: links of the inspector lead on") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.click("main/kernels/table/row/0/");
  window.step();
  const auto items = window.items().below("inspector/inspector/");
  const auto link = std::ranges::find_if(
      items, [](const Item* item) { return item->value.starts_with("value:"); });
  REQUIRE(link != items.end());
  const std::string path = (*link)->path;
  const std::string target = (*link)->value;
  REQUIRE(window.click(path));
  CHECK(window.workbench().selected_name() == target);
  CHECK(window.workbench().selection().subject == Subject::kValue);
}

TEST_CASE("window: the filter of kernels is an expression, a wrong one says why") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.step();
  const auto rows = [&] {
    return std::ranges::count_if(window.items().below("main/kernels/table/row/"),
                                 [](const Item* item) { return item->kind == ItemKind::kRow; });
  };
  const auto all = rows();
  REQUIRE(window.click("main/kernels/filter"));
  window.type("phase==update");
  window.step();
  CHECK(rows() < all);
  CHECK(rows() > 0);
  window.type(" &&");
  window.step();
  CHECK(rows() == 0);
  CHECK_FALSE(window.items().below("main/kernels/empty/").empty());
  for (int i = 0; i < 3; ++i) window.key("Backspace");
  window.step();
  CHECK(rows() > 0);
}

TEST_CASE("window: heads sort, and once more the other way round") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  const auto first = [&](const char* column) {
    window.step();
    const Item* item = window.items().find(std::string("main/kernels/table/row/0/") + column);
    return item == nullptr ? 0.0 : item->number;
  };
  const double greatest = first("ms");
  REQUIRE(window.click("main/kernels/table/column/ms"));
  const double least = first("ms");
  CHECK(least < greatest);
  window.click("main/kernels/table/column/ms");
  CHECK(first("ms") == greatest);
  window.click("main/kernels/table/column/bytes");
  CHECK(first("bytes") > 0.0);
}

TEST_CASE("window: the palette finds commands, nodes, tensors by shape, and patterns") {
  WindowDriver window(test::text_run().folder());
  window.key("Ctrl+P");
  window.step();
  REQUIRE(window.has("palette/query"));
  window.type("next theme");
  window.key("Enter");
  CHECK(window.workbench().settings.theme == ThemeName::kLight);
  CHECK(window.workbench().overlay == Overlay::kNone);

  window.key("Ctrl+P");
  window.type("LayerNormalization->*");
  window.key("Enter");
  CHECK(window.workbench().selection().subject == Subject::kNode);

  window.key("Ctrl+P");
  window.type("[*,16]");
  window.step();
  CHECK(window.has("palette/0/"));
  window.key("Enter");
  CHECK(window.workbench().selection().subject == Subject::kValue);

  window.key("Ctrl+P");
  window.type("nothing is called like this");
  window.step();
  CHECK_FALSE(window.has("palette/0/"));
  window.key("Esc");
  CHECK(window.workbench().overlay == Overlay::kNone);
}

TEST_CASE("window: a key that is typed into the palette is no command") {
  WindowDriver window(test::text_run().folder());
  window.key("Ctrl+P");
  window.type("zitm");
  CHECK_FALSE(window.workbench().maximized);
  CHECK(window.workbench().settings.layout.inspector);
  window.key("Esc");
  window.type("z");
  CHECK(window.workbench().maximized);
  window.type("z");
  CHECK_FALSE(window.workbench().maximized);
}

TEST_CASE("window: F6 goes from region to region, Z shows one alone") {
  WindowDriver window(test::text_run().folder());
  CHECK(window.app().memory().region == "main");
  window.key("F6");
  CHECK(window.app().memory().region != "main");
  window.type("z");
  window.step();
  CHECK_FALSE(window.has("main/head/maximize"));
  window.type("z");
  window.step();
  CHECK(window.has("main/head/maximize"));
  window.key("Shift+F6");
  CHECK(window.app().memory().region == "main");
}

TEST_CASE("window: the inspector is wider by its splitter, by mouse and by keys") {
  WindowDriver window(test::text_run().folder());
  REQUIRE(window.has("splitter/inspector"));
  REQUIRE(window.drag("splitter/inspector", {-60.0F, 0.0F}));
  CHECK(window.layout().inspector_width == doctest::Approx(360.0F));
  window.key("Right");  // it has the focus
  CHECK(window.layout().inspector_width == doctest::Approx(344.0F));
  window.type("i");
  window.step();
  CHECK_FALSE(window.has("inspector/head/copy"));
}

TEST_CASE("window: below 900 pixels the inspector opens over the main region for a selection") {
  WindowDriver window(test::text_run().folder(), {}, {.size = {800.0F, 500.0F}});
  CHECK(window.items().find("inspector/head/copy") == nullptr);
  REQUIRE(window.workbench().select_named("node:/h.0/mlp/c_fc"));
  window.step(2);
  const Item* head = window.items().find("inspector/head/copy");
  REQUIRE(head != nullptr);
  CHECK(head->layer == kOverlayLayer);
  window.resize({1280.0F, 720.0F});
  window.step(2);
  CHECK(window.items().find("inspector/head/copy")->layer == kPanelLayer);
}

TEST_CASE("window: scale and themes change between frames, and the pictures with them") {
  WindowDriver window(test::text_run().folder());
  const float before = window.fonts().sizes().scale;
  window.key("Ctrl++");
  window.step();
  CHECK(window.fonts().sizes().scale > before);
  window.key("Ctrl+-");
  window.key("Ctrl+-");
  window.step();
  CHECK(window.fonts().sizes().scale < before);
  window.key("Ctrl+0");
  window.step();
  CHECK(window.fonts().sizes().scale == before);
  for (int i = 0; i < 30; ++i) window.key("Ctrl++");
  window.step();
  CHECK(window.fonts().sizes().scale == kGreatestScale);
  for (int i = 0; i < 60; ++i) window.key("Ctrl+-");
  window.step();
  CHECK(window.fonts().sizes().scale == kLeastScale);
}

TEST_CASE("window: two pictures of one state are one picture") {
  WindowDriver a(test::text_run().folder());
  WindowDriver b(test::text_run().folder());
  CHECK(a.picture().pixels == b.picture().pixels);
  CHECK(a.svg() == b.svg());
}

TEST_CASE("window: hovering changes no layout, and shows a tooltip after a moment") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.step();
  std::vector<std::pair<std::string, Rect>> before;
  for (const Item& item : window.items().items()) before.emplace_back(item.path, item.rect);
  REQUIRE(window.hover("main/kernels/table/column/gflops"));
  CHECK_FALSE(window.items().below("tooltip/").empty());
  std::size_t same = 0;
  for (const auto& [path, rect] : before) {
    const Item* item = window.items().find(path);
    if (item != nullptr && item->rect == rect) ++same;
  }
  CHECK(same == before.size());
}

TEST_CASE("window: help is about the panel in front, with keys and the glossary") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.type("?");
  window.step();
  const auto says = [&](std::string_view part) {
    return std::ranges::any_of(window.items().below("help/"), [&](const Item* item) {
      return item->label.find(part) != std::string::npos;
    });
  };
  CHECK(says("Kernels"));
  CHECK(says("trainscope query"));
  REQUIRE(window.click("help/page/Keys"));
  window.step();
  CHECK(says("Ctrl+O"));
  REQUIRE(window.click("help/page/Glossary"));
  window.step();
  CHECK(says("graph"));
  REQUIRE(window.click("help/close"));
  CHECK(window.workbench().overlay == Overlay::kNone);
}

TEST_CASE("window: the tour has six steps and ends") {
  WindowDriver window(test::text_run().folder());
  run_command(window.workbench(), "help.tour");
  window.step(2);
  for (int i = 0; i < 5; ++i) {
    CHECK(window.workbench().overlay == Overlay::kTour);
    REQUIRE(window.click("tour/next"));
    window.step();
  }
  CHECK(window.label("tour/next") == "Done");
  REQUIRE(window.click("tour/next"));
  CHECK(window.workbench().overlay == Overlay::kNone);
  CHECK(window.workbench().settings.tour_seen);
}

TEST_CASE("window: settings are changed in their box") {
  WindowDriver window(test::text_run().folder());
  window.key("Ctrl+,");
  window.step();
  REQUIRE(window.click("settings/theme/Light"));
  CHECK(window.workbench().settings.theme == ThemeName::kLight);
  REQUIRE(window.click("settings/motion"));
  CHECK(window.workbench().settings.reduced_motion);
  REQUIRE(window.click("settings/text_size"));
  window.key("End");
  window.step();
  CHECK(window.workbench().settings.text_size == 24.0F);
  CHECK(window.workbench().settings.number_size == 13.0F);
  window.key("Esc");
  CHECK(window.workbench().overlay == Overlay::kNone);
}

TEST_CASE("window: a path that is typed is opened, one that is none says so") {
  WindowDriver window({});
  window.key("Ctrl+O");
  window.step();
  window.type(test::plain_run().folder().string());
  window.key("Enter");
  window.step();
  REQUIRE(window.workbench().run() != nullptr);
  CHECK(window.workbench().run()->message(Topic::kSource).empty());
  window.key("Ctrl+O");
  window.step();
  window.type("/nowhere/at/all");
  window.key("Enter");
  window.step(2);
  CHECK_FALSE(window.workbench().run()->message(Topic::kSource).empty());
  CHECK_FALSE(window.items().below("main/overview/empty/").empty());
}

TEST_CASE("window: without a profile the panels say what would make one") {
  WindowDriver window(test::plain_run().folder());
  window.key("F4");
  window.step();
  REQUIRE(window.has("main/kernels/empty/copy"));
  REQUIRE(window.click("main/kernels/empty/copy"));
  CHECK(window.app().memory().clipboard.starts_with("trainscope "));
}

TEST_CASE("window: several runs, one is shown") {
  WindowDriver window(test::text_run().folder());
  window.workbench().open(test::image_run().folder());
  window.step();
  CHECK(window.workbench().active() == 1);
  window.key("Ctrl+Tab");
  CHECK(window.workbench().active() == 0);
  REQUIRE(window.click("menu/run"));
  window.step();
  REQUIRE(window.click("menu/run/menu/1"));
  window.step();
  CHECK(window.workbench().active() == 1);
  window.key("Ctrl+W");
  CHECK(window.workbench().count() == 1);
  window.key("Ctrl+W");
  window.step();
  CHECK(window.workbench().run() == nullptr);
}

TEST_CASE("window: a run that is opened after another was closed shows its own numbers") {
  WindowDriver window(test::text_run().folder());
  const auto rows_of = [&] {
    std::vector<std::string> labels;
    window.key("F4");
    window.step();
    for (const Item* item : window.items().below("main/kernels/table/row/")) {
      if (item->kind == ItemKind::kLabel) labels.push_back(item->label);
    }
    return labels;
  };
  const std::vector<std::string> text = rows_of();
  for (int i = 0; i < 3; ++i) {
    window.key("Ctrl+W");
    window.workbench().open(test::image_run().folder());
    CHECK(rows_of() != text);
    window.key("Ctrl+W");
    window.workbench().open(test::text_run().folder());
    CHECK(rows_of() == text);
  }
}

TEST_CASE("window: a key with Caps Lock is the key") {
  WindowDriver window(test::text_run().folder());
  window.type("I");
  CHECK_FALSE(window.layout().inspector);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
