// The gradients of LayerNormalization and RMSNormalization. Statistics are formed again from x: the
// row is read anyway.
#include <algorithm>
#include <cstdint>
#include <span>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/norm/layer_norm_grad.h"
#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/norm/row_norm.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

// --- LayerNormalizationGrad(dy, x, scale [, addend]) -> dx + addend [, dscale [, dbias]] ---------
// A block computes several rows. Its threads own columns, for which each keeps the sums of
// dy * (normalized x) and of dy over the block's rows; a second kernel adds the blocks up.

// Blocks of rows; their number depends on nothing but the number of rows.
struct RowBlocks {
  std::int64_t count = 1;
  std::int64_t rows = 0;  // of a block; the last one may have fewer
};
RowBlocks row_blocks(std::int64_t rows) {
  const std::int64_t wanted = std::clamp<std::int64_t>(rows / 8, 1, 4 * 132);
  const std::int64_t each = (rows + wanted - 1) / wanted;
  return {.count = each == 0 ? 1 : (rows + each - 1) / each, .rows = each};
}

// Sums of a block are in shared memory where they fit, else in their place in the workspace.
constexpr std::int64_t kMostSharedWidth = 4096;

// Sums over the row that begins at `at`; on the way each thread adds to the sums of its columns,
// unless these are null.
template <int kWidth, typename T>
__device__ void add_row(const LayerNormGrad<T>& a, std::int64_t at,
                        const RowNorm<Computed<T>>& norm, float* column_sums,
                        Computed<T> (&row_sums)[2]) {
  for (std::int64_t i = BlockTeam::rank() * kWidth; i < a.width; i += BlockTeam::size() * kWidth) {
    const auto x = row_pack<kWidth>(a.x + at, i);
    const auto dy = row_pack<kWidth>(a.dy + at, i);
    const auto scale = row_pack<kWidth>(a.scale, i);
    Pack<float, kWidth> dscale{};
    Pack<float, kWidth> dbias{};
    if (column_sums != nullptr) {
      dscale = row_pack<kWidth>(column_sums, i);
      dbias = row_pack<kWidth>(column_sums + a.width, i);
    }
    add_gradients(norm, x, dy, scale, dscale.values, dbias.values, row_sums);
    if (column_sums == nullptr) continue;
    put_row_pack(column_sums, i, dscale);
    put_row_pack(column_sums + a.width, i, dbias);
  }
}

// dx of a row whose sums are known.
template <int kWidth, typename T>
__device__ void write_gradient_row(const LayerNormGrad<T>& a, std::int64_t at,
                                   const RowNorm<Computed<T>>& norm,
                                   const Computed<T> (&row_sums)[2]) {
  for (std::int64_t i = BlockTeam::rank() * kWidth; i < a.width; i += BlockTeam::size() * kWidth) {
    const auto x = row_pack<kWidth>(a.x + at, i);
    const auto dy = row_pack<kWidth>(a.dy + at, i);
    const auto scale = row_pack<kWidth>(a.scale, i);
    Pack<T, kWidth> addend{};
    if (a.addend != nullptr) addend = row_pack<kWidth>(a.addend + at, i);
    put_row_pack(a.dx + at, i, gradient_pack(a, norm, row_sums, x, dy, scale, addend));
  }
}

// Bytes: dy, x and the addend read once (from L1 dy again, x twice more, the scale twice a row), dx
// written once, 8 * width of sums a block.
template <int kWidth, typename T>
__global__ void __launch_bounds__(kTeamThreads) layer_norm_grad_rows(const LayerNormGrad<T> a) {
  using C = Computed<T>;
  TRAINSCOPE_SHARED_DYNAMIC(float, shared);
  float* const of_block =
      a.sums == nullptr ? nullptr : a.sums + std::int64_t{blockIdx.x} * 2 * a.width;
  const bool in_shared = of_block != nullptr && a.width <= kMostSharedWidth;
  float* const sums = in_shared ? shared : of_block;  // [2, width], or null
  // Each thread has the columns of its packs, here and in every row.
  const std::int64_t first = BlockTeam::rank() * kWidth;
  const std::int64_t step = BlockTeam::size() * kWidth;
  for (std::int64_t i = first; sums != nullptr && i < a.width; i += step) {
    for (int k = 0; k < kWidth; ++k) {
      sums[i + k] = 0.0F;
      sums[a.width + i + k] = 0.0F;
    }
  }
  const RowsOfBlock<T> rows(a);
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const std::int64_t at = r * a.width;
    const RowNorm<C> norm(
        row_statistics<BlockTeam, kWidth>(a.x + at, a.width, a.epsilon, a.centered));
    C row_sums[2] = {0, 0};
    add_row<kWidth>(a, at, norm, sums, row_sums);
    block_sums(row_sums);
    write_gradient_row<kWidth>(a, at, norm, row_sums);
  }
  for (std::int64_t i = first; in_shared && i < a.width; i += step) {
    for (int k = 0; k < kWidth; ++k) {
      of_block[i + k] = sums[i + k];
      of_block[a.width + i + k] = sums[a.width + i + k];
    }
  }
}

constexpr unsigned kSumColumns = 32;
constexpr unsigned kSumRows = 8;

