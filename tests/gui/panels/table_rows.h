// Counts what a table shows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "gui/ui/items.h"

namespace trainscope::gui::test {

// Rows whose paths begin so, without what is in their cells.
inline std::size_t rows_below(const ItemRegistry& items, std::string_view prefix) {
  return static_cast<std::size_t>(std::ranges::count_if(
      items.below(prefix), [](const Item* item) { return item->kind == ItemKind::kRow; }));
}

}  // namespace trainscope::gui::test
