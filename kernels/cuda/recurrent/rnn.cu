// Rnn and its gradient: one GEMM of the inputs of all steps, then step by step a GEMM of the hidden
// state and the function; the same way back. Y is all that the gradient needs of the steps.
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/recurrent/cell_functions.h"
#include "kernels/cuda/recurrent/cells.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

enum GradientInput : std::size_t { kDY, kDLastHidden, kY, kForward };

// One step of one direction, of all sequences.
template <typename T>
struct RnnStep {
  StepOrder order;
  std::int64_t t;
  std::int64_t batch;
  std::int64_t hidden;
  CellRules rules;
  const T* bias;  // [2 * H]; null: none
  T* given;       // [N, H]: what the function is given, but for the bias
  T* state;       // [N, H]: before the step, then after it
  T* y;           // [N, H]
};

// A thread a unit. Bytes: what is given, the state and Y once.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) finish_rnn_step(const RnnStep<T> step) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= step.batch * step.hidden) return;
  if (!step.order.counts(step.t, at / step.hidden)) {
    step.y[at] = T(0);
    return;
  }
  const std::int64_t j = at % step.hidden;
  const T bias = step.bias == nullptr ? T(0) : step.bias[j] + step.bias[step.hidden + j];
  const T state = activated(step.rules, 0, step.given[at] + bias);
  step.state[at] = state;
  step.y[at] = state;
}

template <typename T>
struct RnnBuffers {
  T* given;  // [T, N, H]
  T* state;  // [N, H]

  template <class Args>
  RnnBuffers(const Args& args, RecurrentWorkspace& workspace) {
    const RecurrentSizes sizes = recurrent_sizes(args.inputs);
    given = workspace.take<T>(sizes.rows() * sizes.hidden);
    state = workspace.take<T>(sizes.states());
  }
};

template <typename T>
void run_rnn(const RunArgs& args) {
  const RecurrentSizes sizes = recurrent_sizes(args.inputs);
  RecurrentWorkspace workspace(args.workspace);
  const RnnBuffers<T> buffers(args, workspace);
  const T* bias = data_or_null<const T>(args.inputs, kBias);
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const T* w = args.inputs[kInputWeights].as<const T>() + d * sizes.hidden * sizes.width;
    const T* r = args.inputs[kRecurrence].as<const T>() + d * sizes.hidden * sizes.hidden;
    multiply_by_weights(args.call, args.inputs[kSteps].as<const T>(), w, sizes.rows(), sizes.hidden,
                        sizes.width, buffers.given, sizes.hidden, false);
    begin_state(args, data_or_null<const T>(args.inputs, kFirstHidden), sizes, d, buffers.state);
    const StepOrder order = step_order(args.params, args.inputs, d);
    for (std::int64_t k = 0; k < sizes.time; ++k) {
      const std::int64_t t = order.at(k);
      T* given = buffers.given + t * sizes.states();
      multiply_by_weights(args.call, buffers.state, r, sizes.batch, sizes.hidden, sizes.hidden,
                          given, sizes.hidden, true);
      launch(
          args.call, unit_grid(sizes.states()), finish_rnn_step<T>,
          RnnStep<T>{.order = order,
                     .t = t,
                     .batch = sizes.batch,
                     .hidden = sizes.hidden,
                     .rules = {recurrent_params(args.params), d},
                     .bias = bias == nullptr ? nullptr : bias + d * 2 * sizes.hidden,
                     .given = given,
                     .state = buffers.state,
                     .y = args.outputs[0].as<T>() + (t * sizes.directions + d) * sizes.states()});
    }
    end_state(args, buffers.state, sizes, d, data_or_null<T>(args.outputs, 1));
  }
}

// --- RnnGrad -------------------------------------------------------------------------------------

template <typename T>
struct RnnGradientStep {
  StepOrder order;
  std::int64_t t;
  std::int64_t batch;
  std::int64_t hidden;
  CellRules rules;
  const T* dy;  // [N, H]; null: none
  const T* y;   // [N, H]
  T* dstate;    // [N, H]: of the state after the step, then 0, to which the GEMM adds
  T* dgiven;    // rows `row` apart
  std::int64_t row;
};

