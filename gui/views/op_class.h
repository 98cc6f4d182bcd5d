// Classes of ops as the window shows them: a place in legends and a colour each.
#pragma once

#include <cstddef>

#include "engine/core/op_class.h"

namespace trainscope::gui {

inline constexpr std::size_t kLegendPlaces = kOpClasses - 1;

// What is of no class, a copy, is shown with the other ops.
constexpr std::size_t legend_place(OpClass op_class) {
  const OpClass shown = op_class == OpClass::kUnstated ? OpClass::kOther : op_class;
  return static_cast<std::size_t>(shown) - 1;
}
constexpr OpClass class_at(std::size_t legend_place) {
  return static_cast<OpClass>(legend_place + 1);
}

}  // namespace trainscope::gui
