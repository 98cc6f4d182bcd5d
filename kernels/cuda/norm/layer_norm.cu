// LayerNormalization, RMSNormalization (the same without a mean) and their gradients over rows
// [rows, width]. Statistics are formed in double, as those of the CPU are.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/norm/norm.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {
namespace {

struct RowLayout {
  std::int64_t rows = 1;
  std::int64_t width = 1;
};

RowLayout row_layout(const Params& params, const Shape& x) {
  const int axis = std::get<NormParams>(params).axis;
  RowLayout layout;
  for (int a = 0; a < axis; ++a) layout.rows *= x[a];
  for (int a = axis; a < x.rank; ++a) layout.width *= x[a];
  return layout;
}

struct RowStatistics {
  double mean;
  double inverse;  // 1 / sqrt(variance + epsilon)
};

// One pass over the row: sums of x - shift and its square, where the shift is an element of the
// row, so that nothing cancels. A row that is not centered has the mean 0.
template <class Team, typename T>
__device__ RowStatistics row_statistics(const T* x, std::int64_t width, double epsilon,
                                        bool centered) {
  if (width == 0) return {0.0, 0.0};
  const double shift = centered ? static_cast<double>(x[0]) : 0.0;
  double sums[2] = {0.0, 0.0};
  for (std::int64_t i = Team::rank(); i < width; i += Team::size()) {
    const double d = static_cast<double>(x[i]) - shift;
    sums[0] += d;
    sums[1] = std::fma(d, d, sums[1]);
  }
  Team::sums(sums);
  const double n = static_cast<double>(width);
  const double mean = centered ? sums[0] / n : 0.0;
  const double variance = sums[1] / n - mean * mean;
  // `variance > 0` would lose a NaN.
  return {shift + mean, 1.0 / std::sqrt((variance < 0.0 ? 0.0 : variance) + epsilon)};
}

// --- LayerNormalization(x, scale [, bias]) -> y [, mean, inverse deviation] ----------------------

template <typename T>
struct LayerNorm {
  const T* x;                // [rows, width]
  const Computed<T>* scale;  // [width]
  const Computed<T>* bias;   // [width], or null
  T* y;                      // [rows, width], may be x
  Computed<T>* mean;         // [rows], or null
  Computed<T>* inverse;      // [rows], or null
  std::int64_t rows;
  std::int64_t width;
  double epsilon;
  bool centered;
};

// Bytes: x read and y written once; the second reading of a row comes from L1.
template <class Team, typename T>
__global__ void __launch_bounds__(kTeamThreads) layer_norm_rows(const LayerNorm<T> a) {
  using C = Computed<T>;
  for (std::int64_t row = Team::first(); row < a.rows; row += Team::teams()) {
    const T* x = a.x + row * a.width;
    T* y = a.y + row * a.width;
    const RowStatistics statistics = row_statistics<Team>(x, a.width, a.epsilon, a.centered);
    const C mean = static_cast<C>(statistics.mean);
    const C inverse = static_cast<C>(statistics.inverse);
    if (Team::rank() == 0) {
      if (a.mean != nullptr) a.mean[row] = mean;
      if (a.inverse != nullptr) a.inverse[row] = inverse;
    }
    for (std::int64_t i = Team::rank(); i < a.width; i += Team::size()) {
      const C scaled = (static_cast<C>(x[i]) - mean) * inverse * a.scale[i];
      y[i] = static_cast<T>(a.bias == nullptr ? scaled : scaled + a.bias[i]);
    }
  }
}

template <typename T>
void run_layer_norm(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<NormParams>(args.params);
  const RowLayout layout = row_layout(args.params, args.inputs[0].shape());
  const LayerNorm<T> norm{.x = args.inputs[0].as<const T>(),
                          .scale = args.inputs[1].as<const C>(),
                          .bias = data_or_null<const C>(args.inputs, 2),
                          .y = args.outputs[0].as<T>(),
                          .mean = data_or_null<C>(args.outputs, 1),
                          .inverse = data_or_null<C>(args.outputs, 2),
                          .rows = layout.rows,
                          .width = layout.width,
                          .epsilon = params.epsilon,
                          .centered = params.centered};
  with_team(layout.rows, layout.width, [&]<class Team>(Team, const Grid& grid) {
    launch(args.call, grid, layer_norm_rows<Team, T>, norm);
  });
}

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

template <typename T>
struct LayerNormGrad {
  const T* dy;               // [rows, width]
  const T* x;                // [rows, width]
  const Computed<T>* scale;  // [width]
  const T* addend;           // [rows, width], or null
  T* dx;                     // [rows, width], may be dy, x or the addend
  float* sums;               // [blocks, 2, width], or null: nobody asks for them
  std::int64_t rows;
  std::int64_t width;
  std::int64_t rows_of_block;
  double epsilon;
  bool centered;
};

// dx of one row, whose sums over the row are g and gx: of dy * scale, and that times normalized x.
template <typename T>
__device__ void write_gradient_row(const LayerNormGrad<T>& a, std::int64_t at, Computed<T> mean,
                                   Computed<T> inverse, const Computed<T> (&row)[2]) {
  using C = Computed<T>;
  const C mean_g = a.centered ? row[0] / static_cast<C>(a.width) : C{0};
  const C mean_gx = row[1] / static_cast<C>(a.width);
  for (std::int64_t i = BlockTeam::rank(); i < a.width; i += BlockTeam::size()) {
    const C normalized = (static_cast<C>(a.x[at + i]) - mean) * inverse;
    const C g = static_cast<C>(a.dy[at + i]) * a.scale[i];
    const C dx = inverse * (g - mean_g - normalized * mean_gx);
    a.dx[at + i] = static_cast<T>(a.addend == nullptr ? dx : static_cast<C>(a.addend[at + i]) + dx);
  }
}

// Bytes: dy, x and the addend read once (again from L1), dx written once, 8 * width of sums a
// block.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) layer_norm_grad_rows(const LayerNormGrad<T> a) {
  using C = Computed<T>;
  TRAINSCOPE_SHARED_DYNAMIC(float, shared);
  float* const of_block =
      a.sums == nullptr ? nullptr : a.sums + std::int64_t{blockIdx.x} * 2 * a.width;
  float* const sums = a.width <= kMostSharedWidth ? shared : of_block;  // [2, width]
  if (of_block != nullptr) {
    for (std::int64_t i = BlockTeam::rank(); i < a.width; i += BlockTeam::size()) {
      sums[i] = 0.0F;
      sums[a.width + i] = 0.0F;
    }
  }
  const std::int64_t begin = std::int64_t{blockIdx.x} * a.rows_of_block;
  const std::int64_t end = begin + a.rows_of_block < a.rows ? begin + a.rows_of_block : a.rows;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = row * a.width;
    const RowStatistics statistics =
        row_statistics<BlockTeam>(a.x + at, a.width, a.epsilon, a.centered);
    const C mean = static_cast<C>(statistics.mean);
    const C inverse = static_cast<C>(statistics.inverse);
    C row_sums[2] = {0, 0};
    for (std::int64_t i = BlockTeam::rank(); i < a.width; i += BlockTeam::size()) {
      const C normalized = (static_cast<C>(a.x[at + i]) - mean) * inverse;
      const C dy = static_cast<C>(a.dy[at + i]);
      const C g = dy * a.scale[i];
      row_sums[0] += g;
      row_sums[1] += g * normalized;
      if (of_block == nullptr) continue;
      sums[i] += dy * normalized;
      sums[a.width + i] += dy;
    }
    block_sums(row_sums);
    write_gradient_row(a, at, mean, inverse, row_sums);
  }
  if (of_block == nullptr || sums == of_block) return;
  for (std::int64_t i = BlockTeam::rank(); i < a.width; i += BlockTeam::size()) {
    of_block[i] = sums[i];
    of_block[a.width + i] = sums[a.width + i];
  }
}

