// What SGD and Adam do to each element, wherever the elements lie: in tensors of all parameters, or
// in rows of one. FLOPs are of an element, a division or root 4, as costs of ops count them.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/optimizer/update_tensors.h"

namespace trainscope::cuda {

// Kept: the parameter, m and v. FLOPs: 21, in mode Adam 22.
template <AdamMode kMode>
struct AdamRule {
  static constexpr int kKept = 3;
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
  __device__ void update(const Factors<T>& f, T gradient, T (&kept)[kKept]) const {
    const T p = kept[0];
    T g = gradient * f.gradient_scale;
    if constexpr (kMode == AdamMode::kAdam) g += f.decay * p;
    const T m = f.beta1 * kept[1] + f.rest1 * g;
    const T v = f.beta2 * kept[2] + f.rest2 * (g * g);
    const T change = f.step_size * m / (std::sqrt(v) * f.root_scale + f.epsilon);
    if constexpr (kMode == AdamMode::kTorchAdamW) kept[0] = p * f.decay - change;
    if constexpr (kMode == AdamMode::kHuggingFaceAdamW) kept[0] = (p - change) * f.decay;
    if constexpr (kMode == AdamMode::kAdam) kept[0] = p - change;
    kept[1] = m;
    kept[2] = v;
  }
};

enum class Momentum : std::uint8_t { kNone, kPlain, kNesterov };

// Kept: the parameter, and the buffer where there is a momentum. FLOPs: 5, 7 with a momentum, 9
// with Nesterov's.
template <Momentum kMomentum>
struct SgdRule {
  static constexpr int kKept = kMomentum == Momentum::kNone ? 1 : 2;
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
  __device__ void update(const Factors<T>& f, T gradient, T (&kept)[kKept]) const {
    const T p = kept[0];
    const T g = gradient * f.gradient_scale + f.decay * p;
    if constexpr (kMomentum == Momentum::kNone) {
      kept[0] = p - f.rate * g;
    } else {
      const T b = (f.first_step ? T{0} : f.momentum * kept[1]) + g;
      const T direction = kMomentum == Momentum::kNesterov ? g + f.momentum * b : b;
      kept[0] = p - f.rate * direction;
      kept[1] = b;
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
