// One frame of the window: what controls and panels draw through, and ask what the user does.
//
// Items have paths: the scopes around them and a name of their own. What lasts from frame to frame
// (which item is held, has the keyboard, is scrolled) is kept by path in a UiMemory.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/draw/canvas.h"
#include "gui/draw/theme.h"
#include "gui/ui/input.h"
#include "gui/ui/items.h"
#include "gui/ui/quantity.h"

namespace trainscope::gui {

// What lies above something else takes the mouse from it.
inline constexpr int kPanelLayer = 0;
inline constexpr int kOverlayLayer = 1;  // a region that opens over another
inline constexpr int kPopupLayer = 2;
inline constexpr int kModalLayer = 3;  // palette, help, welcome

struct Cover {
  int layer = 0;
  Rect rect = {};
};

// A text that is being edited.
struct TextCursor {
  std::string path = {};   // of its field
  std::size_t at = 0;      // bytes before the cursor
  std::size_t anchor = 0;  // the other end of what is selected
};

// What is remembered from one frame to the next.
struct UiMemory {
  std::string held = {};     // the item that the mouse button is held on
  std::string focus = {};    // the item that keys go to
  std::string hovered = {};  // and since when
  double hovered_since = 0.0;
  std::string open_popup = {};          // the item whose popup is open
  std::string focus_before_popup = {};  // that had the keyboard when it opened
  Rect popup_anchor = {};
  std::string chosen_menu = {};  // what was chosen in a menu, until its owner asks
  int chosen_item = -1;
  std::string region = {};  // that keys for panels go to
  std::map<std::string, float> scroll = {};
  TextCursor cursor = {};
  std::vector<Cover> covers = {};  // of the frame before
  std::string clipboard = {};      // what was copied in this frame; empty: nothing
  std::string pasted = {};         // what the system's clipboard has

  // The focus goes back to where it was, unless it has gone elsewhere.
  void close_popup();
};

enum class Align : std::uint8_t { kLeft, kCenter, kRight };
// What becomes of a text that is wider than its place. kWhole is for our own words, which must fit.
enum class Fit : std::uint8_t { kWhole, kMiddle, kEnd };

struct TextLook {
  Face face = Face::kText;
  std::optional<Color> color = {};  // default: the theme's ink
  Align align = Align::kLeft;
  Fit fit = Fit::kWhole;
  bool hides_unit = false;  // of a number: the column's head has it
};

// What the user does with an item.
struct Response {
  bool hovered = false;
  bool held = false;
  bool clicked = false;  // or its key was pressed
  bool double_clicked = false;
  bool right_clicked = false;
  bool middle_clicked = false;
  bool focused = false;
  Point dragged = {};  // while it is held: in this frame
  Point wheel = {};
};

struct HitLook {
  ItemKind kind = ItemKind::kButton;
  std::string_view label = {};
  std::string_view value = {};
  bool enabled = true;
  bool focusable = true;
  bool fits = true;
  std::optional<Color> ink = {};
};

class Ui {
 public:
  Ui(Canvas& canvas, const Theme& theme, Input& input, UiMemory& memory, ItemRegistry& items)
      : canvas_(canvas),
        theme_(theme),
        input_(input),
        memory_(memory),
        items_(items),
        paper_(theme.background) {}

  Canvas& canvas() { return canvas_; }
  const Theme& theme() const { return theme_; }
  const Input& input() const { return input_; }
  UiMemory& memory() { return memory_; }
  ItemRegistry& items() { return items_; }
  int layer() const { return layer_; }
  Color paper() const { return paper_; }

  // Sizes that follow the text's.
  float line_height(Face face = Face::kText) const { return canvas_.metrics(face).line_height; }
  float row_height() const;  // of table rows and controls, at least kLeastControl
  float width(std::string_view text, Face face = Face::kText) const {
    return canvas_.text_width(text, face);
  }

  // Draws text in the middle of the rectangle's height.
  void text(const Rect& rect, std::string_view text, const TextLook& look = {});
  // The first of these that the rectangle has room for, or nothing: our own words, where the place
  // may be too small for them.
  void fitting_text(const Rect& rect, std::initializer_list<std::string_view> texts,
                    const TextLook& look = {});
  // Lines no wider than the rectangle; returns the height that they take. Beyond the rectangle's
  // bottom nothing is drawn: our own words (kWhole) must fit, others end in an ellipsis there.
  float paragraph(const Rect& rect, std::string_view text, const TextLook& look = {});
  // Right-aligned, the unit behind the digits; `fact` as in Item.
  void number(std::string_view name, const Rect& rect, const Quantity& quantity,
              std::string_view fact = {}, const TextLook& look = {.face = Face::kNumber});
  // The text as it fits into the width.
  std::string shortened(std::string_view text, float width, const TextLook& look) const;

