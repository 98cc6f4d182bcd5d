// Plans of strided loops, made on the host.
#include <algorithm>
#include <bit>

#include "kernels/cuda/support/strides.h"

namespace trainscope::cuda {

Strides dense_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Strides broadcast_strides(const Shape& from, const Shape& to) {
  Strides strides{};
  const Strides dense = dense_strides(from);
  const int lead = to.rank - from.rank;
  for (int axis = lead; axis < to.rank; ++axis) {
    if (from[axis - lead] == 1) continue;
    strides[static_cast<std::size_t>(axis)] = dense[static_cast<std::size_t>(axis - lead)];
  }
  return strides;
}

Divisor::Divisor(std::uint32_t by) : divisor(by) {
  shift = by <= 1 ? 0U : static_cast<std::uint32_t>(std::bit_width(by - 1));
  const std::uint64_t rest = (std::uint64_t{1} << shift) - by;
  multiplier = static_cast<std::uint32_t>((rest << 32) / std::max<std::uint32_t>(by, 1) + 1);
}

void StridedLoop::add_axis(std::int64_t size, const AxisStrides& axis_strides) {
  elements *= size;
  if (size == 1) return;
  bool merges = rank > 0;
  for (int k = 0; k < operands && merges; ++k) {
    const std::int64_t stride = axis_strides[static_cast<std::size_t>(k)];
    merges = strides[k][rank - 1] == size * stride;
  }
  const int axis = merges ? rank - 1 : rank++;
  sizes[axis] = merges ? sizes[axis] * size : size;
  for (int k = 0; k < operands; ++k) {
    strides[k][axis] = axis_strides[static_cast<std::size_t>(k)];
  }
}

StridedLoop broadcast_loop(const Shape& output, std::span<const TensorView> inputs) {
  StridedLoop loop{.operands = static_cast<int>(inputs.size()) + 1};
  std::array<Strides, kMaxOperands> strides{dense_strides(output)};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    strides[i + 1] = broadcast_strides(inputs[i].shape(), output);
  }
  for (int axis = 0; axis < output.rank; ++axis) {
    AxisStrides axis_strides{};
    for (std::size_t k = 0; k <= inputs.size(); ++k) {
      axis_strides[k] = strides[k][static_cast<std::size_t>(axis)];
    }
    loop.add_axis(output[axis], axis_strides);
  }
  return loop;
}

StridedPlaces::StridedPlaces(const StridedLoop& loop, int width) : rank(loop.rank) {
  std::int64_t count = loop.elements == 0 ? 0 : 1;
  for (int axis = 0; axis < rank && count > 0; ++axis) {
    const bool last = axis == rank - 1;
    const std::int64_t size = last ? (loop.sizes[axis] + width - 1) / width : loop.sizes[axis];
    sizes[axis] = Divisor(static_cast<std::uint32_t>(size));
    for (int k = 0; k < loop.operands; ++k) {
      strides[k][axis] = loop.strides[k][axis] * (last ? width : 1);
    }
    count *= size;
  }
  items = static_cast<std::uint32_t>(count);
}

}  // namespace trainscope::cuda
