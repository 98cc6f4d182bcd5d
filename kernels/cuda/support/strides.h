// Strided loops on the device: which elements an item of a loop is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/api/strided_loop.h"
#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

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