  // An item that takes the mouse and keys.
  Response hit(std::string_view name, const Rect& rect, const HitLook& look);
  // Shown near the mouse after a moment, when the last item is hovered.
  void tooltip(const Response& response, std::string_view text);

  // Whether the button went down within the rectangle, and nothing lies over it there.
  bool is_pressed_in(const Rect& rect, MouseButton button) const {
    return input_.is_pressed(button) && rect.contains(input_.mouse) && reaches(input_.mouse);
  }

  // The chord of this frame, if it is this one, and nobody had it yet. Printable keys without Ctrl
  // and Alt are typed text, and nobody's while a text field is edited.
  bool take(const Chord& chord);
  bool take(std::string_view chord_name);
  std::string take_text();

  // A popup that nobody shows in a frame is closed at its end: its owner is not drawn any more.
  void show_popup() { shows_popup_ = true; }
  // Drawn when all else of the frame is, above it.
  void later(int layer, std::function<void(Ui&)> draw);
  // Takes the mouse from what lies in the rectangle on lower layers.
  void cover(const Rect& rect);
  void finish();  // draws what is left for later, the tooltip, and moves the focus by Tab

  std::string path_of(std::string_view name) const;
  // Of the region around: it has the keys, and nothing lies over it.
  bool region_has_keys() const {
    return memory_.region == region_ && memory_.open_popup.empty() &&
           (!has_modal_ || layer_ >= kModalLayer);
  }
  // It has the keys from now on.
  void take_region() {
    if (!region_.empty()) memory_.region = region_;
  }
  void set_modal(bool is_open) { has_modal_ = is_open; }
  bool edits_text() const { return !memory_.cursor.path.empty(); }

  void copy(std::string text) { memory_.clipboard = std::move(text); }

 private:
  friend class Scope;
  friend class Region;
  friend class Clip;
  friend class Surface;

  bool reaches(Point point) const;
  void record(Item item) { items_.add(std::move(item)); }
  Response pointed(const std::string& path, const Rect& rect, const HitLook& look, bool inside);
  void move_focus();
  void draw_tooltip();

  Canvas& canvas_;
  const Theme& theme_;
  Input& input_;
  UiMemory& memory_;
  ItemRegistry& items_;
  std::string scope_;
  std::string region_;
  Color paper_;
  Moves moves_ = Moves::kNothing;
  int layer_ = kPanelLayer;
  bool has_modal_ = false;
  bool shows_popup_ = false;
  int labels_ = 0;  // so far, for their paths
  std::vector<Cover> covers_;
  struct Later {
    int layer = 0;
    std::string scope = {};
    std::function<void(Ui&)> draw = {};
  };
  std::vector<Later> later_;
  std::string hovered_;
  std::string tooltip_;
};

// Items within have paths that begin with the name.
class Scope {
 public:
  Scope(Ui& ui, std::string_view name);
  ~Scope() { ui_.scope_.resize(size_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Ui& ui_;
  std::size_t size_;
};

class Clip {
 public:
  Clip(Ui& ui, const Rect& rect, Moves moves = Moves::kNothing);
  ~Clip();
  Clip(const Clip&) = delete;
  Clip& operator=(const Clip&) = delete;

 private:
  Ui& ui_;
  Moves before_;
};

// Fills a rectangle, and is the paper of what is drawn within.
class Surface {
 public:
  Surface(Ui& ui, const Rect& rect, Color color, float radius = 0.0F);
  ~Surface() { ui_.paper_ = before_; }
  Surface(const Surface&) = delete;
  Surface& operator=(const Surface&) = delete;

 private:
  Ui& ui_;
  Color before_;
};

// A part of the window that F6 goes to, and that has keys for its panel.
class Region {
 public:
  Region(Ui& ui, std::string_view name, const Rect& rect, int layer = kPanelLayer);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  Ui& ui_;
  std::string before_;
  int layer_before_;
};

}  // namespace trainscope::gui
