// A tensor as [outer, size, inner] around one axis.
#pragma once

#include <cstdint>

#include "kernels/api/tensor_view.h"

namespace trainscope::cpu {

struct AxisLayout {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;

  std::int64_t lines() const { return outer * inner; }  // along the axis
  // Where line `line` begins; its elements are `inner` apart.
  std::int64_t begin_of(std::int64_t line) const {
    return line / inner * size * inner + line % inner;
  }
};

inline AxisLayout axis_layout(const Shape& shape, int axis) {
  AxisLayout layout{.size = shape[axis]};
  for (int a = 0; a < axis; ++a) layout.outer *= shape[a];
  for (int a = axis + 1; a < shape.rank; ++a) layout.inner *= shape[a];
  return layout;
}

}  // namespace trainscope::cpu
