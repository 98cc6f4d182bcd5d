// Tensors of all parameters in one launch: a table of addresses that is passed by value, and which
// block of the launch works on which tensor. A table has 602 parameters of AdamW or LAMB, 2322
// gradients of the global norm; of more there is a launch for each table that they fill. A table in
// the workspace instead would have to be copied there at each replay, because other calls use that
// memory in between: a copy and a launch, where up to 1204 parameters take two launches.
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

// Elements [begin, end) of the tensor of a row: those of one block.
struct BlockOfTensor {
  int row;
  std::int64_t begin;
  std::int64_t end;
};

// One row a tensor, as many as fit into an argument of a launch. Block b works on the last row
// whose first block is <= b.
template <class Row>
struct TensorTable {
  static constexpr std::size_t kOtherArgumentBytes = 256;  // scalars, numbers of a rule
  static constexpr std::size_t kRowBytes =
      sizeof(Row) + sizeof(std::int32_t) + sizeof(std::uint16_t);
  static constexpr int kMost =
      static_cast<int>((kMaxArgumentBytes - kOtherArgumentBytes) / kRowBytes);

  Row rows[kMost];
  std::int32_t first_block[kMost + 1];  // of row k; behind the last row: of all
  std::int32_t count;
  std::uint16_t last_elements[kMost];  // of row k's last block

  __host__ __device__ std::int32_t blocks() const { return first_block[count]; }
  // Adds a row for a tensor of `elements`; false when the table is full.
  bool add(const Row& row, std::int64_t elements) {
    if (count == kMost) return false;
    const std::int64_t blocks = tensor_blocks(elements);
    rows[count] = row;
    last_elements[count] = static_cast<std::uint16_t>(elements - (blocks - 1) * kTensorBlock);
    ++count;
    first_block[count] = first_block[count - 1] + static_cast<std::int32_t>(blocks);
    return true;
  }
  void clear() {
    count = 0;
    first_block[0] = 0;
  }
  __device__ BlockOfTensor block_of_tensor(std::int32_t block) const {
    const int row = row_of(block);
    const std::int64_t begin = (block - first_block[row]) * kTensorBlock;
    const bool is_last = block + 1 == first_block[row + 1];
    return {row, begin, begin + (is_last ? last_elements[row] : kTensorBlock)};
  }

 private:
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

// --- A step's tensors ----------------------------------------------------------------------------

// One parameter with what a rule keeps of it: kept[0] the parameter itself, then its momentum, or m
// and v, or RMSprop's three. All are changed in place.
template <typename T, class Rule>
struct UpdatedTensor {
  const T* gradient;
  T* kept[Rule::kKept];
  double decay;       // weight decay
  double rate_scale;  // what the learning rate is multiplied with
};

template <typename T, class Rule>
using UpdatedTensors = TensorTable<UpdatedTensor<T, Rule>>;

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

// Copies what is kept to where its next values go, unless it lies there, as in a plan whose updates
// are in place: kernels change it in place. Inputs are groups (parameters, gradients, states ...)
// of as many tensors as there are parameters; outputs are the same without gradients.
inline void keep_in_place(const RunArgs& args) {
  const std::size_t count = std::get<OptimizerParams>(args.params).weight_decay.size();
  for (std::size_t k = 0; k < args.outputs.size(); ++k) {
    const TensorView& old = args.inputs[k < count ? k : k + count];
    const TensorView& next = args.outputs[k];
    if (next.data != old.data) copy_bytes(args.call, next.data, old.data, next.type.bytes());
  }
}

// Parameter `index` of a step of such inputs and outputs.
template <typename T, class Rule>
UpdatedTensor<T, Rule> updated_tensor(const RunArgs& args, std::size_t index) {
  const auto& params = std::get<OptimizerParams>(args.params);
  const std::size_t count = params.weight_decay.size();
  UpdatedTensor<T, Rule> tensor{};
  tensor.gradient = args.inputs[count + index].as<const T>();
  for (std::size_t group = 0; group < Rule::kKept; ++group) {
    tensor.kept[group] = args.outputs[group * count + index].as<T>();
  }
  tensor.decay = params.weight_decay[index];
  tensor.rate_scale = params.learning_rate_scale[index];
  return tensor;
}

// Calls f(tensors, first) for as many tables as the parameters fill; `first` is how many blocks
// came before.
template <typename T, class Rule, class F>
void for_each_table(const RunArgs& args, F f) {
  const std::size_t count = std::get<OptimizerParams>(args.params).weight_decay.size();
  UpdatedTensors<T, Rule> tensors;
  tensors.clear();
  std::int64_t first = 0;
  const auto pass = [&] {
    if (tensors.count > 0) f(tensors, first);
    first += tensors.blocks();
    tensors.clear();
  };
  for (std::size_t index = 0; index < count; ++index) {
    const UpdatedTensor<T, Rule> tensor = updated_tensor<T, Rule>(args, index);
    const std::int64_t elements = args.inputs[index].elements();
    if (tensors.add(tensor, elements)) continue;
    pass();
    tensors.add(tensor, elements);
  }
  pass();
}

inline Grid tensor_grid(std::int32_t blocks) {
  return {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kTensorThreads)};
}

// A step that leaves out a next state is refused instead of computed in part.
Support all_outputs_present(const PrepareArgs& args);

}  // namespace trainscope::cuda
