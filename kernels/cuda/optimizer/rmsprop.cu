// RmsPropStep.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/cuda/optimizer/update_tensors.h"

namespace trainscope::cuda {
namespace {

// Kept: the parameter, the mean square, the mean if centered, the buffer if there is a momentum.
template <bool kCentered, bool kMomentum>
struct RmsPropRule {
  StepNumbers numbers;

  template <typename T>
  struct Factors {
    T decay;
    T gradient_scale;
    T rate;
    T alpha, rest;  // rest = 1 - alpha
    T epsilon;
    T momentum;
  };

  template <typename T>
  __device__ Factors<T> factors(const StepScalars& scalars, double decay, double rate_scale) const {
    Factors<T> f;
    f.decay = static_cast<T>(decay);
    f.gradient_scale = static_cast<T>(scalars.scale());
    f.rate = static_cast<T>(scalars.rate() * rate_scale);
    f.alpha = static_cast<T>(numbers.beta2);
    f.rest = static_cast<T>(1.0 - numbers.beta2);
    f.epsilon = static_cast<T>(numbers.epsilon);
    f.momentum = static_cast<T>(numbers.momentum);
    return f;
  }

  template <typename T>
  __device__ void update(const Factors<T>& f, const UpdatedTensor<T>& tensor,
                         std::int64_t i) const {
    constexpr int kBuffer = kCentered ? 3 : 2;
    const T p = tensor.old[0][i];
    const T g = tensor.gradient[i] * f.gradient_scale + f.decay * p;
    const T square = f.alpha * tensor.old[1][i] + f.rest * (g * g);
    tensor.next[1][i] = square;
    T variance = square;
    if constexpr (kCentered) {
      const T mean = f.alpha * tensor.old[2][i] + f.rest * g;
      tensor.next[2][i] = mean;
      variance -= mean * mean;
    }
    T change = g / (std::sqrt(variance) + f.epsilon);
    if constexpr (kMomentum) {
      change += f.momentum * tensor.old[kBuffer][i];
      tensor.next[kBuffer][i] = change;
    }
    tensor.next[0][i] = p - f.rate * change;
  }
};

template <typename T>
void rmsprop_step(const RunArgs& args) {
  const auto& params = std::get<OptimizerParams>(args.params);
  const StepNumbers numbers = step_numbers(params);
  const std::size_t kept = args.outputs.size() / params.weight_decay.size();
  const bool momentum = params.momentum > 0.0;
  const bool centered = kept > (momentum ? 3U : 2U);
  if (centered && momentum) return run_update<T>(args, RmsPropRule<true, true>{numbers});
  if (centered) return run_update<T>(args, RmsPropRule<true, false>{numbers});
  if (momentum) return run_update<T>(args, RmsPropRule<false, true>{numbers});
  run_update<T>(args, RmsPropRule<false, false>{numbers});
}

}  // namespace

void add_rmsprop(KernelTable& table) {
  table.add(
      "RmsPropStep", DType::kF32,
      {.name = "rmsprop_step.cuda", .supports = all_outputs_present, .run = rmsprop_step<float>});
}

}  // namespace trainscope::cuda
