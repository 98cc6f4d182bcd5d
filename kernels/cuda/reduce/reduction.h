// Reductions over axes: what is joined is a parameter, the order of joining depends on the shapes
// and the element's size alone, so that every run and every GPU gives the same bits.
//
// The input is walked as kept axes times reduced axes times columns. Reads the input once, 16 bytes
// an instruction where it lies so (8 where two-byte elements of a row are joined), and writes the
// results once; a reduction whose results are few is cut into chunks, whose partial results (8
// bytes each, of f64) are written and read once more. Which thread joins which elements, and in
// which order, does not depend on how they are read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/api/reduce_layout.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/strides.h"

namespace trainscope::cuda {

inline constexpr unsigned kReduceThreads = 256;
inline constexpr unsigned kWarps = kReduceThreads / kWarp;
inline constexpr std::int64_t kEnoughBlocks = 512;    // from which on a reduction is not cut
inline constexpr std::int64_t kChunkElements = 4096;  // of the input, at least, in a chunk

struct ReducePlan : ReduceLayout {
  int width = 1;            // columns that one thread joins
  std::int64_t chunks = 1;  // of the reduced places
};

// Rows of columns that are whole multiples of `most_width`, else of kPackWidth, are joined by
// threads of as many columns each, others by threads of one.
ReducePlan reduce_plan(const Shape& input, const ReduceParams& params, int most_width);

// What a launch knows of the plan.
struct ReduceWalk {
  StridedPlaces kept;
  StridedPlaces reduced;
  bool in_a_row = false;  // the reduced places lie side by side
  bool packs = false;     // ... and, or the columns, where packs may begin
  std::uint32_t columns = 1;
  std::uint32_t column_blocks = 1;
  std::uint32_t reduced_count = 0;
  std::uint32_t chunks = 1;
  std::uint32_t share = 0;  // reduced places of a chunk
  std::int64_t outputs = 0;

