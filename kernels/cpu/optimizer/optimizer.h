// What the optimizer steps share: their inputs by parameter, and blocks of elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

// Chunk [begin, end) of tensor `index`.
struct Chunk {
  std::size_t index = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// A step that leaves out a next state is refused instead of computed in part.
Support all_outputs_present(const PrepareArgs& args);

// All tensors in chunks of at most `block` elements, whatever the number of threads: for sums whose
// bits must not depend on it.
std::vector<Chunk> fixed_blocks(std::span<const TensorView> tensors, std::int64_t block);

// Elements of such a chunk.
inline constexpr std::int64_t kSumBlock = 8192;

// The tensors of a step by group (parameters, gradients, states ...) and the scalars behind them:
// learning rate, gradient scale, step.
class StepInputs {
 public:
  explicit StepInputs(const RunArgs& args);

  const OptimizerParams& params() const { return params_; }
  double gradient_scale() const { return gradient_scale_; }
  std::int64_t step() const { return step_; }
  double rate(std::size_t parameter) const {
    return learning_rate_ * params_.learning_rate_scale[parameter];
  }
  double decay(std::size_t parameter) const { return params_.weight_decay[parameter]; }
  // 1 - beta1^t and 1 - beta2^t, or 1 without bias correction.
  double correction1() const;
  double correction2() const;
  // Step 0: nothing changes, whatever the gradients hold.
  bool is_left_out() const { return step_ == 0; }
  // The parameters and what is kept beside them, one tensor a parameter each.
  std::size_t kept_groups() const { return args_.outputs.size() / count_; }

  template <typename T>
  const T* input(std::size_t group, const Chunk& chunk) const {
    return args_.inputs[group * count_ + chunk.index].as<const T>() + chunk.begin;
  }
  template <typename T>
  T* output(std::size_t group, const Chunk& chunk) const {
    return args_.outputs[group * count_ + chunk.index].as<T>() + chunk.begin;
  }

 private:
  const RunArgs& args_;
  const OptimizerParams& params_;
  std::size_t count_;  // parameters
  double learning_rate_;
  double gradient_scale_;
  std::int64_t step_;
};

// Every output gets the bytes of the input that it is the next state of.
void keep_states(const RunArgs& args);

void add_optimizer(KernelTable& table);
void add_lamb(KernelTable& table);

}  // namespace trainscope::cpu
