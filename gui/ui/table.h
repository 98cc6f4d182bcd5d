// Tables of any length: what is seen of them is drawn, sorted by their heads, walked by arrows.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/ui/ui.h"

namespace trainscope::gui {

struct TableColumn {
  std::string_view name = {};  // in paths, and of the twin's column
  std::string_view title = {};
  float width = 0.0F;  // 0: what the others leave; of one column
  Align align = Align::kRight;
  std::string_view help = {};  // unit and definition
  bool sorts = true;
};

struct TableState {
  std::size_t sorted_by = 0;
  bool descending = true;
  std::vector<float> widths = {};  // by column, once somebody drags them
};

struct TableLook {
  std::span<const TableColumn> columns;
  std::size_t rows = 0;
  std::optional<std::size_t> chosen = {};  // row
  bool scrolls_to_chosen = false;          // in this frame
};

struct TableResponse {
  bool sorted = false;                        // the state says how
  std::optional<std::size_t> clicked = {};    // also by arrows
  std::optional<std::size_t> activated = {};  // double-clicked, or Enter
  std::optional<std::size_t> right_clicked = {};
  std::optional<std::size_t> hovered = {};
};

struct TableCell {
  std::size_t row = 0;
  std::size_t column = 0;
  Rect rect = {};
};

// Columns that find no place are left out, the last ones first.
TableResponse table(Ui& ui, std::string_view name, const Rect& rect, const TableLook& look,
                    TableState& state, const std::function<void(Ui&, const TableCell&)>& draw);

}  // namespace trainscope::gui
