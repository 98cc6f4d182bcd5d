// LambStep: Adam's direction, its length set for each parameter by the parameter's own norm (You
// et al., "Large batch optimization for deep learning", ICLR 2020). Three kernels: moments and
// norms by blocks, then the ratios, then the parameters.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/cuda/optimizer/optimizer.h"
#include "kernels/cuda/optimizer/update_tensors.h"
#include "kernels/cuda/support/block_sums.h"

namespace trainscope::cuda {
namespace {

struct Norms {
  double parameter;  // sums of squares
  double update;
};

template <typename T>
struct LambFactors {
  T gradient_scale;
  T beta1, rest1;  // rest = 1 - beta
  T beta2, rest2;
  T m_scale;     // 1 / (1 - beta1^t)
  T root_scale;  // 1 / sqrt(1 - beta2^t)
  T epsilon;
  T decay;

  __device__ T direction(T p, T m, T v) const {
    return m * m_scale / (std::sqrt(v) * root_scale + epsilon) + decay * p;
  }
};

template <typename T>
__device__ LambFactors<T> lamb_factors(const StepNumbers& numbers, const StepScalars& scalars,
                                       double decay) {
  const std::int64_t step = *scalars.step;
  LambFactors<T> f;
  f.gradient_scale = static_cast<T>(scalars.scale());
  f.beta1 = static_cast<T>(numbers.beta1);
  f.rest1 = static_cast<T>(1.0 - numbers.beta1);
  f.beta2 = static_cast<T>(numbers.beta2);
  f.rest2 = static_cast<T>(1.0 - numbers.beta2);
  f.m_scale = static_cast<T>(1.0 / numbers.correction(numbers.beta1, step));
  f.root_scale = static_cast<T>(1.0 / std::sqrt(numbers.correction(numbers.beta2, step)));
  f.epsilon = static_cast<T>(numbers.epsilon);
  f.decay = static_cast<T>(decay);
  return f;
}

// Kept: the parameter, m and v.
struct LambRule {
  static constexpr int kKept = 3;
};
template <typename T>
using LambTensors = UpdatedTensors<T, LambRule>;

// New moments, and norms[block]: the sums of squares of the block's parameters and directions. A
// block computes 8192 elements of one tensor. Bytes: 24 an element: p, gradient, m and v read, m
// and v written once; and 16 a block. FLOPs: 25 an element.
template <typename T>
__global__ void __launch_bounds__(kTensorThreads)
    lamb_moments(const LambTensors<T> tensors, const StepScalars scalars, const StepNumbers numbers,
                 Norms* norms) {
  TRAINSCOPE_SHARED(LambFactors<T>, factors, 1);
  if (*scalars.step == 0) return;
  const BlockOfTensor own = tensors.block_of_tensor(static_cast<std::int32_t>(blockIdx.x));
  const UpdatedTensor<T, LambRule>& tensor = tensors.rows[own.row];
  if (threadIdx.x == 0) factors[0] = lamb_factors<T>(numbers, scalars, tensor.decay);
  __syncthreads();
  const LambFactors<T> f = factors[0];
  double sums[2] = {0.0, 0.0};
  for (std::int64_t i = own.begin + threadIdx.x; i < own.end; i += kTensorThreads) {
    const T p = tensor.kept[0][i];
    const T g = tensor.gradient[i] * f.gradient_scale;
    const T m = f.beta1 * tensor.kept[1][i] + f.rest1 * g;
    const T v = f.beta2 * tensor.kept[2][i] + f.rest2 * (g * g);
    tensor.kept[1][i] = m;
    tensor.kept[2][i] = v;
    const auto direction = static_cast<double>(f.direction(p, m, v));
    sums[0] += static_cast<double>(p) * static_cast<double>(p);
    sums[1] += direction * direction;
  }
  block_sums(sums);
  if (threadIdx.x == 0) norms[blockIdx.x] = {sums[0], sums[1]};
}

// ||p|| / ||update|| within its limits; 1 where one of them is zero.
__device__ double ratio_of(double parameter, double update, const StepNumbers& numbers) {
  if (parameter == 0.0 || update == 0.0) return 1.0;
  const double ratio = std::sqrt(parameter) / std::sqrt(update);
  const double limited = numbers.ratio_max < ratio ? numbers.ratio_max : ratio;
  return numbers.ratio_min < limited ? limited : numbers.ratio_min;
}

// ratios[parameter] from the norms of its blocks. A block a parameter. Bytes: 16 for each of its
// blocks of 8192 elements read, 8 written. FLOPs: 2 for each of them.
template <typename T>
__global__ void __launch_bounds__(kTensorThreads)
    lamb_ratios(const LambTensors<T> tensors, const StepNumbers numbers, const Norms* norms,
                double* ratios) {
  double sums[2] = {0.0, 0.0};
  const std::int32_t end = tensors.first_block[blockIdx.x + 1];
  for (auto block = tensors.first_block[blockIdx.x] + static_cast<std::int32_t>(threadIdx.x);
       block < end; block += static_cast<std::int32_t>(blockDim.x)) {
    sums[0] += norms[block].parameter;
    sums[1] += norms[block].update;
  }
  block_sums(sums);
  if (threadIdx.x == 0) ratios[blockIdx.x] = ratio_of(sums[0], sums[1], numbers);
}

// p -= rate * ratio * direction, of the moments that lamb_moments left. A block computes 8192
// elements of one tensor. Bytes: 16 an element: p, m and v read, p written once. FLOPs: 15 an
// element.
template <typename T>
__global__ void __launch_bounds__(kTensorThreads)
    lamb_move(const LambTensors<T> tensors, const StepScalars scalars, const StepNumbers numbers,
              const double* ratios) {
  TRAINSCOPE_SHARED(LambFactors<T>, factors, 1);
  TRAINSCOPE_SHARED(T, shared_rate, 1);
  if (*scalars.step == 0) return;
  const BlockOfTensor own = tensors.block_of_tensor(static_cast<std::int32_t>(blockIdx.x));
  const UpdatedTensor<T, LambRule>& tensor = tensors.rows[own.row];
  if (threadIdx.x == 0) {
    factors[0] = lamb_factors<T>(numbers, scalars, tensor.decay);
    shared_rate[0] = static_cast<T>(scalars.rate() * tensor.rate_scale * ratios[own.row]);
  }
  __syncthreads();
  const LambFactors<T> f = factors[0];
  const T rate = shared_rate[0];
  T* const parameters = tensor.kept[0];
  const T* const m = tensor.kept[1];
  const T* const v = tensor.kept[2];
#pragma unroll 1  // ptxas would spill registers of an unrolled loop
  for (std::int64_t i = own.begin + threadIdx.x; i < own.end; i += kTensorThreads) {
    parameters[i] -= rate * f.direction(parameters[i], m[i], v[i]);
  }
}

// The workspace: norms of each block, then the ratio of each parameter.
struct LambWorkspace {
  std::int64_t blocks = 0;
  std::size_t parameters = 0;

