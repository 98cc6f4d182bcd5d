// Loops over tensors with different strides: broadcasts, slices, permutations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/api/tensor_view.h"
#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

inline constexpr int kMaxOperands = 4;
using Strides = std::array<std::int64_t, kMaxRank>;
using AxisStrides = std::array<std::int64_t, kMaxOperands>;

// Strides of a dense row-major tensor.
Strides dense_strides(const Shape& shape);
// Strides with which a tensor is read as if it had shape `to`: 0 along broadcast axes.
Strides broadcast_strides(const Shape& from, const Shape& to);

// Division by a number that is the same for all threads: the quotient is the upper half of a
// product (Granlund and Montgomery 1994). Of numbers below 2^31.
struct Divisor {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;

  Divisor() = default;
  explicit Divisor(std::uint32_t by);

  __device__ std::uint32_t divide(std::uint32_t x) const {
    return (__umulhi(x, multiplier) + x) >> shift;
  }
};

// A box of elements that `operands` tensors are walked over together, numbered in row-major order.
// add_axis() drops axes of size 1 and merges an axis into the one before it where all operands
// allow. Passed to kernels by value: 280 bytes.
struct StridedLoop {
  int rank = 0;
  int operands = 0;
  std::int64_t elements = 1;
  std::int64_t sizes[kMaxRank] = {};
  std::int64_t strides[kMaxOperands][kMaxRank] = {};  // [operand][axis], in elements

  void add_axis(std::int64_t size, const AxisStrides& axis_strides);
  // Of operand k along the last axis.
  std::int64_t row_stride(int k) const { return rank == 0 ? 0 : strides[k][rank - 1]; }
};

// The loop of an elementwise kernel: operand 0 is the dense output, the others are its inputs.
StridedLoop broadcast_loop(const Shape& output, std::span<const TensorView> inputs);

// Where item `number` of a loop lies in each operand. Items are elements, or packs of several along
// the last axis.
struct StridedPlaces {
  int rank = 0;
  std::uint32_t items = 1;
  Divisor sizes[kMaxRank];                            // in items
  std::int64_t strides[kMaxOperands][kMaxRank] = {};  // of items, in elements

  StridedPlaces() = default;
  // Packs of `width` elements; a rest makes another item. Only loops of one axis may have a rest.
  StridedPlaces(const StridedLoop& loop, int width);

  template <int kOperands>
  __device__ void find(std::uint32_t number, std::int64_t (&offsets)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) offsets[k] = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const std::uint32_t next = axis == 0 ? 0 : sizes[axis].divide(number);
      const std::uint32_t index = number - next * sizes[axis].divisor;
      for (int k = 0; k < kOperands; ++k) offsets[k] += index * strides[k][axis];
      number = next;
    }
  }
};

// Items that one launch can number.
inline constexpr std::int64_t kMaxItems = std::int64_t{1} << 31;

}  // namespace trainscope::cuda