  // Packs of the input may begin at its address.
  ReduceWalk(const ReducePlan& plan, bool aligned);
};

// One block's part: a kept place, a chunk of its reduced places, and with columns 32 threads' share
// of these.
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

// The elements [begin, end) of x, side by side, of which a thread takes kPackWidth in turn.
template <class P>
__device__ typename P::Accumulated join_row(const typename P::Element* x, std::uint32_t begin,
                                            std::uint32_t end, std::uint32_t thread,
                                            std::uint32_t threads, bool packs) {
  using T = typename P::Element;
  typename P::Accumulated joined = P::empty();
  std::uint32_t i = begin + thread * kPackWidth;
#pragma unroll 2
  for (; packs && i + kPackWidth <= end; i += threads * kPackWidth) {
    const auto pack = load_pack<T, kPackWidth>(x + i, false);
    for (int k = 0; k < kPackWidth; ++k) joined = P::join(joined, P::map(computed(pack.values[k])));
  }
  for (; i < end; i += threads * kPackWidth) {
    const std::uint32_t last = min(i + kPackWidth, end);
    for (std::uint32_t k = i; k < last; ++k) joined = P::join(joined, P::map(computed(x[k])));
  }
  return joined;
}

// The reduced places [begin, end), of which a thread takes one in turn.
template <class P>
__device__ typename P::Accumulated join_places(const ReduceWalk& walk, const typename P::Element* x,
                                               std::uint32_t begin, std::uint32_t end,
                                               std::uint32_t thread, std::uint32_t threads) {
  typename P::Accumulated joined = P::empty();
  for (std::uint32_t i = begin + thread; i < end; i += threads) {
    std::int64_t at[1];
    walk.reduced.find(i, at);
    joined = P::join(joined, P::map(computed(x[at[0]])));
  }
  return joined;
}

// Columns == 1. A block for each kept place and chunk; lanes and warps are joined at the end.
// Bytes: as above. One join an element, as in the kernels below.
template <class P>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_places(ReduceWalk walk, const typename P::Element* x, typename P::Result* y,
                  typename P::Accumulated* partial) {
  using A = typename P::Accumulated;
  TRAINSCOPE_SHARED(A, warps, kWarps);
  const ReducePart part(walk, blockIdx.x);
  x += part.input;
  A joined = walk.in_a_row
                 ? join_row<P>(x, part.begin, part.end, threadIdx.x, kReduceThreads, walk.packs)
                 : join_places<P>(walk, x, part.begin, part.end, threadIdx.x, kReduceThreads);
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
  x += at[1];
  const std::uint32_t lane = threadIdx.x % kWarp;
  auto joined = walk.in_a_row ? join_row<P>(x, 0, walk.reduced_count, lane, kWarp, walk.packs)
                              : join_places<P>(walk, x, 0, walk.reduced_count, lane, kWarp);
  joined = join_lanes<P>(joined);
  if (lane == 0) y[at[0]] = P::finish(joined, walk.reduced_count);
}

// The columns of one thread from x on.
template <int kWidth, class T>
__device__ Pack<T, kWidth> load_columns(const T* x, bool packs) {
  if (packs) return load_pack<T, kWidth>(x, false);
  Pack<T, kWidth> columns;
  for (int k = 0; k < kWidth; ++k) columns.values[k] = x[k];
  return columns;
}

// A block of 32 threads along the columns, kWidth columns each, times 8 that take reduced places in
// turn and are joined at the end.
template <int kWidth, class P>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_columns(ReduceWalk walk, const typename P::Element* x, typename P::Result* y,
                   typename P::Accumulated* partial) {
  using A = typename P::Accumulated;
  TRAINSCOPE_SHARED(A, rows, kReduceThreads * kWidth);  // [kWarps, kWidth, kWarp]
  const ReducePart part(walk, blockIdx.x);
  const std::uint32_t lane = threadIdx.x % kWarp;
  const std::uint32_t warp = threadIdx.x / kWarp;
  const std::uint32_t column = (part.column_block * kWarp + lane) * kWidth;
  const bool inside = column < walk.columns;
  A joined[kWidth];
  for (int k = 0; k < kWidth; ++k) joined[k] = P::empty();
  if (inside) {
#pragma unroll 4
    for (std::uint32_t i = part.begin + warp; i < part.end; i += kWarps) {
      std::int64_t at[1];
      walk.reduced.find(i, at);
      const auto pack = load_columns<kWidth>(x + part.input + at[0] + column, walk.packs);
      for (int k = 0; k < kWidth; ++k) {
        joined[k] = P::join(joined[k], P::map(computed(pack.values[k])));
      }
    }
  }
  for (int k = 0; k < kWidth; ++k) rows[(warp * kWidth + k) * kWarp + lane] = joined[k];
  __syncthreads();
  if (warp != 0 || !inside) return;
  for (int k = 0; k < kWidth; ++k) {
    for (unsigned row = 1; row < kWarps; ++row) {
      joined[k] = P::join(joined[k], rows[(row * kWidth + k) * kWarp + lane]);
    }
    put_result<P>(walk, joined[k], part.chunk, part.output + column + k, y, partial);
  }
}

// The chunks of each result: a block of 32 results times 8 threads that take chunks in turn.
template <class P>
__global__ void __launch_bounds__(kReduceThreads)
    join_chunks(const typename P::Accumulated* partial, std::uint32_t chunks, std::int64_t outputs,
                std::int64_t count, typename P::Result* y) {
  using A = typename P::Accumulated;
  TRAINSCOPE_SHARED(A, rows, kReduceThreads);  // [kWarps, kWarp]
  const std::int64_t i = std::int64_t{blockIdx.x} * kWarp + threadIdx.x % kWarp;
  A joined = P::empty();
  if (i < outputs) {
#pragma unroll 4
    for (std::uint32_t chunk = threadIdx.x / kWarp; chunk < chunks; chunk += kWarps) {
      joined = P::join(joined, partial[chunk * outputs + i]);
    }
  }
  rows[threadIdx.x] = joined;
  __syncthreads();
  if (threadIdx.x >= kWarp || i >= outputs) return;
  for (unsigned row = 1; row < kWarps; ++row) {
    joined = P::join(joined, rows[row * kWarp + threadIdx.x]);
  }
  y[i] = P::finish(joined, count);
}

// Reductions of more results or places than a launch can number.
Support supports_reduction(const PrepareArgs& args);

template <class P>
Prepared prepare_reduction(const PrepareArgs& args) {
  auto plan = std::make_shared<const ReducePlan>(reduce_plan(
      args.inputs[0].shape(), std::get<ReduceParams>(args.params), kPackOf<typename P::Element>));
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
  const auto* x = run.inputs[0].as<const typename P::Element>();
  auto* y = run.outputs[0].as<typename P::Result>();
  auto* partial = static_cast<typename P::Accumulated*>(run.workspace);
  constexpr int kMostWidth = kPackOf<typename P::Element>;
  const bool widest = plan.width == kMostWidth && kMostWidth != kPackWidth;
  const ReduceWalk walk(plan,
                        widest ? takes_packs<typename P::Element, kMostWidth>(x) : takes_packs(x));
  const Grid grid{.blocks = walk.kept.items * walk.column_blocks * walk.chunks,
                  .threads = kReduceThreads};
  constexpr std::uint32_t kShortRow = 1024;
  if (plan.columns > 1 && plan.width == 1) {
    launch(run.call, grid, reduce_columns<1, P>, walk, x, y, partial);
  } else if (plan.columns > 1 && widest) {
    launch(run.call, grid, reduce_columns<kMostWidth, P>, walk, x, y, partial);
  } else if (plan.columns > 1) {
    launch(run.call, grid, reduce_columns<kPackWidth, P>, walk, x, y, partial);
  } else if (plan.chunks == 1 && walk.reduced_count <= kShortRow) {
    launch(run.call, {.blocks = blocks_for(walk.kept.items, kWarps), .threads = kReduceThreads},
           reduce_short_rows<P>, walk, x, y);
  } else {
    launch(run.call, grid, reduce_places<P>, walk, x, y, partial);
  }
  if (plan.chunks == 1) return;
  launch(run.call, {.blocks = blocks_for(plan.outputs(), kWarp), .threads = kReduceThreads},
         join_chunks<P>, partial, walk.chunks, plan.outputs(), plan.reduced.elements, y);
}

}  // namespace trainscope::cuda