constexpr unsigned kSumColumns = 32;
constexpr unsigned kSumRows = 8;

// sums [blocks, 2, width] -> dscale [width], dbias [width], either of them null. Threads
// [kSumRows, kSumColumns]: each adds every kSumRows-th block of its column, in double.
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

// Threads of a block, whole warps: no more than a row has elements.
unsigned threads_for_row(std::int64_t width) {
  const std::int64_t warps = (width + kWarp - 1) / kWarp;
  return static_cast<unsigned>(std::clamp<std::int64_t>(warps * kWarp, kWarp, kTeamThreads));
}

template <typename T>
void run_layer_norm_grad(const RunArgs& args) {
  using C = Computed<T>;
  const auto& params = std::get<NormParams>(args.params);
  const RowLayout layout = row_layout(args.params, args.inputs[1].shape());
  const RowBlocks blocks = row_blocks(layout.rows);
  const bool with_sums = wants_norm_sums(args.outputs);
  auto* sums = with_sums ? static_cast<float*>(args.workspace) : nullptr;
  const bool in_shared = with_sums && layout.width <= kMostSharedWidth;
  const auto shared_bytes = static_cast<std::size_t>(in_shared ? 2 * layout.width : 0);
  launch(args.call,
         {.blocks = dim3(static_cast<unsigned>(blocks.count)),
          .threads = dim3(threads_for_row(layout.width)),
          .shared_bytes = shared_bytes * sizeof(float)},
         layer_norm_grad_rows<T>,
         LayerNormGrad<T>{.dy = args.inputs[0].as<const T>(),
                          .x = args.inputs[1].as<const T>(),
                          .scale = args.inputs[2].as<const C>(),
                          .addend = data_or_null<const T>(args.inputs, 3),
                          .dx = args.outputs[0].as<T>(),
                          .sums = sums,
                          .rows = layout.rows,
                          .width = layout.width,
                          .rows_of_block = blocks.rows,
                          .epsilon = params.epsilon,
                          .centered = params.centered});
  if (!with_sums) return;
  launch(args.call,
         {.blocks = team_blocks(2 * layout.width, kSumColumns),
          .threads = dim3(kSumColumns, kSumRows)},
         add_norm_blocks<C>, sums, blocks.count, layout.width, data_or_null<C>(args.outputs, 1),
         data_or_null<C>(args.outputs, 2));
}

template <typename T>
void add_for(KernelTable& table) {
  const DType dtype = kDTypeOf<T>;
  struct Names {
    std::string_view op, kernel, gradient_op, gradient_kernel;
  };
  constexpr Names kNames[] = {
      {"LayerNormalization", "layer_norm.cuda", "LayerNormalizationGrad", "layer_norm_grad.cuda"},
      {"RMSNormalization", "rms_norm.cuda", "RMSNormalizationGrad", "rms_norm_grad.cuda"}};
  for (const Names& names : kNames) {
    table.add(names.op, dtype, {.name = names.kernel, .run = run_layer_norm<T>});
    table.add(names.gradient_op, dtype,
              {.name = names.gradient_kernel,
               .prepare = prepare_layer_norm_grad,
               .run = run_layer_norm_grad<T>});
  }
}

}  // namespace

void add_layer_norm(KernelTable& table) {
  add_for<float>(table);
  add_for<BFloat16>(table);
  add_for<Float16>(table);
}

}  // namespace trainscope::cuda
