// LionStep.
#include <cstdint>
#include <variant>

#include "kernels/cuda/optimizer/update_tensors.h"

namespace trainscope::cuda {
namespace {

// Kept: the parameter and m. FLOPs: 10 an element.
struct LionRule {
  static constexpr int kKept = 2;
  StepNumbers numbers;

  template <typename T>
  struct Factors {
    T kept;  // 1 - learning rate * weight decay
    T gradient_scale;
    T rate;
    T beta1, rest1;  // rest = 1 - beta
    T beta2, rest2;
  };

  template <typename T>
  __device__ Factors<T> factors(const StepScalars& scalars, double decay, double rate_scale) const {
    const double rate = scalars.rate() * rate_scale;
    Factors<T> f;
    f.kept = static_cast<T>(1.0 - rate * decay);
    f.gradient_scale = static_cast<T>(scalars.scale());
    f.rate = static_cast<T>(rate);
    f.beta1 = static_cast<T>(numbers.beta1);
    f.rest1 = static_cast<T>(1.0 - numbers.beta1);
    f.beta2 = static_cast<T>(numbers.beta2);
    f.rest2 = static_cast<T>(1.0 - numbers.beta2);
    return f;
  }

  template <typename T>
  __device__ void update(const Factors<T>& f, T gradient, T (&kept)[kKept]) const {
    const T m = kept[1];
    const T g = gradient * f.gradient_scale;
    const T direction = f.beta1 * m + f.rest1 * g;
    // A direction that is NaN has no sign, and must not be hidden.
    const T sign = direction > T{0} ? T{1} : direction < T{0} ? T{-1} : direction;
    kept[0] = kept[0] * f.kept - f.rate * sign;
    kept[1] = f.beta2 * m + f.rest2 * g;
  }
};

template <typename T>
void lion_step(const RunArgs& args) {
  run_update<T>(args, LionRule{step_numbers(std::get<OptimizerParams>(args.params))});
}

}  // namespace

void add_lion(KernelTable& table) {
  table.add("LionStep", DType::kF32,
            {.name = "lion_step.cuda", .supports = all_outputs_present, .run = lion_step<float>});
}

}  // namespace trainscope::cuda
