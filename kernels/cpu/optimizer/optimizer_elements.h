// What SGD and Adam do to each element, wherever the elements lie: chunks of all parameters, or
// rows of one.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/optimizer/optimizer.h"

namespace trainscope::cpu {

// Elements of one parameter, and of what is kept beside it: momentum, or m and v, or RMSprop's
// three.
template <typename T>
struct UpdatedElements {
  std::int64_t count = 0;
  const T* gradient = nullptr;
  std::array<const T*, 4> old{};
  std::array<T*, 4> next{};
};

// In the loops below each output may be its input: the compiler is told (omp simd) that this is
// the only way in which they overlap. Factors are copies: no store can change them.

template <typename T>
struct AdamFactors {
  T decay;  // weight decay: of the gradient in mode Adam, else 1 - learning rate * weight decay
  T gradient_scale;
  T beta1, rest1;  // rest = 1 - beta
  T beta2, rest2;
  T step_size;   // learning rate and bias corrections
  T root_scale;  // of sqrt(v), before epsilon is added
  T epsilon;
};

template <typename T, AdamMode kMode>
AdamFactors<T> adam_factors(const StepInputs& in, std::size_t parameter) {
  const OptimizerParams& params = in.params();
  const double rate = in.rate(parameter);
  const double decay = in.decay(parameter);
  const double root = std::sqrt(in.correction2());
  AdamFactors<T> factors{.decay = static_cast<T>(1.0 - rate * decay),
                         .gradient_scale = static_cast<T>(in.gradient_scale()),
                         .beta1 = static_cast<T>(params.beta1),
                         .rest1 = static_cast<T>(1.0 - params.beta1),
                         .beta2 = static_cast<T>(params.beta2),
                         .rest2 = static_cast<T>(1.0 - params.beta2),
                         .step_size = static_cast<T>(rate / in.correction1()),
                         .root_scale = static_cast<T>(1.0 / root),
                         .epsilon = static_cast<T>(params.epsilon)};
  if constexpr (kMode == AdamMode::kAdam) factors.decay = static_cast<T>(decay);
  if constexpr (kMode == AdamMode::kHuggingFaceAdamW) {
    factors.step_size = static_cast<T>(rate * root / in.correction1());
    factors.root_scale = T{1};
  }
  return factors;
}

template <AdamMode kMode, typename T>
void adam_elements(AdamFactors<T> f, const UpdatedElements<T>& elements) {
  const T* p = elements.old[0];
  const T* gradient = elements.gradient;
  const T* m = elements.old[1];
  const T* v = elements.old[2];
  T* new_p = elements.next[0];
  T* new_m = elements.next[1];
  T* new_v = elements.next[2];
#pragma omp simd
  for (std::int64_t i = 0; i < elements.count; ++i) {
    T g = gradient[i] * f.gradient_scale;
    if constexpr (kMode == AdamMode::kAdam) g += f.decay * p[i];
    const T m_i = f.beta1 * m[i] + f.rest1 * g;
    const T v_i = f.beta2 * v[i] + f.rest2 * (g * g);
    new_m[i] = m_i;
    new_v[i] = v_i;
    const T change = f.step_size * m_i / (std::sqrt(v_i) * f.root_scale + f.epsilon);
    if constexpr (kMode == AdamMode::kTorchAdamW) new_p[i] = p[i] * f.decay - change;
    if constexpr (kMode == AdamMode::kHuggingFaceAdamW) new_p[i] = (p[i] - change) * f.decay;
    if constexpr (kMode == AdamMode::kAdam) new_p[i] = p[i] - change;
  }
}

// Calls use(update), where update(elements) is what the step does to elements of the parameter.
template <typename T, typename Use>
void with_adam_update(const StepInputs& in, std::size_t parameter, const Use& use) {
  const auto with_mode = [&]<AdamMode kMode>() {
    const AdamFactors<T> factors = adam_factors<T, kMode>(in, parameter);
    use([&factors](const UpdatedElements<T>& elements) {
      adam_elements<kMode>(factors, elements);
    });
  };
  switch (in.params().mode) {
    case AdamMode::kTorchAdamW:
      return with_mode.template operator()<AdamMode::kTorchAdamW>();
    case AdamMode::kHuggingFaceAdamW:
      return with_mode.template operator()<AdamMode::kHuggingFaceAdamW>();
    case AdamMode::kAdam:
      return with_mode.template operator()<AdamMode::kAdam>();
  }
}

template <typename T>
struct SgdFactors {
  T decay;
  T gradient_scale;
  T rate;
  T momentum;
  bool first_step;  // whatever the buffer holds then does not count
};

template <typename T>
void sgd_elements(SgdFactors<T> f, const UpdatedElements<T>& elements) {
  const T* p = elements.old[0];
  const T* gradient = elements.gradient;
  T* new_p = elements.next[0];
#pragma omp simd
  for (std::int64_t i = 0; i < elements.count; ++i) {
    new_p[i] = p[i] - f.rate * (gradient[i] * f.gradient_scale + f.decay * p[i]);
  }
}

template <bool kNesterov, typename T>
void sgd_momentum_elements(SgdFactors<T> f, const UpdatedElements<T>& elements) {
  const T* p = elements.old[0];
  const T* gradient = elements.gradient;
  const T* buffer = elements.old[1];
  T* new_p = elements.next[0];
  T* new_buffer = elements.next[1];
#pragma omp simd
  for (std::int64_t i = 0; i < elements.count; ++i) {
    const T kept = f.first_step ? T{0} : f.momentum * buffer[i];
    const T g = gradient[i] * f.gradient_scale + f.decay * p[i];
    const T b = kept + g;
    new_buffer[i] = b;
    new_p[i] = p[i] - f.rate * (kNesterov ? g + f.momentum * b : b);
  }
}

// As with_adam_update.
template <typename T, typename Use>
void with_sgd_update(const StepInputs& in, std::size_t parameter, const Use& use) {
  const SgdFactors<T> factors{.decay = static_cast<T>(in.decay(parameter)),
                              .gradient_scale = static_cast<T>(in.gradient_scale()),
                              .rate = static_cast<T>(in.rate(parameter)),
                              .momentum = static_cast<T>(in.params().momentum),
                              .first_step = in.step() == 1};
  using Elements = UpdatedElements<T>;
  if (in.params().momentum <= 0.0) {
    use([&factors](const Elements& elements) { sgd_elements(factors, elements); });
  } else if (in.params().nesterov) {
    use([&factors](const Elements& elements) { sgd_momentum_elements<true>(factors, elements); });
  } else {
    use([&factors](const Elements& elements) { sgd_momentum_elements<false>(factors, elements); });
  }
}

}  // namespace trainscope::cpu
