// Names of op classes.
#include "engine/core/op_class.h"

#include <array>

namespace trainscope {

std::string_view name_of(OpClass op_class) {
  constexpr std::array<std::string_view, kOpClasses> kNames = {
      "unstated",  "matmul",   "attention", "norm",      "activation", "pointwise",
      "reduction", "movement", "loss",      "optimizer", "other"};
  return kNames[static_cast<std::size_t>(op_class)];
}

}  // namespace trainscope
