// Buttons, switches, sliders, splitters and scrolled areas.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/ui/ui.h"

namespace trainscope::gui {

struct ButtonLook {
  bool enabled = true;
  bool chosen = false;  // drawn as pressed
  bool primary = false;
  bool flat = false;  // no paper of its own until the mouse is there
  std::string_view tooltip = {};
  Fit fit = Fit::kWhole;
  Align align = Align::kCenter;
};
// True when it was pressed.
bool button(Ui& ui, std::string_view name, const Rect& rect, std::string_view label,
            const ButtonLook& look = {});
// As wide as its label needs.
float button_width(const Ui& ui, std::string_view label);

// A box with a check mark, and its label. True when it changed.
bool toggle(Ui& ui, std::string_view name, const Rect& rect, std::string_view label, bool& on,
            std::string_view tooltip = {});

// Buttons of which one is chosen; those with an empty label are left out. True when it changed.
bool tabs(Ui& ui, std::string_view name, const Rect& rect, std::span<const std::string_view> labels,
          std::size_t& chosen);
float tabs_width(const Ui& ui, std::span<const std::string_view> labels);

struct SliderRange {
  double least = 0.0;
  double greatest = 1.0;
  double step = 0.01;  // of one press of an arrow key
};
// True when it changed.
bool slider(Ui& ui, std::string_view name, const Rect& rect, double& value,
            const SliderRange& range, std::string_view text, std::string_view tooltip = {});

// A bar between two regions that is dragged, or moved by arrow keys: how far, in logical pixels.
enum class Axis : std::uint8_t { kHorizontal, kVertical };
float splitter(Ui& ui, std::string_view name, const Rect& rect, Axis moves_along);

struct MenuItem {
  std::string label = {};
  std::string key = {};  // shown at the right
  bool enabled = true;
  bool checked = false;
  bool line_above = false;
};
// A button that opens a list; the position of what was chosen in it in a frame before, or -1.
int menu_button(Ui& ui, std::string_view name, const Rect& rect, std::string_view label,
                std::span<const MenuItem> items, const ButtonLook& look = {});
// The same without a button: opened by open_menu().
void open_menu(Ui& ui, std::string_view name, Point at);
int menu(Ui& ui, std::string_view name, std::span<const MenuItem> items);

// A part of a tall content that is seen; `offset` is how far it is scrolled.
struct Scrolled {
  Rect view = {};  // without the bar
  float offset = 0.0F;
};
inline constexpr float kScrollbarWidth = kLeastControl;
Scrolled scrolled(Ui& ui, std::string_view name, const Rect& rect, float content_height);
// Scrolls so that [top, bottom) of the content is seen.
void scroll_to(Ui& ui, std::string_view name, float top, float bottom, float view_height);

}  // namespace trainscope::gui
