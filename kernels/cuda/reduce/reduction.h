// Reductions over axes: what is joined is a parameter, the order of joining depends on the shapes
// alone, so that every run and every GPU gives the same bits.
//
// The input is walked as kept axes times reduced axes times columns. Reads the input once and
// writes the results once; a reduction whose results are few is cut into chunks, whose partial
// results (8 bytes each, of f64) are written and read once more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/strides.h"

namespace trainscope::cuda {

inline constexpr unsigned kReduceThreads = 256;
inline constexpr unsigned kWarps = kReduceThreads / kWarp;
inline constexpr std::int64_t kEnoughBlocks = 512;    // from which on a reduction is not cut
inline constexpr std::int64_t kChunkElements = 4096;  // of the input, at least, in a chunk

// Of each kept place, the reduced places are joined into one result. Where the last axis is kept,
// it is left out of `kept`: `columns` results lie side by side.
struct ReducePlan {
  StridedLoop kept{.operands = 2};     // output, input
  StridedLoop reduced{.operands = 1};  // input
  std::int64_t columns = 1;
  std::int64_t chunks = 1;  // of the reduced places

  std::int64_t outputs() const { return kept.elements * columns; }
};

ReducePlan reduce_plan(const Shape& input, const ReduceParams& params);

// What a launch knows of the plan.
struct ReduceWalk {
  StridedPlaces kept;
  StridedPlaces reduced;
  std::uint32_t columns = 1;
  std::uint32_t column_blocks = 1;
  std::uint32_t reduced_count = 0;
  std::uint32_t chunks = 1;
  std::uint32_t share = 0;  // reduced places of a chunk
  std::int64_t outputs = 0;

  explicit ReduceWalk(const ReducePlan& plan);
};

// One block's part: a kept place, a chunk of its reduced places, and with columns 32 of these.
struct ReducePart {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::uint32_t chunk = 0;
  std::uint32_t column_block = 0;
  std::uint32_t begin = 0;  // of the reduced places
  std::uint32_t end = 0;

  __device__ ReducePart(const ReduceWalk& walk, std::uint32_t block) {
    const std::uint32_t place = block % walk.kept.items;
    const std::uint32_t rest = block / walk.kept.items;
    column_block = rest % walk.column_blocks;
    chunk = rest / walk.column_blocks;
    std::int64_t at[2];
    walk.kept.find(place, at);
    output = at[0];
    input = at[1];
    begin = min(chunk * walk.share, walk.reduced_count);
    end = min(begin + walk.share, walk.reduced_count);
  }
};

template <class P>
__device__ typename P::Accumulated join_lanes(typename P::Accumulated joined) {
  for (int other = kWarp / 2; other > 0; other /= 2) {
    joined = P::join(joined, __shfl_xor_sync(kWholeWarp, joined, other));
  }
  return joined;
}

// A joined result goes to y, or among the partial results of its chunk.
template <class P>
__device__ void put_result(const ReduceWalk& walk, typename P::Accumulated joined,
                           std::uint32_t chunk, std::int64_t output, typename P::Result* y,
                           typename P::Accumulated* partial) {
  if (walk.chunks > 1) {
    partial[chunk * walk.outputs + output] = joined;
  } else {
    y[output] = P::finish(joined, walk.reduced_count);
  }
}

// Columns == 1. A block for each kept place and chunk: threads take reduced places in turn, then
// lanes and warps are joined.
template <class P>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_places(ReduceWalk walk, const typename P::Element* x, typename P::Result* y,
                  typename P::Accumulated* partial) {
  using A = typename P::Accumulated;
  TRAINSCOPE_SHARED(A, warps, kWarps);
  const ReducePart part(walk, blockIdx.x);
  A joined = P::empty();
  for (std::uint32_t i = part.begin + threadIdx.x; i < part.end; i += kReduceThreads) {
    std::int64_t at[1];
    walk.reduced.find(i, at);
    joined = P::join(joined, P::map(computed(x[part.input + at[0]])));
  }
  joined = join_lanes<P>(joined);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = joined;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < kWarps; ++warp) joined = P::join(joined, warps[warp]);
  put_result<P>(walk, joined, part.chunk, part.output, y, partial);
}

