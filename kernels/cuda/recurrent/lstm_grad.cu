// LstmGrad: back through the steps, each the gates' gradients and a GEMM with the recurrence, then
// one GEMM over all steps for each of dX, dW and dR.
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/recurrent/cell_functions.h"
#include "kernels/cuda/recurrent/cells.h"
#include "kernels/cuda/recurrent/lstm.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

enum GradientInput : std::size_t { kDY, kDLastHidden, kDLastCell, kY, kSaved, kForward };

// The cells of one direction as they were before each step.
template <typename T>
struct CellsBefore {
  StepOrder order;
  std::int64_t batch;
  std::int64_t hidden;
  const Computed<T>* saved;  // [T, N, 5 * H]
  const T* first;            // [N, H]; null: zeros

  __device__ const Computed<T>* row(std::int64_t t, std::int64_t n) const {
    return saved + (t * batch + n) * kLstmSaved * hidden;
  }
  __device__ Computed<T> at(std::int64_t k, std::int64_t n, std::int64_t j) const {
    if (k > 0) return row(order.at(k - 1), n)[kCell * hidden + j];
    return first == nullptr ? Computed<T>(0) : computed(first[n * hidden + j]);
  }
};

template <typename T>
struct LstmGradientStep {
  CellsBefore<T> cells;
  std::int64_t k;
  CellRules rules;
  const T* peepholes;   // [3 * H]; null: none
  const T* dy;          // [N, H]; null: none
  Computed<T>* dstate;  // [N, H]: of the state after the step, then 0, to which the GEMM adds
  Computed<T>* dcell;   // [N, H]: of the cell after the step, then before it
  Computed<T>* dgates;  // [N, 4 * H], rows `row` apart
  std::int64_t row;

  __device__ Computed<T> peephole(std::int64_t block, std::int64_t j) const {
    return peepholes == nullptr ? Computed<T>(0) : computed(peepholes[block * cells.hidden + j]);
  }
};

// A thread a unit. Bytes: a saved row (its output gate twice), the cell before it and dY read, the
// states' gradients read and written, the gates' written.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) go_back_lstm_step(const LstmGradientStep<T> step) {
  using C = Computed<T>;
  const std::int64_t hidden = step.cells.hidden;
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= step.cells.batch * hidden) return;
  const std::int64_t n = at / hidden;
  const std::int64_t j = at % hidden;
  const std::int64_t t = step.cells.order.at(step.k);
  C* d = step.dgates + n * step.row + j;
  C di = C(0);
  C d_o = C(0);
  C df = C(0);
  C dg = C(0);
  if (step.cells.order.counts(t, n)) {
    const C* y = step.cells.row(t, n) + j;
    const C i = y[kI * hidden];
    const C f = y[kF * hidden];
    const C g = y[kG * hidden];
    const C before = step.cells.at(step.k, n, j);
    const C dh = step.dstate[at] + (step.dy == nullptr ? C(0) : computed(step.dy[at]));
    const C of_cell = activated(step.rules, 2, y[kCell * hidden]);
    d_o = derived(step.rules, 0, y[kO * hidden], dh * of_cell);
    const C dcell = derived(step.rules, 2, of_cell, dh * y[kO * hidden]) + step.dcell[at] +
                    step.peephole(1, j) * d_o;
    dg = derived(step.rules, 1, g, dcell * i);
    di = derived(step.rules, 0, i, dcell * (step.rules.coupled ? g - before : g));
    if (!step.rules.coupled) df = derived(step.rules, 0, f, dcell * before);
    step.dcell[at] = dcell * f + step.peephole(0, j) * di + step.peephole(2, j) * df;
    step.dstate[at] = C(0);
  }
  d[kI * hidden] = di;
  d[kO * hidden] = d_o;
  d[kF * hidden] = df;
  d[kG * hidden] = dg;
}

// dP [3 * H], a thread an element: of i and f by the cell before the step, of o by the one after
// it, in f64 in the order of time. Bytes: three gates and twice the cells once.
template <typename T, typename C>
__global__ void __launch_bounds__(kTeamThreads)
    sum_peepholes(const CellsBefore<T> cells, const GateGradients<C> gates, T* dp) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= 3 * cells.hidden) return;
  const std::int64_t gate = at / cells.hidden;  // i, o and f are blocks 0, 1 and 2 of both
  const std::int64_t j = at % cells.hidden;
  double sum = 0.0;
  for (std::int64_t row = 0; row < gates.rows; ++row) {
    const std::int64_t t = row / cells.batch;
    const std::int64_t n = row % cells.batch;
    const C cell = gate == kO ? cells.row(t, n)[kCell * cells.hidden + j]
                              : cells.at(cells.order.step_at(t), n, j);
    sum += static_cast<double>(gates.first[row * gates.row + at] * cell);
  }
  dp[at] = static_cast<T>(static_cast<C>(sum));
}

template <typename T>
struct LstmGradientBuffers {
  Computed<T>* dgates;         // [T, N, directions * 4 * H]
  Computed<T>* dstate;         // [N, H]
  Computed<T>* dcell;          // [N, H]
  Computed<T>* states_before;  // [T, N, H]

