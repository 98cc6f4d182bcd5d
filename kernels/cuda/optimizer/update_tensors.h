// The elements of all parameters in one pass by a rule, which says what an optimizer does to one.
//
// A rule has kKept, how many numbers are kept of an element: the parameter and its states;
// Factors<T>, numbers that are the same for all elements of a parameter; factors(scalars, decay,
// rate_scale), which computes them; and update(factors, gradient, kept), which changes what is
// kept.
#pragma once

#include <cstdint>

#include "kernels/cuda/optimizer/tensor_table.h"
#include "kernels/cuda/support/pack.h"

namespace trainscope::cuda {

// Whether packs may begin at the tensor's first elements, and so at those of each block.
template <typename T, class Rule>
__device__ bool takes_packs(const UpdatedTensor<T, Rule>& tensor) {
  constexpr std::uintptr_t kBytes = alignof(Pack<T, kPackWidth>);
  std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(tensor.gradient);
#pragma unroll
  for (int group = 0; group < Rule::kKept; ++group) {
    bits |= reinterpret_cast<std::uintptr_t>(tensor.kept[group]);
  }
  return bits % kBytes == 0;
}

// Elements [begin, end) of a tensor, kWidth at a time.
template <int kWidth, class Rule, typename T>
__device__ __forceinline__ void update_elements(const Rule& rule,
                                                const typename Rule::template Factors<T>& factors,
                                                const UpdatedTensor<T, Rule>& tensor,
                                                std::int64_t begin, std::int64_t end) {
  using Elements = Pack<T, kWidth>;
  for (std::int64_t i = begin + threadIdx.x * kWidth; i < end; i += kTensorThreads * kWidth) {
    const Elements gradient = *reinterpret_cast<const Elements*>(tensor.gradient + i);
    Elements kept[Rule::kKept];
#pragma unroll
    for (int group = 0; group < Rule::kKept; ++group) {
      kept[group] = *reinterpret_cast<const Elements*>(tensor.kept[group] + i);
    }
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      T own[Rule::kKept];
#pragma unroll
      for (int group = 0; group < Rule::kKept; ++group) own[group] = kept[group].values[k];
      rule.update(factors, gradient.values[k], own);
#pragma unroll
      for (int group = 0; group < Rule::kKept; ++group) kept[group].values[k] = own[group];
    }
#pragma unroll
    for (int group = 0; group < Rule::kKept; ++group) {
      *reinterpret_cast<Elements*>(tensor.kept[group] + i) = kept[group];
    }
  }
}

// The same, four at a time where all of the tensor's addresses allow it.
template <class Rule, typename T>
__device__ __forceinline__ void update_range(const Rule& rule,
                                             const typename Rule::template Factors<T>& factors,
                                             const UpdatedTensor<T, Rule>& tensor,
                                             std::int64_t begin, std::int64_t end) {
  const std::int64_t whole =
      takes_packs(tensor) ? begin + (end - begin) / kPackWidth * kPackWidth : begin;
  update_elements<kPackWidth>(rule, factors, tensor, begin, whole);
  update_elements<1>(rule, factors, tensor, whole, end);
}

// New values of all parameters and their states, as `rule` says; none at step 0, whatever the
// gradients hold. A block computes 8192 elements of one tensor, a thread four at a time. Bytes: 8
// kKept + 4 an element: the gradient read, what is kept read and written once. FLOPs: the rule's.
template <class Rule, typename T>
__global__ void __launch_bounds__(kTensorThreads)
    update_tensors(const UpdatedTensors<T, Rule> tensors, const StepScalars scalars,
                   const Rule rule) {
  using Factors = typename Rule::template Factors<T>;
  TRAINSCOPE_SHARED(Factors, factors, 1);
  if (*scalars.step == 0) return;
  const BlockOfTensor own = tensors.block_of_tensor(static_cast<std::int32_t>(blockIdx.x));
  const UpdatedTensor<T, Rule>& tensor = tensors.rows[own.row];
  if (threadIdx.x == 0) {
    factors[0] = rule.template factors<T>(scalars, tensor.decay, tensor.rate_scale);
  }
  __syncthreads();
  update_range(rule, Factors(factors[0]), tensor, own.begin, own.end);
}

template <typename T, class Rule>
void run_update(const RunArgs& args, const Rule& rule) {
  keep_in_place(args);
  const StepScalars scalars = step_scalars(args.inputs);
  for_each_table<T, Rule>(args,
                          [&](const UpdatedTensors<T, Rule>& tensors, std::int64_t /*first*/) {
                            launch(args.call, tensor_grid(tensors.blocks()),
                                   update_tensors<Rule, T>, tensors, scalars, rule);
                          });
}

}  // namespace trainscope::cuda
