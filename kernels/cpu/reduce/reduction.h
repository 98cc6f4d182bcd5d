// Reductions over axes: what is joined is a parameter, the order of joining depends on the shapes
// alone: large reductions are cut into chunks of fixed sizes, whose results are joined in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/api/reduce_layout.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {

inline constexpr std::int64_t kChunkElements =
    16384;  // input elements of one part of a large reduction
inline constexpr std::int64_t kMaxChunks = 64;
inline constexpr std::int64_t kEnoughTasks = 32;  // results, from which on none is cut
inline constexpr std::int64_t kColumnBlock =
    256;  // columns reduced together: 2 KiB of accumulators

struct ReducePlan : ReduceLayout {
  std::int64_t chunks = 1;  // of the reduced places
  std::int64_t input_elements = 0;
};

inline std::int64_t chunk_count(const ReducePlan& plan) {
  const std::int64_t blocks = (plan.columns + kColumnBlock - 1) / kColumnBlock;
  if (plan.kept.elements * blocks >= kEnoughTasks) return 1;
  const std::int64_t elements = plan.reduced.elements * plan.columns;
  return std::clamp<std::int64_t>(std::min(elements / kChunkElements, plan.reduced.elements), 1,
                                  kMaxChunks);
}

inline ReducePlan reduce_plan(const Shape& input, const ReduceParams& params) {
  ReducePlan plan{reduce_layout(input, params)};
  plan.input_elements = input.elements();
  plan.chunks = chunk_count(plan);
  return plan;
}

// A run of n elements, joined in 16 interleaved lanes that fill the vector registers.
template <class P>
typename P::Accumulated join_run(const typename P::Element* x, std::int64_t n) {
  using A = typename P::Accumulated;
  constexpr std::int64_t kLanes = 16;
  std::array<A, kLanes> lanes;
  lanes.fill(P::empty());
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      lanes[k] = P::join(lanes[k], P::map(x[i + std::int64_t(k)]));
    }
  }
  A rest = P::empty();
  for (; i < n; ++i) rest = P::join(rest, P::map(x[i]));
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) lanes[k] = P::join(lanes[k], lanes[k + half]);
  }
  return P::join(lanes[0], rest);
}

// One task: columns [first, last) of the kept place at offset `input`, over the reduced places
// [begin, end), which are chunk `chunk` of them; the result goes to offset `output`.
struct ReduceTask {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t chunk = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// columns == 1: the reduced places come in runs (stride 1) or, for odd shapes, strided.
template <class P>
typename P::Accumulated join_places(const ReducePlan& plan, const typename P::Element* x,
                                    const ReduceTask& task) {
  const std::int64_t stride = plan.reduced.row_stride(0);
  typename P::Accumulated joined = P::empty();
  for_each_row(plan.reduced, task.begin, task.end, [&](const Offsets& at, std::int64_t count) {
    const auto* run = x + task.input + at[0];
    if (stride == 1) {
      joined = P::join(joined, join_run<P>(run, count));
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) joined = P::join(joined, P::map(run[i * stride]));
  });
  return joined;
}

template <class P>
void join_columns(const ReducePlan& plan, const typename P::Element* x, const ReduceTask& task,
                  typename P::Accumulated* joined) {
  const std::int64_t stride = plan.reduced.row_stride(0);
  const std::int64_t width = task.last - task.first;
  std::fill_n(joined, width, P::empty());
  for_each_row(plan.reduced, task.begin, task.end, [&](const Offsets& at, std::int64_t count) {
    const auto* row = x + task.input + at[0] + task.first;
    for (std::int64_t r = 0; r < count; ++r, row += stride) {
#pragma omp simd
      for (std::int64_t c = 0; c < width; ++c) joined[c] = P::join(joined[c], P::map(row[c]));
    }
  });
}

// Runs a reduction. Each result is P::finish(joined, count) of the P::map()s of its elements,
// joined by P::join from P::empty() on.
template <class P>
class Reduction {
 public:
  using T = typename P::Element;
  using A = typename P::Accumulated;
  using R = typename P::Result;
  Reduction(const RunArgs& run, const ReducePlan& plan)
      : plan_(plan),
        x_(run.inputs[0].as<const T>()),
        y_(run.outputs[0].as<R>()),
        partial_(static_cast<A*>(run.workspace)),
        threads_(run.threads),
        blocks_((plan.columns + kColumnBlock - 1) / kColumnBlock) {}

