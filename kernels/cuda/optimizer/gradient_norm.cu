// What precedes an optimizer's step: accumulation, the global norm, the scale of the gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/cuda/optimizer/optimizer.h"
#include "kernels/cuda/optimizer/tensor_table.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

// --- GlobalNorm(gradients ...) -> norm [] --------------------------------------------------------

template <typename T>
using NormTensors = TensorTable<const T*>;

Prepared prepare_norm(const PrepareArgs& args) {
  std::int64_t blocks = 0;
  for (const TensorView& input : args.inputs) blocks += tensor_blocks(input.elements());
  return {.workspace_bytes = static_cast<std::size_t>(blocks) * sizeof(double), .state = nullptr};
}

// sums[b] = sum of the squares of block b's elements, 8192 of one tensor. Bytes: 4 an element: all
// tensors read once; and 8 a block written. FLOPs: 2 an element, in f64.
template <typename T>
__global__ void __launch_bounds__(kTensorThreads)
    sums_of_squares(const NormTensors<T> tensors, double* sums) {
  const BlockOfTensor own = tensors.block_of_tensor(static_cast<std::int32_t>(blockIdx.x));
  const T* x = tensors.rows[own.row];
  double sum = 0.0;
  for (std::int64_t i = own.begin + threadIdx.x; i < own.end; i += kTensorThreads) {
    const auto value = static_cast<double>(x[i]);
    sum = std::fma(value, value, sum);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

constexpr unsigned kFinishThreads = 1024;

// The root of all sums, divided. One block, so that they are added in a fixed order. Bytes: 8 for
// each 8192 elements read. FLOPs: 1 for each of these.
template <typename T>
__global__ void __launch_bounds__(kFinishThreads)
    finish_norm(const double* sums, std::int64_t count, double divisor, T* norm) {
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *norm = static_cast<T>(std::sqrt(sum) / divisor);
}

template <typename T>
void global_norm(const RunArgs& args) {
  auto* sums = static_cast<double*>(args.workspace);
  NormTensors<T> tensors;
  tensors.clear();
  std::int64_t first = 0;
  const auto pass = [&] {
    launch(args.call, tensor_grid(tensors.blocks()), sums_of_squares<T>, tensors, sums + first);
    first += tensors.blocks();
    tensors.clear();
  };
  for (const TensorView& input : args.inputs) {
    const auto* x = input.as<const T>();
    if (tensors.add(x, input.elements())) continue;
    pass();
    tensors.add(x, input.elements());
  }
  pass();
  launch(args.call, {.blocks = dim3(1), .threads = dim3(kFinishThreads)}, finish_norm<T>, sums,
         first, std::get<ClipParams>(args.params).divisor, args.outputs[0].as<T>());
}

// --- GradientScale(norm []) -> scale [] ----------------------------------------------------------

// A norm that is NaN gives a NaN scale. One thread. Bytes: 4 read, 4 written. FLOPs: 9.
template <typename T>
__global__ void scale_of_norm(const T* norm, double max_norm, double divisor, T* result) {
  double scale = 1.0;
  if (max_norm > 0.0) {
    scale = max_norm / (static_cast<double>(*norm) + 1e-6);
    if (scale > 1.0) scale = 1.0;
  }
  *result = static_cast<T>(scale / divisor);
}

template <typename T>
void gradient_scale(const RunArgs& args) {
  const auto& params = std::get<ClipParams>(args.params);
  launch(args.call, {.blocks = dim3(1), .threads = dim3(1)}, scale_of_norm<T>,
         args.inputs[0].as<const T>(), params.max_norm, params.divisor, args.outputs[0].as<T>());
}

// --- Accumulate(sum, gradient, micro_step []) -> sum ---------------------------------------------

constexpr std::int64_t kAccumulateBlock = 1024;  // elements of a block of kTeamThreads

// Micro-step 0 begins a new sum, whatever the old one holds. A block computes 1024 elements. Bytes:
// 12 an element: two reads, one write; 8 at micro-step 0. FLOPs: 1 an element.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    accumulate_elements(const T* sum, const T* gradient, const std::int64_t* micro_step,
                        std::int64_t elements, T* result) {
  const bool begins = *micro_step == 0;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += threads) {
    result[i] = begins ? gradient[i] : sum[i] + gradient[i];
  }
}

template <typename T>
void accumulate(const RunArgs& args) {
  const std::int64_t elements = args.outputs[0].elements();
  launch(args.call,
         {.blocks = team_blocks(elements, kAccumulateBlock), .threads = dim3(kTeamThreads)},
         accumulate_elements<T>, args.inputs[0].as<const T>(), args.inputs[1].as<const T>(),
         args.inputs[2].as<const std::int64_t>(), elements, args.outputs[0].as<T>());
}

template <typename T>
void add_norm_for(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("GlobalNorm", dtype,
            {.name = "global_norm.cuda", .prepare = prepare_norm, .run = global_norm<T>});
  table.add("GradientScale", dtype, {.name = "gradient_scale.cuda", .run = gradient_scale<T>});
  table.add("Accumulate", dtype, {.name = "accumulate.cuda", .run = accumulate<T>});
}

}  // namespace

void add_gradient_norm(KernelTable& table) { add_norm_for<float>(table); }

}  // namespace trainscope::cuda
