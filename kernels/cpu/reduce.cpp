// Sums and means over axes. Float sums are accumulated in double, in an order that depends on the
// shapes alone: large sums are cut into parts of fixed sizes, whose results are added in order.
#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>

#include "kernels/api/kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kPartElements = 16384;  // input elements of one part of a large sum
constexpr std::int64_t kMaxParts = 64;
constexpr std::int64_t kEnoughTasks = 32;   // sums to compute, from which on none is cut
constexpr std::int64_t kColumnBlock = 256;  // columns summed together: 2 KiB of accumulators

// Integers wrap around.
template <class T>
using Accumulator = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                                std::type_identity<double>>::type;

// The input as kept axes times reduced axes. Of each kept place ("sum"), the reduced places are
// summed. Where the last axis is kept, it is left out of `kept`: `columns` sums lie side by side.
struct ReducePlan {
  StridedLoop kept{.operands = 2};     // output, input
  StridedLoop reduced{.operands = 1};  // input
  std::int64_t columns = 1;
  std::int64_t parts = 1;  // of the reduced places
  std::int64_t input_elements = 0;
};

std::int64_t part_count(const ReducePlan& plan) {
  const std::int64_t blocks = (plan.columns + kColumnBlock - 1) / kColumnBlock;
  if (plan.kept.elements * blocks >= kEnoughTasks) return 1;
  const std::int64_t elements = plan.reduced.elements * plan.columns;
  return std::clamp<std::int64_t>(std::min(elements / kPartElements, plan.reduced.elements), 1,
                                  kMaxParts);
}

ReducePlan reduce_plan(const Shape& input, const ReduceParams& params) {
  ReducePlan plan;
  plan.input_elements = input.elements();
  const Strides strides = dense_strides(input);
  int last = input.rank - 1;
  for (; last >= 0 && !params.reduced[static_cast<std::size_t>(last)]; --last) {
    plan.columns *= input[last];
  }
  Strides output_strides{};
  std::int64_t output_stride = plan.columns;
  for (int axis = last; axis >= 0; --axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (params.reduced[i]) continue;
    output_strides[i] = output_stride;
    output_stride *= input[axis];
  }
  for (int axis = 0; axis <= last; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (params.reduced[i]) {
      plan.reduced.add_axis(input[axis], {strides[i]});
    } else {
      plan.kept.add_axis(input[axis], {output_strides[i], strides[i]});
    }
  }
  plan.parts = part_count(plan);
  return plan;
}

// The sum of a run of n elements, in 16 interleaved sums that fill the vector registers.
template <class T>
Accumulator<T> sum_run(const T* x, std::int64_t n) {
  using A = Accumulator<T>;
  constexpr std::int64_t kLanes = 16;
  std::array<A, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) lanes[k] += static_cast<A>(x[i + std::int64_t(k)]);
  }
  A sum{};
  for (; i < n; ++i) sum += static_cast<A>(x[i]);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return lanes[0] + sum;
}

// One task: columns [first, last) of the kept place at offset `input`, over the reduced places
// [begin, end), which are part `part` of them; the result goes to offset `output`.
struct SumTask {
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t part = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// columns == 1: the reduced places come in runs (stride 1) or, for odd shapes, strided.
template <class T>
Accumulator<T> sum_places(const ReducePlan& plan, const T* x, const SumTask& task) {
  using A = Accumulator<T>;
  const std::int64_t stride = plan.reduced.row_stride(0);
  A sum{};
  for_each_row(plan.reduced, task.begin, task.end, [&](const Offsets& at, std::int64_t count) {
    const T* run = x + task.input + at[0];
    if (stride == 1) {
      sum += sum_run(run, count);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<A>(run[i * stride]);
  });
  return sum;
}

template <class T>
void sum_columns(const ReducePlan& plan, const T* x, const SumTask& task, Accumulator<T>* sums) {
  using A = Accumulator<T>;
  const std::int64_t stride = plan.reduced.row_stride(0);
  const std::int64_t width = task.last - task.first;
  std::fill_n(sums, width, A{});
  for_each_row(plan.reduced, task.begin, task.end, [&](const Offsets& at, std::int64_t count) {
    const T* row = x + task.input + at[0] + task.first;
    for (std::int64_t r = 0; r < count; ++r, row += stride) {
#pragma omp simd
      for (std::int64_t c = 0; c < width; ++c) sums[c] += static_cast<A>(row[c]);
    }
  });
}

template <class T>
T finished(Accumulator<T> sum, Accumulator<T> divisor) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(sum / divisor);
  } else {
    return static_cast<T>(sum);
  }
}