  explicit LambWorkspace(const Params& params, std::span<const TensorView> inputs)
      : parameters(std::get<OptimizerParams>(params).weight_decay.size()) {
    for (const TensorView& input : inputs.first(parameters)) {
      blocks += tensor_blocks(input.elements());
    }
  }
  std::size_t bytes() const {
    return static_cast<std::size_t>(blocks) * sizeof(Norms) + parameters * sizeof(double);
  }
};

Prepared prepare_lamb(const PrepareArgs& args) {
  return {.workspace_bytes = LambWorkspace(args.params, args.inputs).bytes(), .state = nullptr};
}

template <typename T>
void lamb_step(const RunArgs& args) {
  keep_in_place(args);
  const LambWorkspace workspace(args.params, args.inputs);
  auto* norms = static_cast<Norms*>(args.workspace);
  auto* ratios = reinterpret_cast<double*>(norms + workspace.blocks);
  const StepScalars scalars = step_scalars(args.inputs);
  const StepNumbers numbers = step_numbers(std::get<OptimizerParams>(args.params));
  for_each_table<T, LambRule>(args, [&](const LambTensors<T>& tensors, std::int64_t first) {
    const Grid grid = tensor_grid(tensors.blocks());
    launch(args.call, grid, lamb_moments<T>, tensors, scalars, numbers, norms + first);
    launch(args.call, tensor_grid(tensors.count), lamb_ratios<T>, tensors, numbers, norms + first,
           ratios);
    launch(args.call, grid, lamb_move<T>, tensors, scalars, numbers, ratios);
    ratios += tensors.count;
  });
}

}  // namespace

void add_lamb(KernelTable& table) {
  table.add("LambStep", DType::kF32,
            {.name = "lamb_step.cuda",
             .supports = all_outputs_present,
             .prepare = prepare_lamb,
             .run = lamb_step<float>});
}

}  // namespace trainscope::cuda
