// What a launch knows of a strided loop, made on the host.
#include <algorithm>
#include <bit>

#include "kernels/cuda/support/strides.h"

namespace trainscope::cuda {

Divisor::Divisor(std::uint32_t by) : divisor(by) {
  shift = by <= 1 ? 0U : static_cast<std::uint32_t>(std::bit_width(by - 1));
  const std::uint64_t rest = (std::uint64_t{1} << shift) - by;
  multiplier = static_cast<std::uint32_t>((rest << 32) / std::max<std::uint32_t>(by, 1) + 1);
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