// Columns == 1 and few reduced places, not cut: a warp for each kept place.
template <class P>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_short_rows(ReduceWalk walk, const typename P::Element* x, typename P::Result* y) {
  const std::uint32_t place = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (place >= walk.kept.items) return;
  std::int64_t at[2];
  walk.kept.find(place, at);
  typename P::Accumulated joined = P::empty();
  for (std::uint32_t i = threadIdx.x % kWarp; i < walk.reduced_count; i += kWarp) {
    std::int64_t offset[1];
    walk.reduced.find(i, offset);
    joined = P::join(joined, P::map(computed(x[at[1] + offset[0]])));
  }
  joined = join_lanes<P>(joined);
  if (threadIdx.x % kWarp == 0) y[at[0]] = P::finish(joined, walk.reduced_count);
}

// A block of 32 columns times 8 threads that take reduced places in turn.
template <class P>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_columns(ReduceWalk walk, const typename P::Element* x, typename P::Result* y,
                   typename P::Accumulated* partial) {
  using A = typename P::Accumulated;
  TRAINSCOPE_SHARED(A, rows, kReduceThreads);  // [kWarps, kWarp]
  const ReducePart part(walk, blockIdx.x);
  const std::uint32_t column = part.column_block * kWarp + threadIdx.x % kWarp;
  const bool inside = column < walk.columns;
  A joined = P::empty();
  if (inside) {
#pragma unroll 4
    for (std::uint32_t i = part.begin + threadIdx.x / kWarp; i < part.end; i += kWarps) {
      std::int64_t at[1];
      walk.reduced.find(i, at);
      joined = P::join(joined, P::map(computed(x[part.input + at[0] + column])));
    }
  }
  rows[threadIdx.x] = joined;
  __syncthreads();
  if (threadIdx.x >= kWarp || !inside) return;
  for (unsigned row = 1; row < kWarps; ++row) {
    joined = P::join(joined, rows[row * kWarp + threadIdx.x]);
  }
  put_result<P>(walk, joined, part.chunk, part.output + column, y, partial);
}

// The chunks of each result, in their order.
template <class P>
__global__ void __launch_bounds__(kReduceThreads)
    join_chunks(const typename P::Accumulated* partial, std::uint32_t chunks, std::int64_t outputs,
                std::int64_t count, typename P::Result* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= outputs) return;
  typename P::Accumulated joined = partial[i];
  for (std::uint32_t chunk = 1; chunk < chunks; ++chunk) {
    joined = P::join(joined, partial[chunk * outputs + i]);
  }
  y[i] = P::finish(joined, count);
}

// Reductions of more results or places than a launch can number.
Support supports_reduction(const PrepareArgs& args);

template <class P>
Prepared prepare_reduction(const PrepareArgs& args) {
  auto plan = std::make_shared<const ReducePlan>(
      reduce_plan(args.inputs[0].shape(), std::get<ReduceParams>(args.params)));
  const std::int64_t partial = plan->chunks > 1 ? plan->chunks * plan->outputs() : 0;
  return {.workspace_bytes = static_cast<std::size_t>(partial) * sizeof(typename P::Accumulated),
          .state = plan};
}

// Each result is P::finish(joined, count) of the P::map()s of its elements, joined by P::join from
// P::empty() on.
template <class P>
void run_reduction(const RunArgs& run) {
  const auto& plan = *static_cast<const ReducePlan*>(run.state);
  if (plan.outputs() == 0) return;
  const ReduceWalk walk(plan);
  const auto* x = run.inputs[0].as<const typename P::Element>();
  auto* y = run.outputs[0].as<typename P::Result>();
  auto* partial = static_cast<typename P::Accumulated*>(run.workspace);
  const Grid grid{.blocks = walk.kept.items * walk.column_blocks * walk.chunks,
                  .threads = kReduceThreads};
  constexpr std::uint32_t kShortRow = 1024;
  if (plan.columns > 1) {
    launch(run.call, grid, reduce_columns<P>, walk, x, y, partial);
  } else if (plan.chunks == 1 && walk.reduced_count <= kShortRow) {
    launch(run.call, {.blocks = (walk.kept.items + kWarps - 1) / kWarps, .threads = kReduceThreads},
           reduce_short_rows<P>, walk, x, y);
  } else {
    launch(run.call, grid, reduce_places<P>, walk, x, y, partial);
  }
  if (plan.chunks == 1) return;
  launch(run.call,
         {.blocks = blocks_for(plan.outputs(), kReduceThreads), .threads = kReduceThreads},
         join_chunks<P>, partial, walk.chunks, plan.outputs(), plan.reduced.elements, y);
}

}  // namespace trainscope::cuda
