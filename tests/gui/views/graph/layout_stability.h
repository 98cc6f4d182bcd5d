// How far a layout of a stage is like that of the stage before it.
#pragma once

#include <cstddef>

#include "gui/views/graph/graph_layout.h"

namespace trainscope::gui::test {

// How far a layout kept what the one before it had, of nodes that are in both.
struct LayoutStability {
  std::size_t survivors = 0;
  std::size_t in_order = 0;   // of each block's column, as many as kept their order
  std::size_t near_rows = 0;  // moved at most one row against the nearest survivor of the column
};
LayoutStability stability_of(const GraphPicture& before, const GraphLayout& layout_before,
                             const GraphPicture& after, const GraphLayout& layout_after);

}  // namespace trainscope::gui::test
