// The elements of all parameters in one pass by a rule, which says what an optimizer does to one.
//
// A rule has Factors<T>, numbers that are the same for all elements of a parameter;
// factors(scalars, decay, rate_scale), which computes them; and update(factors, tensor, i).
#pragma once

#include <cstdint>

#include "kernels/cuda/optimizer/tensor_table.h"

namespace trainscope::cuda {

// What step 0 does: nothing changes, whatever the gradients hold.
template <typename T>
__device__ void keep_elements(const UpdatedTensor<T>& tensor, std::size_t group, std::int64_t begin,
                              std::int64_t end) {
  if (tensor.next[group] == nullptr || tensor.next[group] == tensor.old[group]) return;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    tensor.next[group][i] = tensor.old[group][i];
  }
}

// Bytes: each tensor of a parameter read and written once, and its gradient read.
template <class Rule, typename T>
__global__ void __launch_bounds__(kTensorThreads)
    update_tensors(const UpdatedTensors<T> tensors, const StepScalars scalars, const Rule rule) {
  using Factors = typename Rule::template Factors<T>;
  TRAINSCOPE_SHARED(Factors, factors, 1);
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const int row = tensors.row_of(block);
  const UpdatedTensor<T>& tensor = tensors.rows[row];
  const BlockOfTensor own = block_of_tensor(block - tensors.first_block[row], tensor.elements);
  if (*scalars.step == 0) {
    for (std::size_t group = 0; group < kMostKept; ++group) {
      keep_elements(tensor, group, own.begin, own.end);
    }
    return;
  }
  if (threadIdx.x == 0) {
    factors[0] = rule.template factors<T>(scalars, tensor.decay, tensor.rate_scale);
  }
  __syncthreads();
  const Factors f = factors[0];
  for (std::int64_t i = own.begin + threadIdx.x; i < own.end; i += blockDim.x) {
    rule.update(f, tensor, i);
  }
}

template <typename T, class Rule>
void run_update(const RunArgs& args, const Rule& rule) {
  const StepScalars scalars = step_scalars(args.inputs);
  for_each_table<T>(args, [&](const UpdatedTensors<T>& tensors, std::int64_t) {
    launch(args.call, tensor_grid(tensors.blocks()), update_tensors<Rule, T>, tensors, scalars,
           rule);
  });
}

}  // namespace trainscope::cuda
