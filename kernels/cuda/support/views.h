// Operands that a call may leave out.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/api/tensor_view.h"

namespace trainscope::cuda {

inline bool has_view(std::span<const TensorView> views, std::size_t k) {
  return k < views.size() && views[k].present;
}
// Null where it is left out.
template <typename T>
T* data_or_null(std::span<const TensorView> views, std::size_t k) {
  return has_view(views, k) ? views[k].as<T>() : nullptr;
}

}  // namespace trainscope::cuda