template <class T>
class Reduction {
 public:
  using A = Accumulator<T>;
  Reduction(const RunArgs& run, const ReducePlan& plan, A divisor)
      : plan_(plan),
        x_(run.inputs[0].as<const T>()),
        y_(run.outputs[0].as<T>()),
        partial_(static_cast<A*>(run.workspace)),
        threads_(run.threads),
        divisor_(divisor),
        blocks_((plan.columns + kColumnBlock - 1) / kColumnBlock) {}

  void run() const {
    const std::int64_t tasks = plan_.kept.elements * blocks_ * plan_.parts;
    if (tasks == 0) return;
    const std::int64_t grain = row_grain(plan_.input_elements / tasks);
    parallel_for(threads_, tasks, grain, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) begin = run_tasks(begin, end);
    });
    if (plan_.parts > 1) add_parts();
  }

 private:
  // Tasks are numbered with the kept places fastest, the parts slowest. Runs those from `begin`
  // that share a part and a block of columns; returns the first one not done.
  std::int64_t run_tasks(std::int64_t begin, std::int64_t end) const {
    const std::int64_t place = begin % plan_.kept.elements;
    const std::int64_t block = begin / plan_.kept.elements % blocks_;
    const std::int64_t part = begin / plan_.kept.elements / blocks_;
    const std::int64_t share = (plan_.reduced.elements + plan_.parts - 1) / plan_.parts;
    SumTask task{.part = part,
                 .first = block * kColumnBlock,
                 .last = std::min(plan_.columns, (block + 1) * kColumnBlock),
                 .begin = std::min(plan_.reduced.elements, part * share),
                 .end = std::min(plan_.reduced.elements, (part + 1) * share)};
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

  void run_task(const SumTask& task) const {
    std::array<A, kColumnBlock> sums;
    if (plan_.columns == 1) {
      sums[0] = sum_places(plan_, x_, task);
    } else {
      sum_columns(plan_, x_, task, sums.data());
    }
    const auto width = static_cast<std::size_t>(task.last - task.first);
    if (plan_.parts > 1) {
      std::copy_n(sums.data(), width, partial_ + task.part * outputs() + task.output);
      return;
    }
    for (std::size_t c = 0; c < width; ++c) {
      y_[task.output + static_cast<std::int64_t>(c)] = finished<T>(sums[c], divisor_);
    }
  }

  void add_parts() const {
    for (std::int64_t i = 0; i < outputs(); ++i) {
      A sum = partial_[i];
      for (std::int64_t part = 1; part < plan_.parts; ++part) sum += partial_[part * outputs() + i];
      y_[i] = finished<T>(sum, divisor_);
    }
  }

  std::int64_t outputs() const { return plan_.kept.elements * plan_.columns; }

  const ReducePlan& plan_;
  const T* x_;
  T* y_;
  A* partial_;
  int threads_;
  A divisor_;
  std::int64_t blocks_;
};

template <class T>
Prepared prepare(const PrepareArgs& args) {
  auto plan = std::make_shared<const ReducePlan>(
      reduce_plan(args.inputs[0].shape(), std::get<ReduceParams>(args.params)));
  const std::int64_t outputs = plan->kept.elements * plan->columns;
  const std::int64_t partial = plan->parts > 1 ? plan->parts * outputs : 0;
  return {.workspace_bytes = static_cast<std::size_t>(partial) * sizeof(Accumulator<T>),
          .state = plan};
}

template <class T>
void run_sum(const RunArgs& run) {
  const auto& plan = *static_cast<const ReducePlan*>(run.state);
  Reduction<T>(run, plan, Accumulator<T>{1}).run();
}

template <class T>
void run_mean(const RunArgs& run) {
  const auto& plan = *static_cast<const ReducePlan*>(run.state);
  Reduction<T>(run, plan, static_cast<double>(plan.reduced.elements)).run();
}

template <class T>
Kernel sum_kernel() {
  return {.name = "reduce_sum", .prepare = prepare<T>, .run = run_sum<T>};
}

template <class T>
Kernel mean_kernel() {
  return {.name = "reduce_mean", .prepare = prepare<T>, .run = run_mean<T>};
}

}  // namespace

void add_reduce(KernelTable& table) {
  table.add("ReduceSum", DType::kF32, sum_kernel<float>());
  table.add("ReduceSum", DType::kF64, sum_kernel<double>());
  table.add("ReduceSum", DType::kI32, sum_kernel<std::int32_t>());
  table.add("ReduceSum", DType::kI64, sum_kernel<std::int64_t>());
  table.add("ReduceMean", DType::kF32, mean_kernel<float>());
  table.add("ReduceMean", DType::kF64, mean_kernel<double>());
}

}  // namespace trainscope::cpu
