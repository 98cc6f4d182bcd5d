// Masked-label compaction: CompactRows, which finds the rows whose labels count, and CompactMatMul,
// which computes only these. How many there are is read on the device.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/types.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

// --- CompactRows(labels [rows]) -> order [rows] [, count []] -------------------------------------

constexpr int kCompactThreads = 1024;

// How many threads before this one vote, and how many of the block do.
struct VotesBefore {
  int before;
  int all;
};
__device__ VotesBefore votes_before(bool vote) {
  TRAINSCOPE_SHARED(int, of_warps, kCompactThreads / kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const unsigned votes = __ballot_sync(kWholeWarp, vote ? 1 : 0);
  __syncthreads();  // the counts of a call before have been read
  if (lane == 0) of_warps[warp] = __popc(votes);
  __syncthreads();
  VotesBefore result{__popc(votes & ((1U << lane) - 1U)), 0};
  for (int w = 0; w < kCompactThreads / kWarp; ++w) {
    if (w < warp) result.before += of_warps[w];
    result.all += of_warps[w];
  }
  return result;
}

// One block, twice over the labels: it counts, then gives each row its place, in their order.
// Bytes: labels read twice, order written once.
template <typename T>
__global__ void __launch_bounds__(kCompactThreads)
    order_rows(const T* labels, std::int64_t rows, std::int64_t ignored, std::int64_t* order,
               std::int64_t* count) {
  std::int64_t counted = 0;
  for (std::int64_t begin = 0; begin < rows; begin += kCompactThreads) {
    const std::int64_t row = begin + threadIdx.x;
    counted += __syncthreads_count(row < rows && std::int64_t{labels[row]} != ignored ? 1 : 0);
  }
  if (threadIdx.x == 0 && count != nullptr) *count = counted;
  std::int64_t placed = 0;
  for (std::int64_t begin = 0; begin < rows; begin += kCompactThreads) {
    const std::int64_t row = begin + threadIdx.x;
    const bool counts = row < rows && std::int64_t{labels[row]} != ignored;
    const VotesBefore votes = votes_before(counts);
    const std::int64_t before = placed + votes.before;  // of this row, those that count
    if (row < rows) order[counts ? before : counted + (row - before)] = row;
    placed += votes.all;
  }
}

template <typename T>
void compact_rows(const RunArgs& args) {
  const std::int64_t rows = args.inputs[0].elements();
  launch(args.call, {.blocks = dim3(1), .threads = dim3(kCompactThreads)}, order_rows<T>,
         args.inputs[0].as<const T>(), rows, std::get<LossParams>(args.params).ignore_index,
         args.outputs[0].as<std::int64_t>(), data_or_null<std::int64_t>(args.outputs, 1));
}

// --- CompactMatMul(a, b, count [] [, bias]) -> y -------------------------------------------------

// y [m, n] = op(a) op(b) + bias, of the first `count` rows of `a`: with sums_rows these are what it
// sums over (a is transposed), else the rows of y, whose others become the bias or zeros.
template <typename T, typename Result>
struct CompactMatMul {
  const T* a;
  const T* b;
  const std::int64_t* count;
  const T* bias;  // [n], or null
  Result* y;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t a_row, a_column;  // strides of op(a) [m, k] and op(b) [k, n]
  std::int64_t b_row, b_column;
  bool sums_rows;
};

constexpr int kCompactTile = 64;   // rows and columns of y that a block computes
constexpr int kCompactDepth = 16;  // what is summed over in one go
constexpr int kCompactPitch = kCompactTile + 4;

// to[d][i] = element (first + i, depth + d), zeros outside.
template <typename T>
__device__ void load_compact(const T* from, std::int64_t first, std::int64_t rows,
                             std::int64_t stride, std::int64_t depth, std::int64_t depths,
                             std::int64_t depth_stride, float* to) {
  // Threads next to each other read what lies next to each other.
  const bool by_row = stride < depth_stride;
  for (int e = static_cast<int>(threadIdx.x); e < kCompactTile * kCompactDepth;
       e += static_cast<int>(kTeamThreads)) {
    const int i = by_row ? e % kCompactTile : e / kCompactDepth;
    const int d = by_row ? e / kCompactTile : e % kCompactDepth;
    const bool inside = first + i < rows && depth + d < depths;
    const std::int64_t at = (first + i) * stride + (depth + d) * depth_stride;
    to[d * kCompactPitch + i] = inside ? static_cast<float>(from[at]) : 0.0F;
  }
}

// A block computes 64 x 64 of y, a thread 4 x 4. FLOPs: 2 m n k of the rows that count. Bytes: a
// once for each 64 columns, b once for each 64 rows that count, y written once. Sums are formed in
// order, in f32. A multiprocessor has two blocks: unrolled loads take 128 registers.
template <typename T, typename Result>
__global__ void __launch_bounds__(kTeamThreads, 2)
    compact_matmul_tiles(const CompactMatMul<T, Result> g) {
  TRAINSCOPE_SHARED(float, left, kCompactDepth* kCompactPitch);
  TRAINSCOPE_SHARED(float, right, kCompactDepth* kCompactPitch);
  const std::int64_t all = g.sums_rows ? g.k : g.m;
  const std::int64_t given = *g.count;
  const std::int64_t count = given < 0 ? 0 : (given < all ? given : all);
  const std::int64_t m = g.sums_rows ? g.m : count;
  const std::int64_t k = g.sums_rows ? count : g.k;
  const std::int64_t columns = (g.n + kCompactTile - 1) / kCompactTile;
  const std::int64_t row = std::int64_t{blockIdx.x} / columns * kCompactTile;
  const std::int64_t column = std::int64_t{blockIdx.x} % columns * kCompactTile;
  const int own_row = static_cast<int>(threadIdx.x) / 16 * 4;
  const int own_column = static_cast<int>(threadIdx.x) % 16 * 4;
  float sums[4][4] = {};
  for (std::int64_t depth = 0; row < m && depth < k; depth += kCompactDepth) {
    __syncthreads();
    load_compact(g.a, row, m, g.a_row, depth, k, g.a_column, left);
    load_compact(g.b, column, g.n, g.b_column, depth, k, g.b_row, right);
    __syncthreads();
    for (int d = 0; d < kCompactDepth; ++d) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          sums[i][j] = std::fma(left[d * kCompactPitch + own_row + i],
                                right[d * kCompactPitch + own_column + j], sums[i][j]);
        }
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const std::int64_t r = row + own_row + i;
      const std::int64_t c = column + own_column + j;
      if (r >= g.m || c >= g.n) continue;
      const float bias = g.bias == nullptr ? 0.0F : static_cast<float>(g.bias[c]);
      g.y[r * g.n + c] = static_cast<Result>(r < m ? sums[i][j] + bias : bias);
    }
  }
}

