// LambStep: Adam's direction, its length set for each parameter by the parameter's own norm (You
// et al., "Large batch optimization for deep learning", ICLR 2020). One kernel for all parameters:
// moments and norms by fixed blocks, then the ratios, then the parameters.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/cpu/optimizer/optimizer.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr std::size_t kM = 2;  // groups of inputs: parameters, gradients, m, v
constexpr std::size_t kV = 3;
constexpr std::int64_t kLanes = 8;

struct State {
  std::vector<Chunk> blocks;
  std::size_t parameters = 0;
};

struct Norms {
  double parameter = 0.0;  // sums of squares, first of a block, then of a tensor
  double update = 0.0;
};

// The workspace: a pair for each block, then the ratio of each parameter.
struct Workspace {
  Norms* norms;
  double* ratios;

  Workspace(void* bytes, const State& state)
      : norms(static_cast<Norms*>(bytes)),
        ratios(reinterpret_cast<double*>(norms + state.blocks.size())) {}
};

Prepared prepare(const PrepareArgs& a) {
  auto state = std::make_shared<State>();
  state->parameters = std::get<OptimizerParams>(a.params).weight_decay.size();
  state->blocks = fixed_blocks(a.inputs.first(state->parameters), kSumBlock);
  const std::size_t bytes =
      state->blocks.size() * sizeof(Norms) + state->parameters * sizeof(double);
  return {.workspace_bytes = bytes, .state = std::move(state)};
}

template <typename T>
struct Direction {
  T m_scale;     // 1 / (1 - beta1^t)
  T root_scale;  // 1 / sqrt(1 - beta2^t)
  T epsilon;
  T decay;

  Direction(const StepInputs& in, std::size_t parameter)
      : m_scale(static_cast<T>(1.0 / in.correction1())),
        root_scale(static_cast<T>(1.0 / std::sqrt(in.correction2()))),
        epsilon(static_cast<T>(in.params().epsilon)),
        decay(static_cast<T>(in.decay(parameter))) {}

  T operator()(T p, T m, T v) const {
    return m * m_scale / (std::sqrt(v) * root_scale + epsilon) + decay * p;
  }
};

// New moments of a block, and the squares of its parameters and directions.
template <typename T>
Norms moments(const StepInputs& in, const Chunk& block) {
  const Direction<T> direction(in, block.index);
  const OptimizerParams& params = in.params();
  const auto scale = static_cast<T>(in.gradient_scale());
  const auto beta1 = static_cast<T>(params.beta1);
  const auto rest1 = static_cast<T>(1.0 - params.beta1);
  const auto beta2 = static_cast<T>(params.beta2);
  const auto rest2 = static_cast<T>(1.0 - params.beta2);
  const T* p = in.input<T>(0, block);
  const T* gradient = in.input<T>(1, block);
  const T* m = in.input<T>(kM, block);
  const T* v = in.input<T>(kV, block);
  T* new_m = in.output<T>(1, block);
  T* new_v = in.output<T>(2, block);
  double parameter[kLanes] = {};
  double update[kLanes] = {};
  for (std::int64_t i = 0; i < block.end - block.begin; ++i) {
    const T g = gradient[i] * scale;
    const T m_i = beta1 * m[i] + rest1 * g;
    const T v_i = beta2 * v[i] + rest2 * (g * g);
    new_m[i] = m_i;
    new_v[i] = v_i;
    const auto p_i = static_cast<double>(p[i]);
    const auto u_i = static_cast<double>(direction(p[i], m_i, v_i));
    parameter[i % kLanes] += p_i * p_i;
    update[i % kLanes] += u_i * u_i;
  }
  Norms norms;
  for (std::int64_t l = 0; l < kLanes; ++l) {
    norms.parameter += parameter[l];
    norms.update += update[l];
  }
  return norms;
}

// ||p|| / ||update|| within its limits; 1 where one of them is zero.
double ratio_of(const Norms& sums, const OptimizerParams& params) {
  if (sums.parameter == 0.0 || sums.update == 0.0) return 1.0;
  const double ratio = std::sqrt(sums.parameter) / std::sqrt(sums.update);
  return std::max(params.ratio_min, std::min(params.ratio_max, ratio));
}

// In the order of the blocks, whichever threads made them.
void find_ratios(const State& state, const OptimizerParams& params, const Workspace& workspace) {
  std::size_t block = 0;
  for (std::size_t parameter = 0; parameter < state.parameters; ++parameter) {
    Norms sums;
    for (; block < state.blocks.size() && state.blocks[block].index == parameter; ++block) {
      sums.parameter += workspace.norms[block].parameter;
      sums.update += workspace.norms[block].update;
    }
    workspace.ratios[parameter] = ratio_of(sums, params);
  }
}

template <typename T>
void move(const StepInputs& in, const Chunk& block, double ratio) {
  const Direction<T> direction(in, block.index);
  const auto rate = static_cast<T>(in.rate(block.index) * ratio);
  const T* p = in.input<T>(0, block);
  const T* m = in.output<T>(1, block);
  const T* v = in.output<T>(2, block);
  T* new_p = in.output<T>(0, block);
#pragma omp simd
  for (std::int64_t i = 0; i < block.end - block.begin; ++i) {
    new_p[i] = p[i] - rate * direction(p[i], m[i], v[i]);
  }
}

template <typename T>
void lamb_step(const RunArgs& a) {
  const StepInputs in(a);
  if (in.is_left_out()) return keep_states(a);
  const State& state = *static_cast<const State*>(a.state);
  const Workspace workspace(a.workspace, state);
  const auto for_each_block = [&](auto f) {
    parallel_for(a.threads, static_cast<std::int64_t>(state.blocks.size()),
                 kElementGrain / kSumBlock, [&](std::int64_t begin, std::int64_t end) {
                   for (auto b = static_cast<std::size_t>(begin); b < static_cast<std::size_t>(end);
                        ++b) {
                     f(b);
                   }
                 });
  };
  for_each_block([&](std::size_t b) { workspace.norms[b] = moments<T>(in, state.blocks[b]); });
  find_ratios(state, in.params(), workspace);
  for_each_block([&](std::size_t b) {
    const Chunk& block = state.blocks[b];
    move<T>(in, block, workspace.ratios[block.index]);
  });
}

}  // namespace

void add_lamb(KernelTable& table) {
  table.add("LambStep", DType::kF32,
            {.name = "lamb_step.reference",
             .supports = all_outputs_present,
             .prepare = prepare,
             .run = lamb_step<float>});
  table.add("LambStep", DType::kF64,
            {.name = "lamb_step.reference",
             .supports = all_outputs_present,
             .prepare = prepare,
             .run = lamb_step<double>});
}

}  // namespace trainscope::cpu
