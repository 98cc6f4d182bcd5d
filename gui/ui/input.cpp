// Names of chords, and how events become frames.
#include "gui/ui/input.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trainscope::gui {
namespace {

constexpr double kDoubleClickSeconds = 0.4;
constexpr float kDoubleClickDistance = 4.0F;

constexpr std::pair<Key, std::string_view> kKeyNames[] = {
    {Key::kSpace, "Space"},   {Key::kEscape, "Esc"},          {Key::kEnter, "Enter"},
    {Key::kTab, "Tab"},       {Key::kBackspace, "Backspace"}, {Key::kDelete, "Delete"},
    {Key::kLeft, "Left"},     {Key::kRight, "Right"},         {Key::kUp, "Up"},
    {Key::kDown, "Down"},     {Key::kHome, "Home"},           {Key::kEnd, "End"},
    {Key::kPageUp, "PageUp"}, {Key::kPageDown, "PageDown"}};

std::string name_of(Key key) {
  for (const auto& [candidate, name] : kKeyNames) {
    if (candidate == key) return std::string(name);
  }
  const auto code = static_cast<int>(key);
  const auto first = static_cast<int>(Key::kF1);
  if (code >= first && code <= static_cast<int>(Key::kF12)) {
    return "F" + std::to_string(code - first + 1);
  }
  return {static_cast<char>(code)};
}

std::optional<Key> key_named(std::string_view name) {
  for (const auto& [key, candidate] : kKeyNames) {
    if (candidate == name) return key;
  }
  if (name.size() == 1 && name[0] > ' ' && name[0] < 127) return static_cast<Key>(name[0]);
  for (int i = 0; i < 12; ++i) {
    if (name == "F" + std::to_string(i + 1))
      return static_cast<Key>(static_cast<int>(Key::kF1) + i);
  }
  return std::nullopt;
}

}  // namespace

std::string name_of(const Chord& chord) {
  std::string text;
  if (chord.control) text += "Ctrl+";
  if (chord.alt) text += "Alt+";
  if (chord.shift) text += "Shift+";
  return text + name_of(chord.key);
}

std::optional<Chord> chord_named(std::string_view name) {
  Chord chord;
  const auto takes = [&name](std::string_view prefix) {
    if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
    name.remove_prefix(prefix.size());
    return true;
  };
  for (bool more = true; more;) {
    more = false;
    if (takes("Ctrl+")) more = chord.control = true;
    if (takes("Alt+")) more = chord.alt = true;
    if (takes("Shift+")) more = chord.shift = true;
  }
  const std::optional<Key> key = key_named(name);
  if (!key) return std::nullopt;
  chord.key = *key;
  return chord;
}

Input InputQueue::next(double seconds) {
  const Point before = state_.mouse;
  state_.pressed = {};
  state_.released = {};
  state_.wheel = {};
  state_.chord.reset();
  state_.text.clear();
  state_.double_click = false;
  state_.seconds = seconds;
  bool has_acted = false;
  while (!events_.empty() && take(events_.front(), has_acted)) events_.pop_front();
  // What is held is not dragged by the way to it.
  const bool is_press = std::ranges::find(state_.pressed, true) != state_.pressed.end();
  state_.moved = is_press ? Point{} : state_.mouse - before;
  return state_;
}

bool InputQueue::take(const InputEvent& event, bool& has_acted) {
  using Kind = InputEvent::Kind;
  const bool is_text = event.kind == Kind::kText;
  // Typed letters come together; everything else that acts has a frame of its own.
  if (has_acted && !(is_text && !state_.text.empty())) return false;
  switch (event.kind) {
    case Kind::kMove:
      state_.mouse = event.at;
      return true;
    case Kind::kLeave:
      state_.mouse = {-1.0F, -1.0F};
      return true;
    case Kind::kPress:
      press(event);
      break;
    case Kind::kRelease:
      state_.mouse = event.at;
      state_.down[static_cast<std::size_t>(event.button)] = false;
      state_.released[static_cast<std::size_t>(event.button)] = true;
      break;
    case Kind::kWheel:
      state_.wheel = state_.wheel + event.at;
      break;
    case Kind::kChord:
      state_.chord = event.chord;
      break;
    case Kind::kText:
      state_.text += event.text;
      break;
  }
  if (!is_text && event.kind != Kind::kRelease) {
    state_.control = event.chord.control;
    state_.shift = event.chord.shift;
    state_.alt = event.chord.alt;
  }
  has_acted = true;
  return true;
}

void InputQueue::press(const InputEvent& event) {
  state_.mouse = event.at;
  state_.down[static_cast<std::size_t>(event.button)] = true;
  state_.pressed[static_cast<std::size_t>(event.button)] = true;
  if (event.button != MouseButton::kLeft) return;
  const Point far = event.at - last_press_;
  state_.double_click = state_.seconds - last_press_seconds_ < kDoubleClickSeconds &&
                        std::hypot(far.x, far.y) < kDoubleClickDistance;
  // A third click begins anew.
  last_press_seconds_ = state_.double_click ? -1e6 : state_.seconds;
  last_press_ = event.at;
}

}  // namespace trainscope::gui
