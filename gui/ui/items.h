// What a frame drew that has a meaning: controls, labels, numbers, marks. Tests and keys find them
// by path, whatever their place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/draw/color.h"
#include "gui/draw/geometry.h"

namespace trainscope::gui {

enum class ItemKind : std::uint8_t {
  kButton,
  kToggle,
  kChoice,
  kSlider,
  kField,
  kSplitter,
  kRow,     // of a table or a tree
  kColumn,  // a table's head
  kArea,    // a plot or canvas that takes the mouse
  kMark,    // of data, in an area: small ones are reached by keys as well
  kLabel,
  kNumber,
};
std::string_view name_of(ItemKind kind);

// What the user can move below a clip: a text that the clip cuts is seen whole once it is moved.
enum class Moves : std::uint8_t { kNothing, kUpAndDown, kAll };

// What is clicked, in whatever way: it must be large enough.
constexpr bool is_control(ItemKind kind) { return kind < ItemKind::kArea; }

struct Item {
  std::string path = {};  // "kernels/table/row/12"
  ItemKind kind = ItemKind::kLabel;
  std::string label = {};  // as drawn
  std::string value = {};  // of what has one: "on", "12.5 ms"
  Rect rect = {};
  Rect seen = {};  // of it, within its clip
  Rect text = {};  // of a label or number: where it was drawn
  Moves moves = Moves::kNothing;
  bool enabled = true;
  bool focusable = false;
  int layer = 0;
  bool fits = true;  // the label is no wider than its place; of names that are shortened always
  Color ink = {};
  Color paper = {};
  // Of numbers: where the panel's twin has the same, as a JSON pointer ("/rows/12/ms") or a sum of
  // some ("/nodes_after - /nodes_before"), and the value, before it was rounded.
  std::string fact = {};
  double number = 0.0;
};

class ItemRegistry {
 public:
  // Labels, numbers and marks are only kept where somebody looks at them; marks also where Tab
  // goes to them.
  explicit ItemRegistry(bool keeps_all = false) : keeps_all_(keeps_all) {}

  bool keeps_all() const { return keeps_all_; }
  void begin_frame() { items_.clear(); }
  void add(Item item) { items_.push_back(std::move(item)); }
  const std::vector<Item>& items() const { return items_; }
  // The last one of this path; null where there is none.
  const Item* find(std::string_view path) const;
  // Those whose paths begin so.
  std::vector<const Item*> below(std::string_view prefix) const;

 private:
  bool keeps_all_;
  std::vector<Item> items_;
};

// What is wrong with a frame: labels that are too wide, or cut by their row or their clip, controls
// that are too small, ink that is hard to read. A line each.
inline constexpr float kBlankOfLine = 1.5F;    // above and below the letters of a line
inline constexpr float kLeastControl = 20.0F;  // logical pixels
inline constexpr double kLeastContrast = 4.5;
std::vector<std::string> faults_of(const ItemRegistry& registry);

}  // namespace trainscope::gui
