// RmsPropStep.
#include <cmath>
#include <cstdint>

#include "kernels/cpu/optimizer/optimizer_chunks.h"

namespace trainscope::cpu {
namespace {

template <typename T>
struct Factors {
  T decay;
  T gradient_scale;
  T rate;
  T alpha, rest;  // rest = 1 - alpha
  T epsilon;
  T momentum;
};

// Kept: the parameter, the mean square, the mean if centered, the buffer if there is a momentum.
template <bool kCentered, bool kMomentum, typename T>
void rmsprop_elements(Factors<T> f, const UpdatedElements<T>& elements) {
  constexpr std::size_t kBuffer = kCentered ? 3 : 2;
  const T* p = elements.old[0];
  const T* gradient = elements.gradient;
  const T* square = elements.old[1];
  const T* mean = kCentered ? elements.old[2] : nullptr;
  const T* buffer = kMomentum ? elements.old[kBuffer] : nullptr;
  T* new_p = elements.next[0];
  T* new_square = elements.next[1];
  T* new_mean = kCentered ? elements.next[2] : nullptr;
  T* new_buffer = kMomentum ? elements.next[kBuffer] : nullptr;
#pragma omp simd
  for (std::int64_t i = 0; i < elements.count; ++i) {
    const T g = gradient[i] * f.gradient_scale + f.decay * p[i];
    const T s = f.alpha * square[i] + f.rest * (g * g);
    new_square[i] = s;
    T variance = s;
    if constexpr (kCentered) {
      const T a = f.alpha * mean[i] + f.rest * g;
      new_mean[i] = a;
      variance -= a * a;
    }
    T change = g / (std::sqrt(variance) + f.epsilon);
    if constexpr (kMomentum) {
      change += f.momentum * buffer[i];
      new_buffer[i] = change;
    }
    new_p[i] = p[i] - f.rate * change;
  }
}

template <typename T>
void rmsprop_step(const RunArgs& a) {
  const StepInputs in(a);
  if (in.is_left_out()) return keep_states(a);
  const OptimizerParams& params = in.params();
  const bool momentum = params.momentum > 0.0;
  const bool centered = in.kept_groups() > (momentum ? 3U : 2U);
  for_each_chunk(a.threads, *static_cast<const Offsets*>(a.state), [&](const Chunk& chunk) {
    const Factors<T> f{.decay = static_cast<T>(in.decay(chunk.index)),
                       .gradient_scale = static_cast<T>(in.gradient_scale()),
                       .rate = static_cast<T>(in.rate(chunk.index)),
                       .alpha = static_cast<T>(params.beta2),
                       .rest = static_cast<T>(1.0 - params.beta2),
                       .epsilon = static_cast<T>(params.epsilon),
                       .momentum = static_cast<T>(params.momentum)};
    const UpdatedElements<T> elements = elements_of<T>(in, chunk);
    if (centered && momentum) return rmsprop_elements<true, true>(f, elements);
    if (centered) return rmsprop_elements<true, false>(f, elements);
    if (momentum) return rmsprop_elements<false, true>(f, elements);
    rmsprop_elements<false, false>(f, elements);
  });
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("RmsPropStep", kDTypeOf<T>,
            {.name = "rmsprop_step.reference",
             .supports = all_outputs_present,
             .prepare = prepare_step,
             .run = rmsprop_step<T>});
}

}  // namespace

void add_rmsprop(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
