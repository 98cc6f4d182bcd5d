// Tensors of all parameters in few launches: tables of addresses that are passed by value, and
// which block of a launch works on which tensor.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/launch.h"

namespace trainscope::cuda {

// Elements that a block works on, and its threads. Sums are formed by blocks of so many.
inline constexpr std::int64_t kTensorBlock = 8192;
inline constexpr unsigned kTensorThreads = 256;

inline std::int64_t tensor_blocks(std::int64_t elements) {
  return (elements + kTensorBlock - 1) / kTensorBlock;
}

// Up to kMost rows, each of one tensor; block b works on the last row whose first block is <= b.
template <class Row, int kMost>
struct TensorTable {
  Row rows[kMost];
  std::int32_t first_block[kMost + 1];  // of row k; behind the last row: of all
  std::int32_t count;

  __host__ __device__ std::int32_t blocks() const { return first_block[count]; }
  // Adds a row for a tensor of `elements`; false when the table is full.
  bool add(const Row& row, std::int64_t elements) {
    if (count == kMost) return false;
    rows[count] = row;
    ++count;
    first_block[count] =
        first_block[count - 1] + static_cast<std::int32_t>(tensor_blocks(elements));
    return true;
  }
  void clear() {
    count = 0;
    first_block[0] = 0;
  }
  __device__ int row_of(std::int32_t block) const {
    int low = 0;
    int high = count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (first_block[middle] <= block) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
};

// Elements [begin, end) of a tensor: those of one block.
struct BlockOfTensor {
  std::int64_t begin;
  std::int64_t end;
};
__device__ inline BlockOfTensor block_of_tensor(std::int32_t block_in_tensor,
                                                std::int64_t elements) {
  const std::int64_t begin = block_in_tensor * kTensorBlock;
  const std::int64_t end = begin + kTensorBlock;
  return {begin, end < elements ? end : elements};
}

// --- A step's tensors ----------------------------------------------------------------------------

inline constexpr std::size_t kMostKept = 4;  // the parameter and what is kept beside it

// One parameter with its momentum, or m and v, or RMSprop's three.
template <typename T>
struct UpdatedTensor {
  const T* gradient;
  const T* old[kMostKept];
  T* next[kMostKept];  // each may be its old one
  std::int64_t elements;
  double decay;       // weight decay
  double rate_scale;  // what the learning rate is multiplied with
};

template <typename T>
using UpdatedTensors = TensorTable<UpdatedTensor<T>, 36>;

// Where the scalars of a step lie in device memory: a replayed graph reads new ones.
struct StepScalars {
  const void* learning_rate;
  const void* gradient_scale;
  const std::int64_t* step;
  bool rate_is_f64;
  bool scale_is_f64;

  __device__ static double number(const void* at, bool is_f64) {
    return is_f64 ? *static_cast<const double*>(at)
                  : static_cast<double>(*static_cast<const float*>(at));
  }
  __device__ double rate() const { return number(learning_rate, rate_is_f64); }
  __device__ double scale() const { return number(gradient_scale, scale_is_f64); }
};

// The inputs' last three.
inline StepScalars step_scalars(std::span<const TensorView> inputs) {
  const auto scalars = inputs.last(3);
  return {.learning_rate = scalars[0].data,
          .gradient_scale = scalars[1].data,
          .step = scalars[2].as<const std::int64_t>(),
          .rate_is_f64 = scalars[0].type.dtype == DType::kF64,
          .scale_is_f64 = scalars[1].type.dtype == DType::kF64};
}

// Of OptimizerParams what is the same for all parameters.
struct StepNumbers {
  double momentum;
  double beta1;
  double beta2;
  double epsilon;
  double ratio_min;
  double ratio_max;
  bool bias_correction;

  // 1 - beta^t, or 1 without bias correction.
  __device__ double correction(double beta, std::int64_t step) const {
    return bias_correction ? 1.0 - std::pow(beta, static_cast<double>(step)) : 1.0;
  }
};

inline StepNumbers step_numbers(const OptimizerParams& params) {
  return {.momentum = params.momentum,
          .beta1 = params.beta1,
          .beta2 = params.beta2,
          .epsilon = params.epsilon,
          .ratio_min = params.ratio_min,
          .ratio_max = params.ratio_max,
          .bias_correction = params.bias_correction};
}

// Parameter `index` of a step whose inputs are groups (parameters, gradients, states ...) of
// tensors, and whose outputs are the same without gradients.
template <typename T>
UpdatedTensor<T> updated_tensor(const RunArgs& args, std::size_t index) {
  const auto& params = std::get<OptimizerParams>(args.params);
  const std::size_t count = params.weight_decay.size();
  const std::size_t kept = args.outputs.size() / count;
  UpdatedTensor<T> tensor{};
  tensor.gradient = args.inputs[count + index].as<const T>();
  for (std::size_t group = 0; group < kept; ++group) {
    const std::size_t input = group == 0 ? 0 : group + 1;
    tensor.old[group] = args.inputs[input * count + index].as<const T>();
    tensor.next[group] = args.outputs[group * count + index].as<T>();
  }
  tensor.elements = args.inputs[index].elements();
  tensor.decay = params.weight_decay[index];
  tensor.rate_scale = params.learning_rate_scale[index];
  return tensor;
}

// Calls f(tensors, first) for as many tables as the parameters fill; `first` is how many blocks
// came before.
template <typename T, class F>
void for_each_table(const RunArgs& args, F f) {
  const std::size_t count = std::get<OptimizerParams>(args.params).weight_decay.size();
  UpdatedTensors<T> tensors;
  tensors.clear();
  std::int64_t first = 0;
  const auto pass = [&] {
    if (tensors.count > 0) f(tensors, first);
    first += tensors.blocks();
    tensors.clear();
  };
  for (std::size_t index = 0; index < count; ++index) {
    const UpdatedTensor<T> tensor = updated_tensor<T>(args, index);
    if (tensors.add(tensor, tensor.elements)) continue;
    pass();
    tensors.add(tensor, tensor.elements);
  }
  pass();
}

inline Grid tensor_grid(std::int32_t blocks) {
  return {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kTensorThreads)};
}

// A step that leaves out a next state is refused instead of computed in part.
Support all_outputs_present(const PrepareArgs& args);

}  // namespace trainscope::cuda