// sums [blocks, 2, width] -> dscale [width], dbias [width], either of them null. Threads
// [kSumRows, kSumColumns]: each adds every kSumRows-th block of its column, in double. Bytes: sums
// read once. FLOPs: 1 a sum.
template <typename C>
__global__ void __launch_bounds__(kSumColumns* kSumRows)
    add_norm_blocks(const float* sums, std::int64_t blocks, std::int64_t width, C* dscale,
                    C* dbias) {
  TRAINSCOPE_SHARED(double, of_rows, kSumColumns* kSumRows);
  const std::int64_t column = std::int64_t{blockIdx.x} * kSumColumns + threadIdx.x;
  double sum = 0.0;
  if (column < 2 * width) {
    for (std::int64_t block = threadIdx.y; block < blocks; block += kSumRows) {
      sum += static_cast<double>(sums[block * 2 * width + column]);
    }
  }
  of_rows[threadIdx.y * kSumColumns + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= 2 * width) return;
  for (unsigned row = 1; row < kSumRows; ++row) sum += of_rows[row * kSumColumns + threadIdx.x];
  C* const to = column < width ? dscale : dbias;
  if (to != nullptr) to[column < width ? column : column - width] = static_cast<C>(sum);
}

bool wants_norm_sums(std::span<const TensorView> outputs) {
  return has_view(outputs, 1) || has_view(outputs, 2);
}

Prepared prepare_layer_norm_grad(const PrepareArgs& args) {
  if (!wants_norm_sums(args.outputs)) return {};
  const RowLayout layout = row_layout(args.params, args.inputs[1].shape());
  const auto sums = static_cast<std::size_t>(row_blocks(layout.rows).count * 2 * layout.width);
  return {.workspace_bytes = sums * sizeof(float), .state = nullptr};
}

// Threads of a block, whole warps: no more than a row has packs.
unsigned threads_for_row(std::int64_t packs) {
  const std::int64_t warps = (packs + kWarp - 1) / kWarp;
  return static_cast<unsigned>(std::clamp<std::int64_t>(warps * kWarp, kWarp, kTeamThreads));
}

template <typename T>
LayerNormGrad<T> layer_norm_grad(const RunArgs& args, const RowLayout& layout) {
  const auto& params = std::get<NormParams>(args.params);
  auto* sums = wants_norm_sums(args.outputs) ? static_cast<float*>(args.workspace) : nullptr;
  return {.dy = args.inputs[0].as<const T>(),
          .x = args.inputs[1].as<const T>(),
          .scale = args.inputs[2].as<const Computed<T>>(),
          .addend = data_or_null<const T>(args.inputs, 3),
          .dx = args.outputs[0].as<T>(),
          .sums = sums,
          .rows = layout.rows,
          .width = layout.width,
          .rows_of_block = row_blocks(layout.rows).rows,
          .epsilon = params.epsilon,
          .centered = params.centered};
}

template <typename T>
void run_layer_norm_grad(const RunArgs& args) {
  using C = Computed<T>;
  const RowLayout layout = row_layout(args.params, args.inputs[1].shape());
  const std::int64_t blocks = row_blocks(layout.rows).count;
  const LayerNormGrad<T> grad = layer_norm_grad<T>(args, layout);
  const bool in_shared = grad.sums != nullptr && layout.width <= kMostSharedWidth;
  Grid grid{
      .blocks = dim3(static_cast<unsigned>(blocks)),
      .threads = dim3(kNormWarps * kWarp),
      .shared_bytes = (in_shared ? 2 * static_cast<std::size_t>(layout.width) : 0) * sizeof(float)};
  const bool held = with_lane_columns<kPackOf<T>>(layout.width, [&]<int kPacks>() {
    launch(args.call, grid, layer_norm_grad_warps<kPackOf<T>, kPacks, T>, grad);
  });
  if (!held) {
    with_row_packs(layout.width, [&]<int kWidth>(RowPack<kWidth>) {
      grid.threads = dim3(threads_for_row(layout.width / kWidth));
      launch(args.call, grid, layer_norm_grad_rows<kWidth, T>, grad);
    });
  }
  if (grad.sums == nullptr) return;
  launch(args.call,
         {.blocks = team_blocks(2 * layout.width, kSumColumns),
          .threads = dim3(kSumColumns, kSumRows)},
         add_norm_blocks<C>, grad.sums, blocks, layout.width, data_or_null<C>(args.outputs, 1),
         data_or_null<C>(args.outputs, 2));
}

template <typename T>
void add_row_gradients_for(KernelTable& table) {
  const auto kernel = [](std::string_view name) {
    return Kernel{.name = name, .prepare = prepare_layer_norm_grad, .run = run_layer_norm_grad<T>};
  };
  table.add("LayerNormalizationGrad", kDTypeOf<T>, kernel("layer_norm_grad.cuda"));
  table.add("RMSNormalizationGrad", kDTypeOf<T>, kernel("rms_norm_grad.cuda"));
}

}  // namespace

void add_layer_norm_grad(KernelTable& table) {
  add_row_gradients_for<float>(table);
  add_row_gradients_for<BFloat16>(table);
  add_row_gradients_for<Float16>(table);
}

}  // namespace trainscope::cuda
