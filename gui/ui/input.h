// What the user does: events in a queue, of which each frame takes as many as it can tell apart, so
// that no click or key is lost however long a frame takes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "gui/draw/geometry.h"

namespace trainscope::gui {

// Printable keys are their ASCII character, letters in upper case.
enum class Key : std::uint16_t {
  kNone = 0,
  kSpace = ' ',
  kEscape = 256,
  kEnter,
  kTab,
  kBackspace,
  kDelete,
  kLeft,
  kRight,
  kUp,
  kDown,
  kHome,
  kEnd,
  kPageUp,
  kPageDown,
  kF1,  // to F12, one after the other
  kF12 = kF1 + 11,
};

// A key that goes down, with the modifiers that are held. Signs are what the layout makes of a key,
// without Shift: "?" and not "Shift+/".
struct Chord {
  Key key = Key::kNone;
  bool control = false;
  bool shift = false;
  bool alt = false;

  bool operator==(const Chord&) const = default;
};

// "Ctrl+Shift+P", "Alt+Left", "F1", "?".
std::string name_of(const Chord& chord);
std::optional<Chord> chord_named(std::string_view name);

enum class MouseButton : std::uint8_t { kLeft, kRight, kMiddle };
inline constexpr std::size_t kMouseButtons = 3;

struct InputEvent {
  enum class Kind : std::uint8_t { kMove, kPress, kRelease, kWheel, kChord, kText, kLeave };
  Kind kind = Kind::kMove;
  Point at = {};  // of the mouse in logical pixels; of the wheel its turns
  MouseButton button = MouseButton::kLeft;
  Chord chord = {};       // of kPress and kWheel the modifiers
  std::string text = {};  // UTF-8
};

// Of one frame.
struct Input {
  Point mouse = {-1.0F, -1.0F};
  Point moved = {};  // since the frame before
  Point wheel = {};  // turns: positive is up and left
  std::array<bool, kMouseButtons> down = {};
  std::array<bool, kMouseButtons> pressed = {};   // went down in this frame
  std::array<bool, kMouseButtons> released = {};  // went up
  bool double_click = false;
  bool control = false;  // held, as far as the last event tells
  bool shift = false;
  bool alt = false;
  std::optional<Chord> chord = {};
  std::string text = {};  // typed
  double seconds = 0.0;   // since the program began

  bool is_down(MouseButton button) const { return down[static_cast<std::size_t>(button)]; }
  bool is_pressed(MouseButton button) const { return pressed[static_cast<std::size_t>(button)]; }
  bool is_released(MouseButton button) const { return released[static_cast<std::size_t>(button)]; }
};

class InputQueue {
 public:
  void push(InputEvent event) { events_.push_back(std::move(event)); }
  bool empty() const { return events_.empty(); }
  // What the next frame is told, at this time.
  Input next(double seconds);

 private:
  // False where the event has to wait for the next frame.
  bool take(const InputEvent& event, bool& has_acted);
  void press(const InputEvent& event);

  std::deque<InputEvent> events_;
  Input state_;
  Point last_press_ = {-1e6F, -1e6F};
  double last_press_seconds_ = -1e6;
};

}  // namespace trainscope::gui
