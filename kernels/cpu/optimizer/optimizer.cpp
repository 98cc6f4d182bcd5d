// Optimizer steps: one pass over the elements of all parameters, however they are divided into
// tensors; and what precedes them: accumulation, the global norm, the scale of the gradients.
#include "kernels/cpu/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/cpu/optimizer/optimizer_chunks.h"
#include "kernels/cpu/optimizer/optimizer_elements.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr std::size_t kScalars = 3;  // after the tensors: learning_rate, gradient_scale, step

double number(const TensorView& scalar) {
  return scalar.type.dtype == DType::kF32 ? double{*scalar.as<const float>()}
                                          : *scalar.as<const double>();
}

const TensorView& scalar(const RunArgs& args, std::size_t i) {
  return args.inputs[args.inputs.size() - kScalars + i];
}

template <typename T>
void adam_step(const RunArgs& a) {
  const StepInputs in(a);
  if (in.is_left_out()) return keep_states(a);
  for_each_chunk(a.threads, *static_cast<const Offsets*>(a.state), [&](const Chunk& chunk) {
    with_adam_update<T>(in, chunk.index, [&](auto update) { update(elements_of<T>(in, chunk)); });
  });
}

template <typename T>
void sgd_step(const RunArgs& a) {
  const StepInputs in(a);
  if (in.is_left_out()) return keep_states(a);
  for_each_chunk(a.threads, *static_cast<const Offsets*>(a.state), [&](const Chunk& chunk) {
    with_sgd_update<T>(in, chunk.index, [&](auto update) { update(elements_of<T>(in, chunk)); });
  });
}

// --- Global norm ---------------------------------------------------------------------------------

using Blocks = std::vector<Chunk>;

Prepared prepare_norm(const PrepareArgs& a) {
  auto blocks = std::make_shared<Blocks>(fixed_blocks(a.inputs, kSumBlock));
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
  const auto& blocks = *static_cast<const Blocks*>(a.state);
  auto* sums = static_cast<double*>(a.workspace);
  const auto count = static_cast<std::int64_t>(blocks.size());
  parallel_for(a.threads, count, kElementGrain / kSumBlock,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t b = first; b < last; ++b) {
                   const Chunk& block = blocks[static_cast<std::size_t>(b)];
                   const T* x = a.inputs[block.index].as<const T>() + block.begin;
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
             .run = adam_step<T>});
  table.add("GlobalNorm", dtype,
            {.name = "global_norm.reference", .prepare = prepare_norm, .run = global_norm<T>});
  table.add("GradientScale", dtype, {.name = "gradient_scale.reference", .run = gradient_scale<T>});
  table.add("Accumulate", dtype, {.name = "accumulate.reference", .run = accumulate<T>});
}

}  // namespace

Support all_outputs_present(const PrepareArgs& args) {
  return supported_if(std::all_of(args.outputs.begin(), args.outputs.end(),
                                  [](const TensorView& output) { return output.present; }),
                      "an output is left out");
}

std::vector<Chunk> fixed_blocks(std::span<const TensorView> tensors, std::int64_t block) {
  std::vector<Chunk> blocks;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const std::int64_t n = tensors[index].elements();
    for (std::int64_t begin = 0; begin < n; begin += block) {
      blocks.push_back({.index = index, .begin = begin, .end = std::min(n, begin + block)});
    }
  }
  return blocks;
}

StepInputs::StepInputs(const RunArgs& args)
    : args_(args),
      params_(std::get<OptimizerParams>(args.params)),
      count_(params_.weight_decay.size()),
      learning_rate_(number(scalar(args, 0))),
      gradient_scale_(number(scalar(args, 1))),
      step_(*scalar(args, 2).as<const std::int64_t>()) {}

void keep_states(const RunArgs& args) {
  const std::size_t count = std::get<OptimizerParams>(args.params).weight_decay.size();
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    const TensorView& from = args.inputs[i < count ? i : i + count];  // no gradients among them
    const TensorView& to = args.outputs[i];
    if (from.data != to.data) std::memcpy(to.data, from.data, to.type.bytes());
  }
}

double StepInputs::correction1() const {
  return params_.bias_correction ? 1.0 - std::pow(params_.beta1, static_cast<double>(step_)) : 1.0;
}

double StepInputs::correction2() const {
  return params_.bias_correction ? 1.0 - std::pow(params_.beta2, static_cast<double>(step_)) : 1.0;
}

void add_optimizer(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
  add_lamb(table);
}

}  // namespace trainscope::cpu
