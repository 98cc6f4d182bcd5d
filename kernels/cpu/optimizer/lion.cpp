// LionStep.
#include <cstdint>

#include "kernels/cpu/optimizer/optimizer_chunks.h"

namespace trainscope::cpu {
namespace {

template <typename T>
struct Factors {
  T kept;  // 1 - learning rate * weight decay
  T gradient_scale;
  T rate;
  T beta1, rest1;  // rest = 1 - beta
  T beta2, rest2;
};

template <typename T>
void lion_elements(Factors<T> f, const UpdatedElements<T>& elements) {
  const T* p = elements.old[0];
  const T* gradient = elements.gradient;
  const T* m = elements.old[1];
  T* new_p = elements.next[0];
  T* new_m = elements.next[1];
#pragma omp simd
  for (std::int64_t i = 0; i < elements.count; ++i) {
    const T g = gradient[i] * f.gradient_scale;
    const T m_i = m[i];
    const T direction = f.beta1 * m_i + f.rest1 * g;
    // A direction that is NaN has no sign, and must not be hidden.
    const T sign = direction > T{0} ? T{1} : direction < T{0} ? T{-1} : direction;
    new_m[i] = f.beta2 * m_i + f.rest2 * g;
    new_p[i] = p[i] * f.kept - f.rate * sign;
  }
}

template <typename T>
void lion_step(const RunArgs& a) {
  const StepInputs in(a);
  if (in.is_left_out()) return keep_states(a);
  const OptimizerParams& params = in.params();
  for_each_chunk(a.threads, *static_cast<const Offsets*>(a.state), [&](const Chunk& chunk) {
    const double rate = in.rate(chunk.index);
    const Factors<T> f{.kept = static_cast<T>(1.0 - rate * in.decay(chunk.index)),
                       .gradient_scale = static_cast<T>(in.gradient_scale()),
                       .rate = static_cast<T>(rate),
                       .beta1 = static_cast<T>(params.beta1),
                       .rest1 = static_cast<T>(1.0 - params.beta1),
                       .beta2 = static_cast<T>(params.beta2),
                       .rest2 = static_cast<T>(1.0 - params.beta2)};
    lion_elements(f, elements_of<T>(in, chunk));
  });
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("LionStep", kDTypeOf<T>,
            {.name = "lion_step.reference",
             .supports = all_outputs_present,
             .prepare = prepare_step,
             .run = lion_step<T>});
}

}  // namespace

void add_lion(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
