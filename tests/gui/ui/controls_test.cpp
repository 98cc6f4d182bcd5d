// Controls by mouse and by keys.
#include "gui/ui/controls.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gui/ui/table.h"
#include "gui/ui/text_field.h"
#include "tests/gui/ui/drawn_frame.h"

namespace trainscope::gui {
namespace {

using test::DrawnFrame;

constexpr Rect kPlace{10.0F, 10.0F, 120.0F, 24.0F};

TEST_CASE("button: pressed by a click, by Enter and by Space, not while it is disabled") {
  int presses = 0;
  bool enabled = true;
  DrawnFrame frame([&](Ui& ui) {
    if (button(ui, "go", kPlace, "Go", {.enabled = enabled})) ++presses;
  });
  frame.click("go");
  CHECK(presses == 1);
  frame.key("Enter");  // it has the focus by the click
  CHECK(presses == 2);
  frame.type(" ");
  CHECK(presses == 3);
  enabled = false;
  frame.frame();
  frame.click("go");
  frame.key("Enter");
  CHECK(presses == 3);
}

TEST_CASE("button: a press that is let go elsewhere is none") {
  int presses = 0;
  DrawnFrame frame([&](Ui& ui) {
    if (button(ui, "go", kPlace, "Go")) ++presses;
  });
  frame.drag("go", {200.0F, 100.0F});
  CHECK(presses == 0);
}

TEST_CASE("Tab: goes round the controls, Shift+Tab back") {
  bool on = false;
  double value = 0.5;
  DrawnFrame frame([&](Ui& ui) {
    button(ui, "a", {0.0F, 0.0F, 80.0F, 24.0F}, "A");
    toggle(ui, "b", {0.0F, 30.0F, 80.0F, 24.0F}, "B", on);
    slider(ui, "c", {0.0F, 60.0F, 80.0F, 24.0F}, value, {}, "0.5");
  });
  for (const char* expected : {"a", "b", "c", "a"}) {
    frame.key("Tab");
    CHECK(frame.memory().focus == expected);
  }
  frame.key("Shift+Tab");
  CHECK(frame.memory().focus == "c");
  frame.key("Shift+Tab");
  frame.key("Enter");
  CHECK(on);
}

TEST_CASE("slider: arrows, Home and End, and the mouse") {
  double value = 0.5;
  DrawnFrame frame([&](Ui& ui) {
    slider(ui, "s", {0.0F, 0.0F, 216.0F, 24.0F}, value, {0.0, 1.0, 0.1}, "");
  });
  frame.key("Tab");
  frame.key("Right");
  CHECK(value == doctest::Approx(0.6));
  frame.key("Left");
  frame.key("Left");
  CHECK(value == doctest::Approx(0.4));
  frame.key("End");
  CHECK(value == 1.0);
  frame.key("Right");
  CHECK(value == 1.0);
  frame.key("Home");
  CHECK(value == 0.0);
  frame.drag("s", {50.0F, 0.0F});
  CHECK(value == doctest::Approx(0.75));
}

TEST_CASE("menu: opens, is walked by arrows, chooses, closes by Escape") {
  int chosen = -1;
  const std::vector<MenuItem> items = {
      {.label = "one"}, {.label = "two", .enabled = false}, {.label = "three"}};
  DrawnFrame frame([&](Ui& ui) {
    const int now = menu_button(ui, "m", kPlace, "Menu", items);
    if (now >= 0) chosen = now;
  });
  frame.click("m");
  frame.frame();
  REQUIRE(frame.items().find("m/menu/2") != nullptr);
  frame.key("Down");
  frame.key("Enter");
  frame.frame();
  CHECK(chosen == 2);
  CHECK(frame.items().find("m/menu/2") == nullptr);
  frame.click("m");
  frame.key("Esc");
  frame.frame();
  CHECK(frame.memory().open_popup.empty());
  frame.click("m");
  frame.frame();
  frame.click("m/menu/1");  // disabled
  CHECK(chosen == 2);
  frame.click("m/menu/0");
  frame.frame();
  CHECK(chosen == 0);
}

TEST_CASE("menu: a list that is longer than the window is scrolled, by keys") {
  std::vector<MenuItem> items;
  for (int i = 0; i < 40; ++i) items.push_back({.label = "row " + std::to_string(i)});
  int chosen = -1;
  DrawnFrame frame([&](Ui& ui) {
    const int now = menu_button(ui, "m", kPlace, "Menu", items);
    if (now >= 0) chosen = now;
  });
  frame.click("m");
  frame.frame();
  const auto seen = [&](int i) {
    const Item* row = frame.items().find("m/menu/" + std::to_string(i));
    return row != nullptr && row->seen.height > row->rect.height - 0.5F;
  };
  CHECK(seen(0));
  CHECK_FALSE(seen(39));
  for (int i = 0; i < 39; ++i) {
    frame.key("Down");
    frame.frame();
    CHECK(seen(i + 1));
  }
  CHECK(faults_of(frame.items()).empty());
  frame.key("Enter");
  frame.frame();
  CHECK(chosen == 39);
  frame.click("m");
  frame.frame();
  CHECK(seen(0));  // from its top again
}

TEST_CASE("text_field: typing, moving, selecting, words, clipboard") {
  std::string text = "one two";
  FieldResponse last;
  DrawnFrame frame([&](Ui& ui) {
    const FieldResponse now = text_field(ui, "f", kPlace, text);
    if (now.submitted || now.left) last = now;
  });
  frame.click("f");
  frame.key("End");
  frame.type(" λ");
  CHECK(text == "one two λ");
  frame.key("Backspace");
  CHECK(text == "one two ");
  frame.key("Ctrl+Backspace");
  CHECK(text == "one ");
  frame.key("Home");
  frame.key("Delete");
  CHECK(text == "ne ");
  frame.key("Ctrl+A");
  frame.key("Ctrl+X");
  CHECK(text.empty());
  CHECK(frame.memory().clipboard == "ne ");
  frame.memory().pasted = "three";
  frame.key("Ctrl+V");
  CHECK(text == "three");
  frame.key("Shift+Left");
  frame.type("!");
  CHECK(text == "thre!");
  frame.key("Enter");
  CHECK(last.submitted);
  frame.key("Esc");
  CHECK(last.left);
  frame.type("x");  // it has no focus any more
  CHECK(text == "thre!");
}

TEST_CASE("scrolled: the wheel moves the content, never beyond its ends") {
  Scrolled now;
  DrawnFrame frame([&](Ui& ui) { now = scrolled(ui, "s", {0.0F, 0.0F, 200.0F, 100.0F}, 250.0F); });
  CHECK(now.offset == 0.0F);
  CHECK(now.view.width == 180.0F);
  frame.memory().scroll["s"] = 1000.0F;
  frame.frame();
  CHECK(now.offset == 150.0F);
  frame.memory().scroll["s"] = -5.0F;
  frame.frame();
  CHECK(now.offset == 0.0F);
}

constexpr std::array<TableColumn, 3> kColumns = {
    {{.name = "name", .title = "name", .align = Align::kLeft},
     {.name = "ms", .title = "ms", .width = 60.0F},
     {.name = "mb", .title = "MB", .width = 60.0F}}};

TEST_CASE("table: draws what is seen, sorts by its heads, is walked by arrows") {
  TableState state{.sorted_by = 1};
  std::optional<std::size_t> chosen;
  bool sorted = false;
  std::size_t drawn = 0;
  DrawnFrame frame([&](Ui& ui) {
    ui.memory().region = "r";
    const Region region(ui, "r", {0.0F, 0.0F, 400.0F, 120.0F});
    drawn = 0;
    const TableResponse response = table(ui, "t", {0.0F, 0.0F, 400.0F, 120.0F},
                                         {.columns = kColumns, .rows = 1000, .chosen = chosen},
                                         state, [&](Ui& inner, const TableCell& cell) {
                                           ++drawn;
                                           inner.text(cell.rect, std::to_string(cell.row));
                                         });
    if (response.clicked) chosen = response.clicked;
    sorted = response.sorted;
  });
  CHECK(drawn < 30);
  frame.click("t/column/mb");
  CHECK(state.sorted_by == 2);
  CHECK(state.descending);
  frame.click("t/column/mb");
  CHECK_FALSE(state.descending);
  frame.click("t/row/2/");
  CHECK(chosen == 2);
  frame.key("Down");
  CHECK(chosen == 3);
  frame.key("End");
  CHECK(chosen == 999);
  frame.frame();
  CHECK(frame.items().find("t/row/999/") != nullptr);
  frame.key("Home");
  frame.key("Up");
  CHECK(chosen == 0);
  const float before = frame.items().find("t/column/ms")->rect.width;
  frame.drag("t/column/ms/width", {-20.0F, 0.0F});
  CHECK(frame.items().find("t/column/ms")->rect.width == doctest::Approx(before + 20.0F));
}

TEST_CASE("table: Tab brings the keys from one table to the next, and a click does") {
  std::array<TableState, 2> states;
  std::array<std::size_t, 2> chosen = {};
  int presses = 0;
  DrawnFrame frame([&](Ui& ui) {
    if (ui.memory().region.empty()) ui.memory().region = "other";
    button(ui, "go", {0.0F, 200.0F, 80.0F, 24.0F}, "Go");
    const Region region(ui, "r", {0.0F, 0.0F, 400.0F, 200.0F});
    for (std::size_t i = 0; i < 2; ++i) {
      const float top = 100.0F * static_cast<float>(i);
      const TableResponse response = table(ui, i == 0 ? "a" : "b", {0.0F, top, 400.0F, 100.0F},
                                           {.columns = kColumns,
                                            .rows = 9,
                                            .chosen = chosen[i],
                                            .yields = i == 0 && has_focus(ui, "b")},
                                           states[i], [](Ui&, const TableCell&) {});
      if (response.clicked) chosen[i] = *response.clicked;
      if (response.activated) ++presses;
    }
  });
  frame.key("Down");
  CHECK(chosen == std::array<std::size_t, 2>{0, 0});  // another region has the keys
  const auto tab_to = [&](std::string_view path) {
    for (int i = 0; i < 20 && frame.memory().focus != path; ++i) frame.key("Tab");
    REQUIRE(frame.memory().focus == path);
    frame.frame();
  };
  tab_to("a/keys");
  CHECK(frame.memory().region == "r");
  frame.key("Down");
  CHECK(chosen == std::array<std::size_t, 2>{1, 0});
  tab_to("b/keys");
  frame.key("Down");
  frame.key("Down");
  CHECK(chosen == std::array<std::size_t, 2>{1, 2});
  frame.key("Enter");
  CHECK(presses == 1);
  frame.click("a/row/2/");
  CHECK(frame.memory().focus == "a/keys");
  frame.key("Down");
  CHECK(chosen == std::array<std::size_t, 2>{3, 2});
}

TEST_CASE("table: columns that have no room are left out, the last first") {
  TableState state;
  DrawnFrame frame([&](Ui& ui) {
    table(ui, "t", {0.0F, 0.0F, 200.0F, 120.0F}, {.columns = kColumns, .rows = 1}, state,
          [](Ui&, const TableCell&) {});
  });
  CHECK(frame.items().find("t/column/name") != nullptr);
  CHECK(frame.items().find("t/column/ms") != nullptr);
  CHECK(frame.items().find("t/column/mb") == nullptr);
}

TEST_CASE("layers: what lies above takes the mouse") {
  int below = 0;
  int above = 0;
  DrawnFrame frame([&](Ui& ui) {
    if (button(ui, "below", kPlace, "Below")) ++below;
    ui.later(kPopupLayer, [&](Ui& top) {
      top.cover(kPlace);
      if (button(top, "above", kPlace, "Above")) ++above;
    });
  });
  frame.frame();
  frame.click("below");
  CHECK(below == 0);
  CHECK(above == 1);
}

TEST_CASE("text: what is too wide is shortened or reported, numbers end at the right") {
  DrawnFrame frame([&](Ui& ui) {
    const Rect narrow{0.0F, 0.0F, 60.0F, 20.0F};
    ui.text(narrow, "our own words that do not fit");
    ui.text(narrow, "/a/long/name/of/a/node", {.fit = Fit::kMiddle});
    ui.number("n", {0.0F, 40.0F, 100.0F, 20.0F}, {1536.0, Unit::kBytes}, "/bytes");
  });
  const std::vector<std::string> faults = faults_of(frame.items());
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].find("our own words") != std::string::npos);
  CHECK(frame.svg().find("…") != std::string::npos);
  const Item* number = frame.items().find("n");
  REQUIRE(number != nullptr);
  CHECK(number->value == "1.5 KiB");
  CHECK(number->number == 1536.0);
  CHECK(number->fact == "/bytes");
}

