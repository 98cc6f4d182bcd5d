// Chords by name, and events as frames: nothing is lost, nothing comes together that must not.
#include "gui/ui/input.h"

#include <doctest/doctest.h>

#include <string>

namespace trainscope::gui {
namespace {

using Kind = InputEvent::Kind;

TEST_CASE("chords: names there and back") {
  for (const char* name : {"Ctrl+P", "Alt+Left", "Ctrl+Alt+Shift+F12", "F1", "?", "/", "Z", "Esc",
                           "Ctrl++", "Ctrl+-", "Shift+Tab", "PageDown", "Space"}) {
    const auto chord = chord_named(name);
    REQUIRE(chord.has_value());
    CHECK(name_of(*chord) == name);
  }
  for (const char* name : {"", "Ctrl+", "F13", "Nothing", "Ctrl+Nothing"}) {
    CHECK_FALSE(chord_named(name).has_value());
  }
}

TEST_CASE("InputQueue: a press and a release between two frames are two frames") {
  InputQueue queue;
  queue.push({.kind = Kind::kMove, .at = {5.0F, 6.0F}});
  queue.push({.kind = Kind::kPress, .at = {5.0F, 6.0F}});
  queue.push({.kind = Kind::kRelease, .at = {5.0F, 6.0F}});
  const Input first = queue.next(1.0);
  CHECK(first.is_pressed(MouseButton::kLeft));
  CHECK(first.is_down(MouseButton::kLeft));
  CHECK_FALSE(first.is_released(MouseButton::kLeft));
  CHECK_FALSE(queue.empty());
  const Input second = queue.next(1.1);
  CHECK(second.is_released(MouseButton::kLeft));
  CHECK_FALSE(second.is_down(MouseButton::kLeft));
  CHECK_FALSE(second.is_pressed(MouseButton::kLeft));
  CHECK(queue.empty());
}

TEST_CASE("InputQueue: a chord and what is typed after it are two frames; letters come together") {
  InputQueue queue;
  queue.push({.kind = Kind::kChord, .chord = *chord_named("Ctrl+P")});
  queue.push({.kind = Kind::kText, .text = "so"});
  queue.push({.kind = Kind::kText, .text = "ft"});
  queue.push({.kind = Kind::kChord, .chord = *chord_named("Enter")});
  CHECK(name_of(*queue.next(0.0).chord) == "Ctrl+P");
  const Input typed = queue.next(0.0);
  CHECK(typed.text == "soft");
  CHECK_FALSE(typed.chord.has_value());
  CHECK(name_of(*queue.next(0.0).chord) == "Enter");
  CHECK_FALSE(queue.next(0.0).chord.has_value());
}

TEST_CASE("InputQueue: two quick presses at a place are a double click, three are not two") {
  InputQueue queue;
  const auto click = [&](Point at, double seconds) {
    queue.push({.kind = Kind::kPress, .at = at});
    queue.push({.kind = Kind::kRelease, .at = at});
    const bool is_double = queue.next(seconds).double_click;
    queue.next(seconds);
    return is_double;
  };
  CHECK_FALSE(click({1.0F, 1.0F}, 0.0));
  CHECK(click({2.0F, 1.0F}, 0.2));
  CHECK_FALSE(click({2.0F, 1.0F}, 0.3));
  CHECK_FALSE(click({90.0F, 1.0F}, 0.4));
  CHECK_FALSE(click({90.0F, 1.0F}, 2.0));
}

TEST_CASE("InputQueue: moves add up, and the mouse that leaves is nowhere") {
  InputQueue queue;
  queue.push({.kind = Kind::kMove, .at = {10.0F, 10.0F}});
  queue.next(0.0);
  queue.push({.kind = Kind::kMove, .at = {15.0F, 10.0F}});
  queue.push({.kind = Kind::kMove, .at = {20.0F, 12.0F}});
  CHECK(queue.next(0.0).moved == Point{10.0F, 2.0F});
  queue.push({.kind = Kind::kLeave});
  CHECK(queue.next(0.0).mouse.x < 0.0F);
}

}  // namespace
}  // namespace trainscope::gui
