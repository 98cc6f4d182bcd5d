// Counts what a table shows, and clicks on its rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "gui/ui/items.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui::test {

// Rows whose paths begin so, without what is in their cells.
inline std::size_t rows_below(const ItemRegistry& items, std::string_view prefix) {
  return static_cast<std::size_t>(std::ranges::count_if(
      items.below(prefix), [](const Item* item) { return item->kind == ItemKind::kRow; }));
}

// A click while Shift is held. False where there is no such row.
inline bool shift_click(WindowDriver& window, std::string_view path) {
  using Kind = InputEvent::Kind;
  const Item* item = window.items().find(path);
  if (item == nullptr || item->seen.empty()) return false;
  const Point at = item->seen.center();
  InputQueue& input = window.app().input();
  input.push({.kind = Kind::kMove, .at = at});
  input.push({.kind = Kind::kPress, .at = at, .chord = {.shift = true}});
  input.push({.kind = Kind::kRelease, .at = at});
  window.step();
  return true;
}

}  // namespace trainscope::gui::test
