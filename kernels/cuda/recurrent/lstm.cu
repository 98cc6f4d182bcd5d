// Lstm: one GEMM of the inputs of all steps, then step by step a GEMM of the hidden state and the
// gates.
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/recurrent/cell_functions.h"
#include "kernels/cuda/recurrent/cells.h"
#include "kernels/cuda/recurrent/lstm.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

enum Output : std::size_t { kYOut, kLastHidden, kLastCell, kSavedOut };

// One step of one direction, of all sequences.
template <typename T>
struct LstmStep {
  StepOrder order;
  std::int64_t t;
  std::int64_t batch;
  std::int64_t hidden;
  CellRules rules;
  const T* bias;       // [8 * H]; null: none
  const T* peepholes;  // [3 * H]: i, o, f; null: none
  Computed<T>*
      saved;  // [N, 5 * H]: what the gates are given, but for the bias; then gates and cell
  Computed<T>* state;  // [N, H]: before the step, then after it
  Computed<T>* cell;   // [N, H]
  T* y;                // [N, H]

  // What a gate is given.
  __device__ Computed<T> given(const Computed<T>* row, std::int64_t gate, std::int64_t j) const {
    const Computed<T> linear = row[gate * hidden + j];
    if (bias == nullptr) return linear;
    const T* own = bias + gate * hidden + j;
    return linear + (computed(own[0]) + computed(own[kLstmGates * hidden]));
  }
  __device__ Computed<T> peephole(std::int64_t block, std::int64_t j) const {
    return peepholes == nullptr ? Computed<T>(0) : computed(peepholes[block * hidden + j]);
  }
};

// A thread a unit. Bytes: a saved row's gates, the cell and 8 numbers of bias read, the row, the
// states and Y written once. A step behind the end of a sequence changes no state and has gates of
// 0.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) finish_lstm_step(const LstmStep<T> step) {
  using C = Computed<T>;
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= step.batch * step.hidden) return;
  const std::int64_t n = at / step.hidden;
  const std::int64_t j = at % step.hidden;
  C* row = step.saved + n * kLstmSaved * step.hidden;
  C cell = step.cell[at];
  C i = C(0);
  C o = C(0);
  C f = C(0);
  C g = C(0);
  C y = C(0);
  if (step.order.counts(step.t, n)) {
    i = activated(step.rules, 0, step.given(row, kI, j) + step.peephole(0, j) * cell);
    f = step.rules.coupled
            ? C(1) - i
            : activated(step.rules, 0, step.given(row, kF, j) + step.peephole(2, j) * cell);
    g = activated(step.rules, 1, step.given(row, kG, j));
    cell = f * cell + i * g;
    o = activated(step.rules, 0, step.given(row, kO, j) + step.peephole(1, j) * cell);
    y = o * activated(step.rules, 2, cell);
    step.state[at] = y;
    step.cell[at] = cell;
  }
  row[kI * step.hidden + j] = i;
  row[kO * step.hidden + j] = o;
  row[kF * step.hidden + j] = f;
  row[kG * step.hidden + j] = g;
  row[kCell * step.hidden + j] = cell;
  step.y[at] = static_cast<T>(y);
}

template <typename T>
struct LstmBuffers {
  Computed<T>* state;  // [N, H]
  Computed<T>* cell;   // [N, H]
  Computed<T>* saved;  // [T, N, 5 * H], where no output holds it

  template <class Args>
  LstmBuffers(const Args& args, RecurrentWorkspace& workspace) {
    using C = Computed<T>;
    const RecurrentSizes sizes = recurrent_sizes(args.inputs);
    state = workspace.take<C>(sizes.states());
    cell = workspace.take<C>(sizes.states());
    saved = has_view(args.outputs, kSavedOut)
                ? nullptr
                : workspace.take<C>(sizes.rows() * kLstmSaved * sizes.hidden);
  }
};

template <typename T>
void run_lstm(const RunArgs& args) {
  using C = Computed<T>;
  const RecurrentSizes sizes = recurrent_sizes(args.inputs);
  RecurrentWorkspace workspace(args.workspace);
  const LstmBuffers<T> buffers(args, workspace);
  const std::int64_t columns = kLstmGates * sizes.hidden;
  const std::int64_t row = kLstmSaved * sizes.hidden;
  const T* bias = data_or_null<const T>(args.inputs, kBias);
  const T* peepholes = data_or_null<const T>(args.inputs, kPeepholes);
  C* kept = data_or_null<C>(args.outputs, kSavedOut);
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const T* w = args.inputs[kInputWeights].as<const T>() + d * columns * sizes.width;
    const T* r = args.inputs[kRecurrence].as<const T>() + d * columns * sizes.hidden;
    C* saved = kept == nullptr ? buffers.saved : kept + d * sizes.rows() * row;
    multiply_by_weights(args.call, args.inputs[kSteps].as<const T>(), w, sizes.rows(), columns,
                        sizes.width, saved, row, false);
    begin_state(args, data_or_null<const T>(args.inputs, kFirstHidden), sizes, d, buffers.state);
    begin_state(args, data_or_null<const T>(args.inputs, kFirstCell), sizes, d, buffers.cell);
    const StepOrder order = step_order(args.params, args.inputs, d);
    for (std::int64_t k = 0; k < sizes.time; ++k) {
      const std::int64_t t = order.at(k);
      C* gates = saved + t * sizes.batch * row;
      multiply_by_weights(args.call, buffers.state, r, sizes.batch, columns, sizes.hidden, gates,
                          row, true);
      launch(args.call, unit_grid(sizes.states()), finish_lstm_step<T>,
             LstmStep<T>{
                 .order = order,
                 .t = t,
                 .batch = sizes.batch,
                 .hidden = sizes.hidden,
                 .rules = {recurrent_params(args.params), d},
                 .bias = bias == nullptr ? nullptr : bias + d * 2 * columns,
                 .peepholes = peepholes == nullptr ? nullptr : peepholes + d * 3 * sizes.hidden,
                 .saved = gates,
                 .state = buffers.state,
                 .cell = buffers.cell,
                 .y = args.outputs[kYOut].as<T>() + (t * sizes.directions + d) * sizes.states()});
    }
    end_state(args, buffers.state, sizes, d, data_or_null<T>(args.outputs, kLastHidden));
    end_state(args, buffers.cell, sizes, d, data_or_null<T>(args.outputs, kLastCell));
  }
}

}  // namespace

void add_lstm(KernelTable& table) {
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("Lstm", kDTypeOf<T>,
              {.name = "lstm.cuda", .prepare = prepare_cells<LstmBuffers<T>>, .run = run_lstm<T>});
  });
}

}  // namespace trainscope::cuda
