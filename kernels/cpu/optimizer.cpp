// Optimizer steps: one pass over the elements of all parameters, however they are divided into
// tensors; and what precedes them: accumulation, the global norm, the scale of the gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/cpu/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr int kScalars = 3;  // after the tensors: learning_rate, gradient_scale, step

// Where each tensor begins when all are laid end to end; one more entry for the end.
using Offsets = std::vector<std::int64_t>;

std::shared_ptr<const Offsets> offsets_of(std::span<const TensorView> tensors) {
  auto offsets = std::make_shared<Offsets>(1, 0);
  for (const TensorView& tensor : tensors) offsets->push_back(offsets->back() + tensor.elements());
  return offsets;
}

// A step that leaves out a next state is refused instead of computed in part.
bool all_outputs_present(const PrepareArgs& a) {
  return std::all_of(a.outputs.begin(), a.outputs.end(),
                     [](const TensorView& output) { return output.present; });
}

Prepared prepare_step(const PrepareArgs& a) {
  const std::size_t count = std::get<OptimizerParams>(a.params).weight_decay.size();
  return {.state = offsets_of(a.inputs.first(count))};
}

// Part [begin, end) of parameter `index`.
struct Part {
  std::size_t index = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Calls f(part) for the parts of all tensors, divided over the threads by elements.
template <typename F>
void for_each_part(int threads, const Offsets& offsets, F f) {
  parallel_for(threads, offsets.back(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    auto next = std::upper_bound(offsets.begin(), offsets.end(), begin);
    for (; begin < end; ++next) {
      const auto index = static_cast<std::size_t>(next - offsets.begin() - 1);
      const std::int64_t part_end = std::min(end, *next);
      if (part_end > begin) {
        f(Part{.index = index, .begin = begin - offsets[index], .end = part_end - offsets[index]});
      }
      begin = part_end;
    }
  });
}

double number(const TensorView& scalar) {
  return scalar.type.dtype == DType::kF32 ? double{*scalar.as<const float>()}
                                          : *scalar.as<const double>();
}

// The scalars behind the tensors, and tensors by group.
struct StepInputs {
  const RunArgs& a;
  const OptimizerParams& params;
  std::size_t count;
  double learning_rate;
  double gradient_scale;
  std::int64_t step;

  explicit StepInputs(const RunArgs& args)
      : a(args),
        params(std::get<OptimizerParams>(args.params)),
        count(params.weight_decay.size()),
        learning_rate(number(scalar(0))),
        gradient_scale(number(scalar(1))),
        step(*scalar(2).as<const std::int64_t>()) {}