  void run() const {
    const std::int64_t tasks = plan_.kept.elements * blocks_ * plan_.chunks;
    if (tasks == 0) return;
    const std::int64_t grain = row_grain(plan_.input_elements / tasks);
    parallel_for(threads_, tasks, grain, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) begin = run_tasks(begin, end);
    });
    if (plan_.chunks > 1) join_chunks();
  }

 private:
  // Tasks are numbered with the kept places fastest, the chunks slowest. Runs those from `begin`
  // that share a chunk and a block of columns; returns the first one not done.
  std::int64_t run_tasks(std::int64_t begin, std::int64_t end) const {
    const std::int64_t place = begin % plan_.kept.elements;
    const std::int64_t block = begin / plan_.kept.elements % blocks_;
    const std::int64_t chunk = begin / plan_.kept.elements / blocks_;
    const std::int64_t share = (plan_.reduced.elements + plan_.chunks - 1) / plan_.chunks;
    ReduceTask task{.chunk = chunk,
                    .first = block * kColumnBlock,
                    .last = std::min(plan_.columns, (block + 1) * kColumnBlock),
                    .begin = std::min(plan_.reduced.elements, chunk * share),
                    .end = std::min(plan_.reduced.elements, (chunk + 1) * share)};
    const std::int64_t places = std::min(plan_.kept.elements - place, end - begin);
    for_each_row(plan_.kept, place, place + places, [&](const Offsets& at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        task.output = at[0] + i * plan_.kept.row_stride(0) + task.first;
        task.input = at[1] + i * plan_.kept.row_stride(1);
        run_task(task);
      }
    });
    return begin + places;
  }

  void run_task(const ReduceTask& task) const {
    std::array<A, kColumnBlock> joined;
    if (plan_.columns == 1) {
      joined[0] = join_places<P>(plan_, x_, task);
    } else {
      join_columns<P>(plan_, x_, task, joined.data());
    }
    const auto width = static_cast<std::size_t>(task.last - task.first);
    if (plan_.chunks > 1) {
      std::copy_n(joined.data(), width, partial_ + task.chunk * outputs() + task.output);
      return;
    }
    for (std::size_t c = 0; c < width; ++c) {
      y_[task.output + static_cast<std::int64_t>(c)] = P::finish(joined[c], plan_.reduced.elements);
    }
  }

  // Along the rows of the partial results, into the first one.
  void join_chunks() const {
    parallel_for(threads_, outputs(), row_grain(plan_.chunks),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t chunk = 1; chunk < plan_.chunks; ++chunk) {
                     const A* row = partial_ + chunk * outputs();
#pragma omp simd
                     for (std::int64_t i = begin; i < end; ++i) {
                       partial_[i] = P::join(partial_[i], row[i]);
                     }
                   }
                   for (std::int64_t i = begin; i < end; ++i) {
                     y_[i] = P::finish(partial_[i], plan_.reduced.elements);
                   }
                 });
  }

  std::int64_t outputs() const { return plan_.kept.elements * plan_.columns; }

  const ReducePlan& plan_;
  const T* x_;
  R* y_;
  A* partial_;
  int threads_;
  std::int64_t blocks_;
};

template <class P>
Prepared prepare_reduction(const PrepareArgs& args) {
  auto plan = std::make_shared<const ReducePlan>(
      reduce_plan(args.inputs[0].shape(), std::get<ReduceParams>(args.params)));
  const std::int64_t outputs = plan->kept.elements * plan->columns;
  const std::int64_t partial = plan->chunks > 1 ? plan->chunks * outputs : 0;
  return {.workspace_bytes = static_cast<std::size_t>(partial) * sizeof(typename P::Accumulated),
          .state = plan};
}

template <class P>
void run_reduction(const RunArgs& run) {
  Reduction<P>(run, *static_cast<const ReducePlan*>(run.state)).run();
}

}  // namespace trainscope::cpu
