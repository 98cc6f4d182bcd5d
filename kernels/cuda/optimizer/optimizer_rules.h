// What SGD and Adam do to each element, wherever the elements lie: in tensors of all parameters, or
// in rows of one.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/optimizer/update_tensors.h"

namespace trainscope::cuda {

template <AdamMode kMode>
struct AdamRule {
  StepNumbers numbers;

  template <typename T>
  struct Factors {
    T decay;  // weight decay: of the gradient in mode Adam, else 1 - learning rate * weight decay
    T gradient_scale;
    T beta1, rest1;  // rest = 1 - beta
    T beta2, rest2;
    T step_size;   // learning rate and bias corrections
    T root_scale;  // of sqrt(v), before epsilon is added
    T epsilon;
  };

  template <typename T>
  __device__ Factors<T> factors(const StepScalars& scalars, double decay, double rate_scale) const {
    const std::int64_t step = *scalars.step;
    const double rate = scalars.rate() * rate_scale;
    const double root = std::sqrt(numbers.correction(numbers.beta2, step));
    const double correction1 = numbers.correction(numbers.beta1, step);
    constexpr bool kHuggingFace = kMode == AdamMode::kHuggingFaceAdamW;
    Factors<T> f;
    f.decay = static_cast<T>(kMode == AdamMode::kAdam ? decay : 1.0 - rate * decay);
    f.gradient_scale = static_cast<T>(scalars.scale());
    f.beta1 = static_cast<T>(numbers.beta1);
    f.rest1 = static_cast<T>(1.0 - numbers.beta1);
    f.beta2 = static_cast<T>(numbers.beta2);
    f.rest2 = static_cast<T>(1.0 - numbers.beta2);
    f.step_size = static_cast<T>(kHuggingFace ? rate * root / correction1 : rate / correction1);
    f.root_scale = static_cast<T>(kHuggingFace ? 1.0 : 1.0 / root);
    f.epsilon = static_cast<T>(numbers.epsilon);
    return f;
  }

  template <typename T>
  __device__ void update(const Factors<T>& f, const UpdatedTensor<T>& tensor,
                         std::int64_t i) const {
    const T p = tensor.old[0][i];
    T g = tensor.gradient[i] * f.gradient_scale;
    if constexpr (kMode == AdamMode::kAdam) g += f.decay * p;
    const T m = f.beta1 * tensor.old[1][i] + f.rest1 * g;
    const T v = f.beta2 * tensor.old[2][i] + f.rest2 * (g * g);
    tensor.next[1][i] = m;
    tensor.next[2][i] = v;
    const T change = f.step_size * m / (std::sqrt(v) * f.root_scale + f.epsilon);
    if constexpr (kMode == AdamMode::kTorchAdamW) tensor.next[0][i] = p * f.decay - change;
    if constexpr (kMode == AdamMode::kHuggingFaceAdamW) tensor.next[0][i] = (p - change) * f.decay;
    if constexpr (kMode == AdamMode::kAdam) tensor.next[0][i] = p - change;
  }
};

enum class Momentum : std::uint8_t { kNone, kPlain, kNesterov };

template <Momentum kMomentum>
struct SgdRule {
  StepNumbers numbers;

  template <typename T>
  struct Factors {
    T decay;
    T gradient_scale;
    T rate;
    T momentum;
    bool first_step;  // whatever the buffer holds then does not count
  };

  template <typename T>
  __device__ Factors<T> factors(const StepScalars& scalars, double decay, double rate_scale) const {
    Factors<T> f;
    f.decay = static_cast<T>(decay);
    f.gradient_scale = static_cast<T>(scalars.scale());
    f.rate = static_cast<T>(scalars.rate() * rate_scale);
    f.momentum = static_cast<T>(numbers.momentum);
    f.first_step = *scalars.step == 1;
    return f;
  }

  template <typename T>
  __device__ void update(const Factors<T>& f, const UpdatedTensor<T>& tensor,
                         std::int64_t i) const {
    const T p = tensor.old[0][i];
    const T g = tensor.gradient[i] * f.gradient_scale + f.decay * p;
    if constexpr (kMomentum == Momentum::kNone) {
      tensor.next[0][i] = p - f.rate * g;
    } else {
      const T kept = f.first_step ? T{0} : f.momentum * tensor.old[1][i];
      const T b = kept + g;
      tensor.next[1][i] = b;
      const T direction = kMomentum == Momentum::kNesterov ? g + f.momentum * b : b;
      tensor.next[0][i] = p - f.rate * direction;
    }
  }
};

// Calls use(rule) with the rule that the parameters ask for.
template <class Use>
void with_adam_rule(const OptimizerParams& params, const Use& use) {
  const StepNumbers numbers = step_numbers(params);
  switch (params.mode) {
    case AdamMode::kTorchAdamW:
      return use(AdamRule<AdamMode::kTorchAdamW>{numbers});
    case AdamMode::kHuggingFaceAdamW:
      return use(AdamRule<AdamMode::kHuggingFaceAdamW>{numbers});
    case AdamMode::kAdam:
      return use(AdamRule<AdamMode::kAdam>{numbers});
  }
}

template <class Use>
void with_sgd_rule(const OptimizerParams& params, const Use& use) {
  const StepNumbers numbers = step_numbers(params);
  if (params.momentum <= 0.0) return use(SgdRule<Momentum::kNone>{numbers});
  if (params.nesterov) return use(SgdRule<Momentum::kNesterov>{numbers});
  use(SgdRule<Momentum::kPlain>{numbers});
}

}  // namespace trainscope::cuda
