// Transpose: runs are copied where the last axis stays last; else tiles are transposed, so that
// both reading and writing use whole cache lines.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "kernels/cpu/movement/movement.h"
#include "kernels/cpu/movement/transpose_block.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kTile = 32;

// A matrix inside the tensors: y[i * y_stride + j] = x[j * x_stride + i], i < rows, j < columns.
struct Matrix {
  std::int64_t rows = 1;     // the axis along which the input is contiguous
  std::int64_t columns = 1;  // the axis along which the output is contiguous
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
};

struct TransposePlan {
  StridedLoop loop{.operands = 2};   // output, input: all axes, size 1 dropped, merged
  StridedLoop outer{.operands = 2};  // the axes around the matrix
  Matrix matrix;
  bool by_runs = true;
};

TransposePlan transpose_plan(const Shape& input, const Shape& output,
                             const PermutationParams& params) {
  TransposePlan plan;
  const Strides x = dense_strides(input);
  const Strides y = dense_strides(output);
  for (std::size_t a = 0; a < static_cast<std::size_t>(output.rank); ++a) {
    const auto from = static_cast<std::size_t>(params.permutation[a]);
    plan.loop.add_axis(output.dims[a], {y[a], x[from]});
  }
  const StridedLoop& loop = plan.loop;
  plan.by_runs = loop.rank == 0 || loop.elements == 0 || loop.row_stride(1) == 1;
  if (plan.by_runs) return plan;
  const auto last = static_cast<std::size_t>(loop.rank - 1);
  for (std::size_t a = 0; a < last; ++a) {
    if (loop.strides[1][a] == 1) {
      plan.matrix = {.rows = loop.sizes[a],
                     .columns = loop.sizes[last],
                     .x_stride = loop.strides[1][last],
                     .y_stride = loop.strides[0][a]};
    } else {
      plan.outer.add_axis(loop.sizes[a], {loop.strides[0][a], loop.strides[1][a]});
    }
  }
  return plan;
}

template <class T>
void transpose_tile(const T* x, T* y, const Matrix& tile) {
  std::int64_t done = 0;  // columns, of the whole blocks
  std::int64_t whole_rows = 0;
  if constexpr (std::is_same_v<T, std::uint32_t>) {
    done = tile.columns / 8 * 8;
    whole_rows = tile.rows / 8 * 8;
    for (std::int64_t i = 0; i < whole_rows; i += 8) {
      for (std::int64_t j = 0; j < done; j += 8) {
        transpose_block(x + j * tile.x_stride + i, tile.x_stride, y + i * tile.y_stride + j,
                        tile.y_stride);
      }
    }
  }
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    for (std::int64_t j = i < whole_rows ? done : 0; j < tile.columns; ++j) {
      y[i * tile.y_stride + j] = x[j * tile.x_stride + i];
    }
  }
}

// Tiles of kTile rows times all columns, of every matrix.
template <class T>
void transpose_tiles(const TransposePlan& plan, const T* x, T* y, int threads) {
  const Matrix& matrix = plan.matrix;
  const std::int64_t strips = (matrix.rows + kTile - 1) / kTile;
  const std::int64_t grain = row_grain(std::min(kTile, matrix.rows) * matrix.columns);
  parallel_for(threads, plan.outer.elements * strips, grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t task = begin; task < end; ++task) {
                   const std::int64_t place = task / strips;
                   const std::int64_t i = task % strips * kTile;
                   Offsets at{};
                   for_each_row(plan.outer, place, place + 1,
                                [&](const Offsets& o, std::int64_t) { at = o; });
                   for (std::int64_t j = 0; j < matrix.columns; j += kTile) {
                     const Matrix tile{.rows = std::min(kTile, matrix.rows - i),
                                       .columns = std::min(kTile, matrix.columns - j),
                                       .x_stride = matrix.x_stride,
                                       .y_stride = matrix.y_stride};
                     transpose_tile(x + at[1] + j * matrix.x_stride + i,
                                    y + at[0] + i * matrix.y_stride + j, tile);
                   }
                 }
               });
}

template <class T>
void transpose(const RunArgs& run) {
  const auto& plan = *static_cast<const TransposePlan*>(run.state);
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  if (!plan.by_runs) return transpose_tiles(plan, x, y, run.threads);
  parallel_for(run.threads, plan.loop.elements, kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 for_each_row(plan.loop, begin, end, [&](const Offsets& at, std::int64_t count) {
                   copy_row(x + at[1], 1, y + at[0], 1, count);
                 });
               });
}

Prepared prepare_transpose(const PrepareArgs& args) {
  return {.workspace_bytes = 0,
          .state = std::make_shared<const TransposePlan>(
              transpose_plan(args.inputs[0].shape(), args.outputs[0].shape(),
                             std::get<PermutationParams>(args.params)))};
}

void run_transpose(const RunArgs& run) {
  with_width(run.outputs[0].type.dtype,
             [&](auto* type) { transpose<Pointee<decltype(type)>>(run); });
}

}  // namespace

void add_transpose(KernelTable& table) {
  for (DType dtype : kAllDTypes) {
    table.add("Transpose", dtype,
              {.name = "transpose", .prepare = prepare_transpose, .run = run_transpose});
  }
}

}  // namespace trainscope::cpu
