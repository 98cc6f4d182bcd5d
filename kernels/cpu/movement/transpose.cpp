// Transpose: runs are copied where the last axis stays last; else tiles are transposed, so that
// both reading and writing use whole cache lines.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "kernels/api/movement_layout.h"
#include "kernels/cpu/movement/movement.h"
#include "kernels/cpu/movement/transpose_block.h"
#include "kernels/cpu/support/dispatch.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kTile = 32;

template <class T>
void transpose_tile(const T* x, T* y, const TransposedMatrix& tile) {
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
void transpose_tiles(const TransposeLayout& plan, const T* x, T* y, int threads) {
  const TransposedMatrix& matrix = plan.matrix;
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
                     const TransposedMatrix tile{.rows = std::min(kTile, matrix.rows - i),
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
  const auto& plan = *static_cast<const TransposeLayout*>(run.state);
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
          .state = std::make_shared<const TransposeLayout>(
              transpose_layout(args.inputs[0].shape(), args.outputs[0].shape(),
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
