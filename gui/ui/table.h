// Tables of any length: what is seen of them is drawn, sorted by their heads, walked by arrows. Tab
// comes to the rows as to one item, as does a click on one of them.
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
  bool had_focus = false;          // in the frame before
};

struct TableLook {
  std::span<const TableColumn> columns;
  std::size_t rows = 0;
  std::optional<std::size_t> chosen = {};  // row
  bool scrolls_to_chosen = false;          // in this frame
  bool yields = false;                     // keys are another one's, unless it has the focus
};

struct TableResponse {
  bool sorted = false;                        // the state says how
  std::optional<std::size_t> clicked = {};    // with either button, or by arrows
  std::optional<std::size_t> activated = {};  // double-clicked, or Enter
  std::optional<std::size_t> hovered = {};
};

struct TableCell {
  std::size_t row = 0;
  std::size_t column = 0;
  Rect rect = {};
};

// Whether the rows of the table of this name, in the scope of now, have the focus.
bool has_focus(Ui& ui, std::string_view table);

// Columns that find no place are left out, the last ones first.
TableResponse table(Ui& ui, std::string_view name, const Rect& rect, const TableLook& look,
                    TableState& state, const std::function<void(Ui&, const TableCell&)>& draw);

}  // namespace trainscope::gui
