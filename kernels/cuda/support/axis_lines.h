// A tensor as [outer, size, inner] around one axis: lines along it.
#pragma once

#include <cstdint>

#include "kernels/api/tensor_view.h"
#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

struct AxisLines {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;

  __host__ __device__ std::int64_t lines() const { return outer * inner; }
  // Where line `line` begins; its elements are `inner` apart.
  __host__ __device__ std::int64_t begin_of(std::int64_t line) const {
    return line / inner * size * inner + line % inner;
  }
};

inline AxisLines axis_lines(const Shape& shape, int axis) {
  AxisLines lines{.size = shape[axis]};
  for (int a = 0; a < axis; ++a) lines.outer *= shape[a];
  for (int a = axis + 1; a < shape.rank; ++a) lines.inner *= shape[a];
  return lines;
}

}  // namespace trainscope::cuda
