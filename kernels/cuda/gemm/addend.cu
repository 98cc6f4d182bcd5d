// One thread an element: columns * rows * sizeof(T) bytes are written, 1 FLOP each; what is read is
// small, or as much.
#include <algorithm>

#include "kernels/api/low_precision.h"
#include "kernels/cuda/gemm/addend.h"
#include "kernels/cuda/support/launch.h"

namespace trainscope::cuda {
namespace {

constexpr std::int64_t kThreads = 256;
constexpr std::int64_t kMostBlocks = 16384;  // beyond it a thread makes several elements

template <typename T, typename Scale>
__global__ void spread(T* to, const T* from, std::int64_t count, std::int64_t columns,
                       std::int64_t row_stride, std::int64_t column_stride, Scale scale) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const std::int64_t row = i / columns;
    const std::int64_t column = i - row * columns;
    const std::int64_t at = row * row_stride + column * column_stride;
    to[i] = static_cast<T>(from == nullptr ? Scale{0} : scale * static_cast<Scale>(from[at]));
  }
}

template <typename T>
void spread_as(const SpreadAddend& s, const CallContext& call) {
  const std::int64_t count = s.rows * s.columns;
  const std::int64_t blocks = std::min((count + kThreads - 1) / kThreads, kMostBlocks);
  launch(call, {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kThreads)},
         spread<T, Computed<T>>, static_cast<T*>(s.to), static_cast<const T*>(s.from), count,
         s.columns, s.row_stride, s.column_stride, static_cast<Computed<T>>(s.scale));
}

}  // namespace

void spread_addend(const SpreadAddend& spread, DType dtype, const CallContext& call) {
  switch (dtype) {
    case DType::kF64:
      return spread_as<double>(spread, call);
    case DType::kBF16:
      return spread_as<BFloat16>(spread, call);
    case DType::kF16:
      return spread_as<Float16>(spread, call);
    default:
      return spread_as<float>(spread, call);
  }
}

}  // namespace trainscope::cuda