template <typename T, typename Result>
void compact_matmul_to(const RunArgs& args) {
  const auto& params = std::get<MatMulParams>(args.params);
  const Shape& a = args.inputs[0].shape();
  const Shape& b = args.inputs[1].shape();
  const CompactMatMul<T, Result> matmul{.a = args.inputs[0].as<const T>(),
                                        .b = args.inputs[1].as<const T>(),
                                        .count = args.inputs[2].as<const std::int64_t>(),
                                        .bias = data_or_null<const T>(args.inputs, 3),
                                        .y = args.outputs[0].as<Result>(),
                                        .m = a[params.transpose_a ? 1 : 0],
                                        .n = b[params.transpose_b ? 0 : 1],
                                        .k = a[params.transpose_a ? 0 : 1],
                                        .a_row = params.transpose_a ? 1 : a[1],
                                        .a_column = params.transpose_a ? a[1] : 1,
                                        .b_row = params.transpose_b ? 1 : b[1],
                                        .b_column = params.transpose_b ? b[1] : 1,
                                        .sums_rows = params.transpose_a};
  const std::int64_t tiles =
      (matmul.m + kCompactTile - 1) / kCompactTile * ((matmul.n + kCompactTile - 1) / kCompactTile);
  launch(args.call, {.blocks = team_blocks(tiles, 1), .threads = dim3(kTeamThreads)},
         compact_matmul_tiles<T, Result>, matmul);
}

template <typename T>
void compact_matmul(const RunArgs& args) {
  if (args.outputs[0].type.dtype == DType::kF32) return compact_matmul_to<T, float>(args);
  compact_matmul_to<T, T>(args);
}

}  // namespace

void add_compact_rows(KernelTable& table) {
  table.add("CompactRows", DType::kI32,
            {.name = "compact_rows.cuda", .run = compact_rows<std::int32_t>});
  table.add("CompactRows", DType::kI64,
            {.name = "compact_rows.cuda", .run = compact_rows<std::int64_t>});
  for_types<float, BFloat16, Float16>([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("CompactMatMul", kDTypeOf<T>,
              {.name = "compact_matmul.cuda", .run = compact_matmul<T>});
  });
}

}  // namespace trainscope::cuda