TEST_CASE("paragraph: our own words have to fit, others end in an ellipsis") {
  constexpr std::string_view kText = "one two three four five six seven eight nine ten";
  for (const Fit fit : {Fit::kWhole, Fit::kEnd}) {
    DrawnFrame frame([&](Ui& ui) {
      ui.paragraph({0.0F, 0.0F, 120.0F, ui.line_height() * 3.0F}, kText, {.fit = fit});
    });
    CHECK(faults_of(frame.items()).empty() == (fit == Fit::kEnd));
    CHECK((frame.svg().find("…") != std::string::npos) == (fit == Fit::kEnd));
  }
  DrawnFrame whole([&](Ui& ui) { ui.paragraph({0.0F, 0.0F, 120.0F, 200.0F}, kText); });
  CHECK(faults_of(whole.items()).empty());
  DrawnFrame none([&](Ui& ui) { ui.paragraph({0.0F, 0.0F, 120.0F, 1.0F}, kText); });
  CHECK(none.items().items().empty());
}

TEST_CASE("faults_of: small controls and pale ink are found") {
  DrawnFrame frame([&](Ui& ui) {
    button(ui, "small", {0.0F, 0.0F, 60.0F, 12.0F}, "ok");
    ui.text({0.0F, 40.0F, 100.0F, 20.0F}, "pale", {.color = rgb(0x333333)});
  });
  const std::vector<std::string> faults = faults_of(frame.items());
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].starts_with("too small: button 'small'"));
  CHECK(faults[1].starts_with("contrast"));
}

}  // namespace
}  // namespace trainscope::gui