  template <class Args>
  LstmGradientBuffers(const Args& args, RecurrentWorkspace& workspace) {
    using C = Computed<T>;
    const RecurrentSizes sizes = recurrent_sizes(args.inputs.subspan(kForward));
    dgates = workspace.take<C>(sizes.rows() * sizes.directions * kLstmGates * sizes.hidden);
    dstate = workspace.take<C>(sizes.states());
    dcell = workspace.take<C>(sizes.states());
    states_before = workspace.take<C>(sizes.rows() * sizes.hidden);
  }
};

// One direction of a call.
template <typename T>
struct LstmBackward {
  using C = Computed<T>;

  const RunArgs& args;
  std::span<const TensorView> forward;
  RecurrentSizes sizes;
  LstmGradientBuffers<T> buffers;
  std::int64_t d;
  std::int64_t columns;  // of the gates of a direction
  std::int64_t row;      // of the gates of all directions
  StepOrder order;

  LstmBackward(const RunArgs& call, const LstmGradientBuffers<T>& memory, std::int64_t direction)
      : args(call),
        forward(call.inputs.subspan(kForward)),
        sizes(recurrent_sizes(forward)),
        buffers(memory),
        d(direction),
        columns(kLstmGates * sizes.hidden),
        row(sizes.directions * columns),
        order(step_order(call.params, forward, direction)) {}

  CellsBefore<T> cells() const {
    const T* first = data_or_null<const T>(forward, kFirstCell);
    return {
        .order = order,
        .batch = sizes.batch,
        .hidden = sizes.hidden,
        .saved = args.inputs[kSaved].as<const C>() + d * sizes.rows() * kLstmSaved * sizes.hidden,
        .first = first == nullptr ? nullptr : first + d * sizes.states()};
  }
  GateGradients<C> gates() const {
    return {buffers.dgates + d * columns, row, sizes.rows(), columns};
  }

  void go_back() const {
    const T* r = forward[kRecurrence].as<const T>() + d * columns * sizes.hidden;
    const T* dy = data_or_null<const T>(args.inputs, kDY);
    const T* peepholes = data_or_null<const T>(forward, kPeepholes);
    begin_state(args, data_or_null<const T>(args.inputs, kDLastHidden), sizes, d, buffers.dstate);
    begin_state(args, data_or_null<const T>(args.inputs, kDLastCell), sizes, d, buffers.dcell);
    for (std::int64_t k = sizes.time; k-- > 0;) {
      const std::int64_t t = order.at(k);
      C* dgates = buffers.dgates + t * sizes.batch * row + d * columns;
      launch(args.call, unit_grid(sizes.states()), go_back_lstm_step<T>,
             LstmGradientStep<T>{
                 .cells = cells(),
                 .k = k,
                 .rules = {recurrent_params(args.params), d},
                 .peepholes = peepholes == nullptr ? nullptr : peepholes + d * 3 * sizes.hidden,
                 .dy = dy == nullptr ? nullptr : dy + (t * sizes.directions + d) * sizes.states(),
                 .dstate = buffers.dstate,
                 .dcell = buffers.dcell,
                 .dgates = dgates,
                 .row = row});
      multiply_back<T>(args.call, {dgates, row, sizes.batch, columns}, r, sizes.hidden,
                       buffers.dstate, true);
    }
    end_state(args, buffers.dstate, sizes, d, data_or_null<T>(args.outputs, kDFirstHidden));
    end_state(args, buffers.dcell, sizes, d, data_or_null<T>(args.outputs, kDFirstCell));
  }

  void sum_up() const {
    if (T* dr = data_or_null<T>(args.outputs, kDRecurrence)) {
      gather_states_before<T>(args.call,
                              {order, sizes, d, args.inputs[kY].as<const T>(),
                               data_or_null<const T>(forward, kFirstHidden)},
                              sizes, nullptr, 0, buffers.states_before);
      multiply_for_weights(args.call, gates(), buffers.states_before, sizes.hidden,
                           dr + d * columns * sizes.hidden);
    }
    if (T* db = data_or_null<T>(args.outputs, kDBias)) {
      T* own = db + d * 2 * columns;
      sum_gates(args.call, gates(), own, own + columns);
    }
    if (T* dp = data_or_null<T>(args.outputs, kDPeepholes)) {
      launch(args.call, unit_grid(3 * sizes.hidden), sum_peepholes<T, C>, cells(), gates(),
             dp + d * 3 * sizes.hidden);
    }
  }
};

template <typename T>
void run_lstm_grad(const RunArgs& args) {
  const auto forward = args.inputs.subspan(kForward);
  const RecurrentSizes sizes = recurrent_sizes(forward);
  RecurrentWorkspace workspace(args.workspace);
  const LstmGradientBuffers<T> buffers(args, workspace);
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const LstmBackward<T> backward(args, buffers, d);
    backward.go_back();
    backward.sum_up();
  }
  multiply_for_inputs<T>(args, forward, buffers.dgates, kLstmGates * sizes.hidden);
}

}  // namespace

void add_lstm_grad(KernelTable& table) {
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("LstmGrad", kDTypeOf<T>,
              {.name = "lstm_grad.cuda",
               .prepare = prepare_cells<LstmGradientBuffers<T>>,
               .run = run_lstm_grad<T>});
  });
}

}  // namespace trainscope::cuda
