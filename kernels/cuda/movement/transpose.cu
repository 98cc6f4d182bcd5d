// Transpose: a strided copy where the last axis stays last; else tiles of 32 x 32 elements go
// through shared memory, so that both reading and writing use whole lines.
#include <algorithm>
#include <memory>
#include <variant>

#include "kernels/cuda/movement/copies.h"
#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // threads of a block along a tile's columns

// Matrices inside the tensors: y[i * y_stride + j] = x[j * x_stride + i], i < rows, j < columns.
struct TransposePlan {
  StridedLoop loop{.operands = 2};   // output, input: all axes
  StridedLoop outer{.operands = 2};  // the axes around the matrix
  std::int64_t rows = 1;             // the axis along which the input is contiguous
  std::int64_t columns = 1;          // the axis along which the output is contiguous
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
  bool by_runs = true;

  std::int64_t tiles() const {
    return outer.elements * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  }
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
  const int last = loop.rank - 1;
  plan.columns = loop.sizes[last];
  plan.x_stride = loop.strides[1][last];
  for (int a = 0; a < last; ++a) {
    if (loop.strides[1][a] == 1) {
      plan.rows = loop.sizes[a];
      plan.y_stride = loop.strides[0][a];
    } else {
      plan.outer.add_axis(loop.sizes[a], {loop.strides[0][a], loop.strides[1][a]});
    }
  }
  return plan;
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
// tile's, so that a column of it lies in 32 different banks.
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
  const auto& plan = *static_cast<const TransposePlan*>(run.state);
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  if (plan.by_runs) return copy_loop(run.call, plan.loop, y, x);
  const auto in_row = static_cast<std::uint32_t>((plan.columns + kTile - 1) / kTile);
  const auto in_column = static_cast<std::uint32_t>((plan.rows + kTile - 1) / kTile);
  Tiles tiles;
  tiles.outer = StridedPlaces(plan.outer, 1);
  tiles.of_row = Divisor(in_row);
  tiles.of_matrix = Divisor(in_row * in_column);
  tiles.rows = plan.rows;
  tiles.columns = plan.columns;
  tiles.x_stride = plan.x_stride;
  tiles.y_stride = plan.y_stride;
  launch(run.call,
         {.blocks = static_cast<unsigned>(plan.tiles()), .threads = dim3(kTile, kTileRows)},
         transpose_tiles<T>, tiles, x, y);
}

Support supports_transpose(const PrepareArgs& args) {
  const TransposePlan plan = transpose_plan(args.inputs[0].shape(), args.outputs[0].shape(),
                                            std::get<PermutationParams>(args.params));
  return supported_if(plan.tiles() < kMaxItems, "on CUDA a transpose has less than 2^31 tiles");
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
  for (const DType dtype : kAllDTypes) {
    table.add("Transpose", dtype,
              {.name = "transpose.cuda",
               .supports = supports_transpose,
               .prepare = prepare_transpose,
               .run = run_transpose});
  }
}

}  // namespace trainscope::cuda