  const TensorView& scalar(std::size_t i) const { return a.inputs[a.inputs.size() - kScalars + i]; }
  template <typename T>
  const T* input(std::size_t group, const Part& part) const {
    return a.inputs[group * count + part.index].as<const T>() + part.begin;
  }
  template <typename T>
  T* output(std::size_t group, const Part& part) const {
    return a.outputs[group * count + part.index].as<T>() + part.begin;
  }
  double rate(const Part& part) const {
    return learning_rate * params.learning_rate_scale[part.index];
  }
};

// In the loops below each output may be its input: the compiler is told (omp simd) that this is
// the only way in which they overlap.

template <typename T>
struct AdamWFactors {
  T decay;  // 1 - learning rate * weight decay
  T gradient_scale;
  T beta1, rest1;  // rest = 1 - beta
  T beta2, rest2;
  T step_size;   // learning rate / (1 - beta1^t)
  T root_scale;  // 1 / sqrt(1 - beta2^t)
  T epsilon;
};

template <typename T>
AdamWFactors<T> adamw_factors(const StepInputs& in, const Part& part) {
  const OptimizerParams& params = in.params;
  const auto t = static_cast<double>(in.step);
  const double rate = in.rate(part);
  const double correction1 = 1.0 - std::pow(params.beta1, t);
  const double correction2 = 1.0 - std::pow(params.beta2, t);
  return {.decay = static_cast<T>(1.0 - rate * params.weight_decay[part.index]),
          .gradient_scale = static_cast<T>(in.gradient_scale),
          .beta1 = static_cast<T>(params.beta1),
          .rest1 = static_cast<T>(1.0 - params.beta1),
          .beta2 = static_cast<T>(params.beta2),
          .rest2 = static_cast<T>(1.0 - params.beta2),
          .step_size = static_cast<T>(rate / correction1),
          .root_scale = static_cast<T>(1.0 / std::sqrt(correction2)),
          .epsilon = static_cast<T>(params.epsilon)};
}

template <typename T>
void adamw_part(const StepInputs& in, const Part& part) {
  const AdamWFactors<T> f = adamw_factors<T>(in, part);
  const T* p = in.input<T>(0, part);
  const T* gradient = in.input<T>(1, part);
  const T* m = in.input<T>(2, part);
  const T* v = in.input<T>(3, part);
  T* new_p = in.output<T>(0, part);
  T* new_m = in.output<T>(1, part);
  T* new_v = in.output<T>(2, part);
#pragma omp simd
  for (std::int64_t i = 0; i < part.end - part.begin; ++i) {
    const T g = gradient[i] * f.gradient_scale;
    const T m_i = f.beta1 * m[i] + f.rest1 * g;
    const T v_i = f.beta2 * v[i] + f.rest2 * (g * g);
    new_m[i] = m_i;
    new_v[i] = v_i;
    new_p[i] = p[i] * f.decay - f.step_size * m_i / (std::sqrt(v_i) * f.root_scale + f.epsilon);
  }
}

template <typename T>
void sgd_part(const StepInputs& in, const Part& part) {
  const auto decay = static_cast<T>(in.params.weight_decay[part.index]);
  const auto scale = static_cast<T>(in.gradient_scale);
  const auto rate = static_cast<T>(in.rate(part));
  const T* p = in.input<T>(0, part);
  const T* gradient = in.input<T>(1, part);
  T* new_p = in.output<T>(0, part);
#pragma omp simd
  for (std::int64_t i = 0; i < part.end - part.begin; ++i) {
    new_p[i] = p[i] - rate * (gradient[i] * scale + decay * p[i]);
  }
}

template <typename T>
void sgd_momentum_part(const StepInputs& in, const Part& part) {
  const auto decay = static_cast<T>(in.params.weight_decay[part.index]);
  const auto scale = static_cast<T>(in.gradient_scale);
  const auto rate = static_cast<T>(in.rate(part));
  const auto momentum = static_cast<T>(in.params.momentum);
  const bool first_step = in.step == 1;  // whatever the buffer holds then does not count
  const T* p = in.input<T>(0, part);
  const T* gradient = in.input<T>(1, part);
  const T* buffer = in.input<T>(2, part);
  T* new_p = in.output<T>(0, part);
  T* new_buffer = in.output<T>(1, part);
#pragma omp simd
  for (std::int64_t i = 0; i < part.end - part.begin; ++i) {
    const T kept = first_step ? T{0} : momentum * buffer[i];
    const T b = kept + (gradient[i] * scale + decay * p[i]);
    new_buffer[i] = b;
    new_p[i] = p[i] - rate * b;
  }
}

template <typename T>
void adamw_step(const RunArgs& a) {
  const StepInputs in(a);
  for_each_part(a.threads, *static_cast<const Offsets*>(a.state),
                [&](const Part& part) { adamw_part<T>(in, part); });
}

template <typename T>
void sgd_step(const RunArgs& a) {
  const StepInputs in(a);
  const bool with_momentum = in.params.momentum > 0.0;
  for_each_part(a.threads, *static_cast<const Offsets*>(a.state), [&](const Part& part) {
    if (with_momentum) {
      sgd_momentum_part<T>(in, part);
    } else {
      sgd_part<T>(in, part);
    }
  });
}

// --- Global norm ---------------------------------------------------------------------------------

constexpr std::int64_t kNormBlock = 8192;  // elements added up in one go

struct NormBlock {
  std::size_t tensor = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
using NormBlocks = std::vector<NormBlock>;

Prepared prepare_norm(const PrepareArgs& a) {
  auto blocks = std::make_shared<NormBlocks>();
  for (std::size_t t = 0; t < a.inputs.size(); ++t) {
    const std::int64_t n = a.inputs[t].elements();
    for (std::int64_t begin = 0; begin < n; begin += kNormBlock) {
      blocks->push_back({.tensor = t, .begin = begin, .end = std::min(n, begin + kNormBlock)});
    }
  }
  const std::size_t bytes = blocks->size() * sizeof(double);
  return {.workspace_bytes = bytes, .state = std::move(blocks)};
}

template <typename T>
double sum_of_squares(const T* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 16;
  double lane[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const auto value = static_cast<double>(x[i + l]);
      lane[l] += value * value;
    }
  }
  for (; i < n; ++i) lane[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0.0;
  for (double value : lane) sum += value;
  return sum;
}

// The blocks' sums in double are added in their order, whichever threads made them.
template <typename T>
void global_norm(const RunArgs& a) {
  const auto& blocks = *static_cast<const NormBlocks*>(a.state);
  auto* sums = static_cast<double*>(a.workspace);
  const auto count = static_cast<std::int64_t>(blocks.size());
  parallel_for(a.threads, count, kElementGrain / kNormBlock,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t b = first; b < last; ++b) {
                   const NormBlock& block = blocks[static_cast<std::size_t>(b)];
                   const T* x = a.inputs[block.tensor].as<const T>() + block.begin;
                   sums[b] = sum_of_squares(x, block.end - block.begin);
                 }
               });
  double sum = 0.0;
  for (std::int64_t b = 0; b < count; ++b) sum += sums[b];
  *a.outputs[0].as<T>() = static_cast<T>(std::sqrt(sum) / std::get<ClipParams>(a.params).divisor);
}