// A thread a unit. Bytes: each of the five once.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) go_back_rnn_step(const RnnGradientStep<T> step) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= step.batch * step.hidden) return;
  const std::int64_t n = at / step.hidden;
  T* to = step.dgiven + n * step.row + at % step.hidden;
  if (!step.order.counts(step.t, n)) {
    *to = T(0);
    return;
  }
  const T d = step.dstate[at] + (step.dy == nullptr ? T(0) : step.dy[at]);
  *to = derived(step.rules, 0, step.y[at], d);
  step.dstate[at] = T(0);
}

template <typename T>
struct RnnGradientBuffers {
  T* dgiven;         // [T, N, directions * H]
  T* dstate;         // [N, H]
  T* states_before;  // [T, N, H]

  template <class Args>
  RnnGradientBuffers(const Args& args, RecurrentWorkspace& workspace) {
    const RecurrentSizes sizes = recurrent_sizes(args.inputs.subspan(kForward));
    dgiven = workspace.take<T>(sizes.rows() * sizes.directions * sizes.hidden);
    dstate = workspace.take<T>(sizes.states());
    states_before = workspace.take<T>(sizes.rows() * sizes.hidden);
  }
};

template <typename T>
void run_rnn_grad(const RunArgs& args) {
  const auto forward = args.inputs.subspan(kForward);
  const RecurrentSizes sizes = recurrent_sizes(forward);
  RecurrentWorkspace workspace(args.workspace);
  const RnnGradientBuffers<T> buffers(args, workspace);
  const std::int64_t row = sizes.directions * sizes.hidden;
  const T* y = args.inputs[kY].as<const T>();
  const T* dy = data_or_null<const T>(args.inputs, kDY);
  const T* first = data_or_null<const T>(forward, kFirstHidden);
  T* db = data_or_null<T>(args.outputs, kDBias);
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const StepOrder order = step_order(args.params, forward, d);
    const T* r = forward[kRecurrence].as<const T>() + d * sizes.hidden * sizes.hidden;
    const auto step_gates = [&](std::int64_t t) {
      return buffers.dgiven + t * sizes.batch * row + d * sizes.hidden;
    };
    begin_state(args, data_or_null<const T>(args.inputs, kDLastHidden), sizes, d, buffers.dstate);
    for (std::int64_t k = sizes.time; k-- > 0;) {
      const std::int64_t t = order.at(k);
      const std::int64_t of_step = (t * sizes.directions + d) * sizes.states();
      launch(args.call, unit_grid(sizes.states()), go_back_rnn_step<T>,
             RnnGradientStep<T>{.order = order,
                                .t = t,
                                .batch = sizes.batch,
                                .hidden = sizes.hidden,
                                .rules = {recurrent_params(args.params), d},
                                .dy = dy == nullptr ? nullptr : dy + of_step,
                                .y = y + of_step,
                                .dstate = buffers.dstate,
                                .dgiven = step_gates(t),
                                .row = row});
      multiply_back<T>(args.call, {step_gates(t), row, sizes.batch, sizes.hidden}, r, sizes.hidden,
                       buffers.dstate, true);
    }
    end_state(args, buffers.dstate, sizes, d, data_or_null<T>(args.outputs, kDFirstHidden));
    const GateGradients<T> gates{buffers.dgiven + d * sizes.hidden, row, sizes.rows(),
                                 sizes.hidden};
    if (T* dr = data_or_null<T>(args.outputs, kDRecurrence)) {
      gather_states_before<T>(args.call, {order, sizes, d, y, first}, sizes, nullptr, 0,
                              buffers.states_before);
      multiply_for_weights(args.call, gates, buffers.states_before, sizes.hidden,
                           dr + d * sizes.hidden * sizes.hidden);
    }
    if (db != nullptr) {
      T* own = db + d * 2 * sizes.hidden;
      sum_gates(args.call, gates, own, own + sizes.hidden);
    }
  }
  multiply_for_inputs<T>(args, forward, buffers.dgiven, sizes.hidden);
}

}  // namespace

void add_rnn(KernelTable& table) {
  for_types<float, double>([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("Rnn", kDTypeOf<T>,
              {.name = "rnn.cuda", .prepare = prepare_cells<RnnBuffers<T>>, .run = run_rnn<T>});
    table.add("RnnGrad", kDTypeOf<T>,
              {.name = "rnn_grad.cuda",
               .prepare = prepare_cells<RnnGradientBuffers<T>>,
               .run = run_rnn_grad<T>});
  });
}

}  // namespace trainscope::cuda
