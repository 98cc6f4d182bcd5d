// Transpose: a strided copy where the last axis stays last; else tiles of 32 x 32 elements go
// through shared memory, so that both reading and writing use whole lines.
#include <algorithm>
#include <memory>
#include <variant>

#include "kernels/api/movement_layout.h"
#include "kernels/cuda/movement/copies.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // threads of a block along a tile's columns

std::int64_t tiles_of(const TransposeLayout& layout) {
  const TransposedMatrix& matrix = layout.matrix;
  return layout.outer.elements * ((matrix.rows + kTile - 1) / kTile) *
         ((matrix.columns + kTile - 1) / kTile);
}

// What a launch knows of the plan.
struct Tiles {
  StridedPlaces outer;
  Divisor of_row;     // tiles side by side along the columns
  Divisor of_matrix;  // tiles of a matrix
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
};

// A block of 32 x 8 threads does a tile. The row of shared memory is one element longer than the
// tile's, so that a column of it lies in 32 different banks. Bytes: x read and y written once.
template <class T>
__global__ void __launch_bounds__(kTile* kTileRows) transpose_tiles(Tiles tiles, const T* x, T* y) {
  TRAINSCOPE_SHARED(T, tile, kTile * (kTile + 1));
  const std::uint32_t matrix = tiles.of_matrix.divide(blockIdx.x);
  const std::uint32_t number = blockIdx.x - matrix * tiles.of_matrix.divisor;
  const std::uint32_t tile_row = tiles.of_row.divide(number);
  const std::int64_t i0 = std::int64_t{tile_row} * kTile;
  const std::int64_t j0 = std::int64_t{number - tile_row * tiles.of_row.divisor} * kTile;
  std::int64_t at[2];
  tiles.outer.find(matrix, at);
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  for (int j = ty; j < kTile; j += kTileRows) {
    if (i0 + tx < tiles.rows && j0 + j < tiles.columns) {
      tile[j * (kTile + 1) + tx] = x[at[1] + (j0 + j) * tiles.x_stride + i0 + tx];
    }
  }
  __syncthreads();
  for (int i = ty; i < kTile; i += kTileRows) {
    if (i0 + i < tiles.rows && j0 + tx < tiles.columns) {
      y[at[0] + (i0 + i) * tiles.y_stride + j0 + tx] = tile[tx * (kTile + 1) + i];
    }
  }
}

template <class T>
void transpose(const RunArgs& run) {
  const auto& plan = *static_cast<const TransposeLayout*>(run.state);
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  if (plan.by_runs) return copy_loop(run.call, plan.loop, y, x);
  const auto in_row = static_cast<std::uint32_t>((plan.matrix.columns + kTile - 1) / kTile);
  const auto in_column = static_cast<std::uint32_t>((plan.matrix.rows + kTile - 1) / kTile);
  Tiles tiles;
  tiles.outer = StridedPlaces(plan.outer, 1);
  tiles.of_row = Divisor(in_row);
  tiles.of_matrix = Divisor(in_row * in_column);
  tiles.rows = plan.matrix.rows;
  tiles.columns = plan.matrix.columns;
  tiles.x_stride = plan.matrix.x_stride;
  tiles.y_stride = plan.matrix.y_stride;
  launch(run.call,
         {.blocks = static_cast<unsigned>(tiles_of(plan)), .threads = dim3(kTile, kTileRows)},
         transpose_tiles<T>, tiles, x, y);
}

Support supports_transpose(const PrepareArgs& args) {
  const TransposeLayout plan = transpose_layout(args.inputs[0].shape(), args.outputs[0].shape(),
                                                std::get<PermutationParams>(args.params));
  return supported_if(tiles_of(plan) < kMaxItems, "on CUDA a transpose has less than 2^31 tiles");
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
  for (const DType dtype : kAllDTypes) {
    table.add("Transpose", dtype,
              {.name = "transpose.cuda",
               .supports = supports_transpose,
               .prepare = prepare_transpose,
               .run = run_transpose});
  }
}

}  // namespace trainscope::cuda