// A norm that is NaN gives a NaN scale.
template <typename T>
void gradient_scale(const RunArgs& a) {
  const auto& params = std::get<ClipParams>(a.params);
  const auto norm = static_cast<double>(*a.inputs[0].as<const T>());
  double scale = 1.0;
  if (params.max_norm > 0.0) {
    scale = params.max_norm / (norm + 1e-6);
    if (scale > 1.0) scale = 1.0;
  }
  *a.outputs[0].as<T>() = static_cast<T>(scale / params.divisor);
}

// sum, gradient, micro_step [] -> sum; micro-step 0 begins a new sum, whatever the old one holds.
template <typename T>
void accumulate(const RunArgs& a) {
  const T* sum = a.inputs[0].as<const T>();
  const T* gradient = a.inputs[1].as<const T>();
  T* result = a.outputs[0].as<T>();
  const bool begins = *a.inputs[2].as<const std::int64_t>() == 0;
  parallel_for(a.threads, a.outputs[0].elements(), kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 if (begins) {
                   std::copy(gradient + begin, gradient + end, result + begin);
                   return;
                 }
#pragma omp simd
                 for (std::int64_t i = begin; i < end; ++i) result[i] = sum[i] + gradient[i];
               });
}

template <typename T>
void add_for(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("SgdStep", dtype,
            {.name = "sgd_step.reference",
             .supports = all_outputs_present,
             .prepare = prepare_step,
             .run = sgd_step<T>});
  table.add("AdamWStep", dtype,
            {.name = "adamw_step.reference",
             .supports = all_outputs_present,
             .prepare = prepare_step,
             .run = adamw_step<T>});
  table.add("GlobalNorm", dtype,
            {.name = "global_norm.reference", .prepare = prepare_norm, .run = global_norm<T>});
  table.add("GradientScale", dtype, {.name = "gradient_scale.reference", .run = gradient_scale<T>});
  table.add("Accumulate", dtype, {.name = "accumulate.reference", .run = accumulate<T>});
}

}  // namespace

void add_optimizer(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
