// Text and the places that it has: what is cut, and what is left out.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "gui/ui/text_field.h"
#include "tests/gui/ui/drawn_frame.h"

namespace trainscope::gui {
namespace {

using test::DrawnFrame;

constexpr Rect kAll{0.0F, 0.0F, 400.0F, 300.0F};

std::size_t faults_within(const Rect& clip, const Rect& row, Moves moves) {
  const DrawnFrame frame([&](Ui& ui) {
    const Clip clipped(ui, clip, moves);
    ui.text(row, "words of ours");
  });
  return faults_of(frame.items()).size();
}

// What is drawn as text in the file.
bool draws(const DrawnFrame& frame, std::string_view text) {
  return frame.svg().find(text) != std::string::npos;
}

TEST_CASE("faults_of: text that its clip cuts, but not where it is moved into view") {
  constexpr Rect kRow{0.0F, 40.0F, 200.0F, 20.0F};
  constexpr Rect kUpper{0.0F, 0.0F, 400.0F, 50.0F};
  constexpr Rect kLeft{0.0F, 0.0F, 30.0F, 300.0F};
  CHECK(faults_within(kAll, kRow, Moves::kNothing) == 0);
  CHECK(faults_within(kUpper, kRow, Moves::kNothing) == 1);
  CHECK(faults_within(kUpper, kRow, Moves::kUpAndDown) == 0);
  CHECK(faults_within(kUpper, kRow, Moves::kAll) == 0);
  CHECK(faults_within(kLeft, kRow, Moves::kNothing) == 1);
  CHECK(faults_within(kLeft, kRow, Moves::kUpAndDown) == 1);
  CHECK(faults_within(kLeft, kRow, Moves::kAll) == 0);
  CHECK(faults_within({0.0F, 0.0F, 400.0F, 30.0F}, kRow, Moves::kNothing) == 0);  // not drawn
}

TEST_CASE("faults_of: a row that is too low for its text, also where it is moved") {
  constexpr Rect kLow{0.0F, 40.0F, 200.0F, 8.0F};
  for (const Moves moves : {Moves::kNothing, Moves::kUpAndDown, Moves::kAll}) {
    CHECK(faults_within(kAll, kLow, moves) == 1);
  }
  const DrawnFrame number([&](Ui& ui) { ui.number("n", kLow, {12.0, Unit::kCount}); });
  CHECK(faults_of(number.items()).size() == 1);
}

TEST_CASE("faults_of: what is moved around a clip within it is moved in it too") {
  const DrawnFrame frame([&](Ui& ui) {
    const Clip canvas(ui, kAll, Moves::kAll);
    {
      const Clip box(ui, {0.0F, 0.0F, 30.0F, 300.0F});
      ui.text({0.0F, 40.0F, 200.0F, 20.0F}, "words of ours");
    }
  });
  CHECK(faults_of(frame.items()).empty());
}

TEST_CASE("fitting_text: the first that fits, or nothing") {
  const auto drawn = [](const Rect& place) {
    return DrawnFrame([&](Ui& ui) { ui.fitting_text(place, {"in many words", "short"}); });
  };
  CHECK(draws(drawn({0.0F, 0.0F, 300.0F, 20.0F}), "in many words"));
  const DrawnFrame narrow = drawn({0.0F, 0.0F, 50.0F, 20.0F});
  CHECK(draws(narrow, "short"));
  CHECK_FALSE(draws(narrow, "in many words"));
  CHECK(faults_of(narrow.items()).empty());
  CHECK(drawn({0.0F, 0.0F, 5.0F, 20.0F}).items().items().empty());
  CHECK(drawn({0.0F, 0.0F, 300.0F, 8.0F}).items().items().empty());
}

TEST_CASE("text_field: a hint that has no room is what is before its colon, or nothing") {
  const auto drawn = [](float width) {
    return DrawnFrame([width, text = std::string()](Ui& ui) mutable {
      text_field(ui, "f", {0.0F, 0.0F, width, 24.0F}, text, {.hint = "find: a name of a node"});
    });
  };
  CHECK(draws(drawn(300.0F), "find: a name of a node"));
  CHECK(draws(drawn(60.0F), ">find<"));
  CHECK_FALSE(draws(drawn(24.0F), "find"));
}

}  // namespace
}  // namespace trainscope::gui
