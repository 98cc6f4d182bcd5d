// Gru: one GEMM of the inputs of all steps, then step by step GEMMs of the hidden state and the
// gates. Where the reset gate scales the state before its GEMM, a step has two parts: the GEMM
// needs all units of it.
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/recurrent/cell_functions.h"
#include "kernels/cuda/recurrent/cells.h"
#include "kernels/cuda/recurrent/gru.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

enum Output : std::size_t { kYOut, kLastHidden, kSavedOut };

// One step of one direction, of all sequences.
template <typename T>
struct GruStep {
  StepOrder order;
  std::int64_t t;
  std::int64_t batch;
  std::int64_t hidden;
  CellRules rules;
  const T* bias;  // [6 * H]; null: none
  Computed<T>*
      saved;         // [N, blocks * H]: what the gates are given, but for the bias; then the gates
  std::int64_t row;  // blocks * H
  Computed<T>* state;   // [N, H]: before the step, then after it
  Computed<T>* scaled;  // [N, H]: the state before the step, by the reset gate
  T* y;                 // [N, H]

  // Element of W's bias, and of R's.
  __device__ Computed<T> bias_of(bool recurrence, std::int64_t gate, std::int64_t j) const {
    if (bias == nullptr) return Computed<T>(0);
    return computed(bias[((recurrence ? kGruGates : 0) + gate) * hidden + j]);
  }
  __device__ Computed<T> update_or_reset(const Computed<T>* gates, std::int64_t gate,
                                         std::int64_t j) const {
    const Computed<T> both = bias_of(false, gate, j) + bias_of(true, gate, j);
    return activated(rules, 0, gates[gate * hidden + j] + both);
  }
};

// z and r, and the state that r scales, for the GEMM of g: a thread a unit. Bytes: two gates read
// and written, the state read and once written.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) scale_gru_state(const GruStep<T> step) {
  using C = Computed<T>;
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= step.batch * step.hidden) return;
  const std::int64_t j = at % step.hidden;
  C* gates = step.saved + at / step.hidden * step.row;
  const C r = step.update_or_reset(gates, kR, j);
  gates[kZ * step.hidden + j] = step.update_or_reset(gates, kZ, j);
  gates[kR * step.hidden + j] = r;
  step.scaled[at] = r * step.state[at];
}

// The rest of a step, a thread a unit. Bytes: a saved row read, it, the state and Y written once. A
// step behind the end of a sequence changes no state and has gates of 0.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) finish_gru_step(const GruStep<T> step) {
  using C = Computed<T>;
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= step.batch * step.hidden) return;
  const std::int64_t n = at / step.hidden;
  const std::int64_t j = at % step.hidden;
  C* gates = step.saved + n * step.row;
  const bool after = step.rules.linear_before_reset;  // what r scales has been multiplied
  C z = C(0);
  C r = C(0);
  C g = C(0);
  C product = C(0);
  C y = C(0);
  if (step.order.counts(step.t, n)) {
    g = gates[kH * step.hidden + j] + step.bias_of(false, kH, j);
    if (after) {
      z = step.update_or_reset(gates, kZ, j);
      r = step.update_or_reset(gates, kR, j);
      product = gates[kProduct * step.hidden + j] + step.bias_of(true, kH, j);
      g += r * product;
    } else {
      z = gates[kZ * step.hidden + j];
      r = gates[kR * step.hidden + j];
      g += step.bias_of(true, kH, j);
    }
    g = activated(step.rules, 1, g);
    y = (C(1) - z) * g + z * step.state[at];
    step.state[at] = y;
  }
  gates[kZ * step.hidden + j] = z;
  gates[kR * step.hidden + j] = r;
  gates[kH * step.hidden + j] = g;
  if (after) gates[kProduct * step.hidden + j] = product;
  step.y[at] = static_cast<T>(y);
}

template <typename T>
struct GruBuffers {
  Computed<T>* state;   // [N, H]
  Computed<T>* scaled;  // [N, H]
  Computed<T>* saved;   // [T, N, blocks * H], where no output holds it

  template <class Args>
  GruBuffers(const Args& args, RecurrentWorkspace& workspace) {
    using C = Computed<T>;
    const RecurrentSizes sizes = recurrent_sizes(args.inputs);
    const std::int64_t row = gru_blocks(recurrent_params(args.params)) * sizes.hidden;
    state = workspace.take<C>(sizes.states());
    scaled = workspace.take<C>(sizes.states());
    saved = has_view(args.outputs, kSavedOut) ? nullptr : workspace.take<C>(sizes.rows() * row);
  }
};

template <typename T>
void run_gru(const RunArgs& args) {
  using C = Computed<T>;
  const RecurrentSizes sizes = recurrent_sizes(args.inputs);
  const RecurrentParams& params = recurrent_params(args.params);
  RecurrentWorkspace workspace(args.workspace);
  const GruBuffers<T> buffers(args, workspace);
  const std::int64_t hidden = sizes.hidden;
  const std::int64_t columns = kGruGates * hidden;
  const std::int64_t row = gru_blocks(params) * hidden;
  const T* bias = data_or_null<const T>(args.inputs, kBias);
  C* kept = data_or_null<C>(args.outputs, kSavedOut);
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const T* w = args.inputs[kInputWeights].as<const T>() + d * columns * sizes.width;
    C* saved = kept == nullptr ? buffers.saved : kept + d * sizes.rows() * row;
    multiply_by_weights(args.call, args.inputs[kSteps].as<const T>(), w, sizes.rows(), columns,
                        sizes.width, saved, row, false);
    begin_state(args, data_or_null<const T>(args.inputs, kFirstHidden), sizes, d, buffers.state);
    const StepOrder order = step_order(args.params, args.inputs, d);
    const T* of_gates = recurrence_of<T>(args.inputs, sizes, d, kZ);
    const T* of_product = recurrence_of<T>(args.inputs, sizes, d, kH);
    for (std::int64_t k = 0; k < sizes.time; ++k) {
      const std::int64_t t = order.at(k);
      C* gates = saved + t * sizes.batch * row;
      const GruStep<T> step{
          .order = order,
          .t = t,
          .batch = sizes.batch,
          .hidden = hidden,
          .rules = {params, d},
          .bias = bias == nullptr ? nullptr : bias + d * 2 * columns,
          .saved = gates,
          .row = row,
          .state = buffers.state,
          .scaled = buffers.scaled,
          .y = args.outputs[kYOut].as<T>() + (t * sizes.directions + d) * sizes.states()};
      multiply_by_weights(args.call, buffers.state, of_gates, sizes.batch, 2 * hidden, hidden,
                          gates, row, true);
      if (params.linear_before_reset) {
        multiply_by_weights(args.call, buffers.state, of_product, sizes.batch, hidden, hidden,
                            gates + kProduct * hidden, row, false);
      } else {
        launch(args.call, unit_grid(sizes.states()), scale_gru_state<T>, step);
        multiply_by_weights(args.call, buffers.scaled, of_product, sizes.batch, hidden, hidden,
                            gates + kH * hidden, row, true);
      }
      launch(args.call, unit_grid(sizes.states()), finish_gru_step<T>, step);
    }
    end_state(args, buffers.state, sizes, d, data_or_null<T>(args.outputs, kLastHidden));
  }
}

}  // namespace

void add_gru(KernelTable& table) {
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("Gru", kDTypeOf<T>,
              {.name = "gru.cuda", .prepare = prepare_cells<GruBuffers<T>>, .run = run_gru<T>});
  });
}

}  // namespace trainscope::cuda
