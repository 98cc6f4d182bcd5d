// Loops over tensors with different strides: broadcasts, slices, permutations. What kernels of
// every back end plan with.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/api/tensor_view.h"

namespace trainscope {

inline constexpr int kMaxOperands = 4;
using Strides = std::array<std::int64_t, kMaxRank>;
using Offsets = std::array<std::int64_t, kMaxOperands>;

// A box of elements that up to kMaxOperands tensors are walked over together. add_axis() drops axes
// of size 1 and merges an axis into the one before it where all operands allow, so that rows, the
// runs along the last axis, are as long as possible.
struct StridedLoop {
  int rank = 0;
  int operands = 0;
  std::int64_t elements = 1;
  Strides sizes{};
  std::array<Strides, kMaxOperands> strides{};  // [operand][axis], in elements

  void add_axis(std::int64_t size, const Offsets& axis_strides) {
    elements *= size;
    if (size == 1) return;
    bool merges = rank > 0;
    const auto last = static_cast<std::size_t>(std::max(0, rank - 1));
    for (std::size_t k = 0; k < static_cast<std::size_t>(operands); ++k) {
      merges = merges && strides[k][last] == size * axis_strides[k];
    }
    const auto axis = merges ? last : static_cast<std::size_t>(rank++);
    sizes[axis] = merges ? sizes[axis] * size : size;
    for (std::size_t k = 0; k < static_cast<std::size_t>(operands); ++k) {
      strides[k][axis] = axis_strides[k];
    }
  }

  // Of operand k along the rows.
  std::int64_t row_stride(int k) const {
    return rank == 0 ? 0 : strides[static_cast<std::size_t>(k)][static_cast<std::size_t>(rank - 1)];
  }
};

// Strides of a dense row-major tensor.
inline Strides dense_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

// Strides with which a tensor is read as if it had shape `to`: 0 along broadcast axes.
inline Strides broadcast_strides(const Shape& from, const Shape& to) {
  Strides strides{};
  const Strides dense = dense_strides(from);
  const int lead = to.rank - from.rank;
  for (int axis = lead; axis < to.rank; ++axis) {
    if (from[axis - lead] == 1) continue;
    strides[static_cast<std::size_t>(axis)] = dense[static_cast<std::size_t>(axis - lead)];
  }
  return strides;
}

// The loop of an elementwise kernel: operand 0 is the dense output, the others are its inputs.
inline StridedLoop broadcast_loop(const Shape& output, std::span<const TensorView> inputs) {
  StridedLoop loop{.operands = static_cast<int>(inputs.size()) + 1};
  std::array<Strides, kMaxOperands> strides{dense_strides(output)};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    strides[i + 1] = broadcast_strides(inputs[i].shape(), output);
  }
  for (int axis = 0; axis < output.rank; ++axis) {
    Offsets axis_strides{};
    for (std::size_t k = 0; k <= inputs.size(); ++k) {
      axis_strides[k] = strides[k][static_cast<std::size_t>(axis)];
    }
    loop.add_axis(output[axis], axis_strides);
  }
  return loop;
}

}  // namespace trainscope
