// RmsPropStep.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/cuda/optimizer/update_tensors.h"

namespace trainscope::cuda {
namespace {

// Kept: the parameter, the mean square, the mean if centered, the buffer if there is a momentum.
// FLOPs: 18 an element, 5 more if centered, 2 more with a momentum.
template <bool kCentered, bool kMomentum>
struct RmsPropRule {
  static constexpr int kKept = 2 + (kCentered ? 1 : 0) + (kMomentum ? 1 : 0);
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
  __device__ void update(const Factors<T>& f, T gradient, T (&kept)[kKept]) const {
    const T g = gradient * f.gradient_scale + f.decay * kept[0];
    const T square = f.alpha * kept[1] + f.rest * (g * g);
    kept[1] = square;
    T variance = square;
    if constexpr (kCentered) {
      const T mean = f.alpha * kept[2] + f.rest * g;
      kept[2] = mean;
      variance -= mean * mean;
    }
    T change = g / (std::sqrt(variance) + f.epsilon);
    if constexpr (kMomentum) {
      change += f.momentum * kept[kKept - 1];
      kept[kKept - 1] = change;
    }
    kept[0] -= f.rate * change;
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
