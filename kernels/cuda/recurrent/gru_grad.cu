// GruGrad: back through the steps, each the gates' gradients and GEMMs with the recurrence, then
// GEMMs over all steps for dX, dW and dR.
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/recurrent/cell_functions.h"
#include "kernels/cuda/recurrent/cells.h"
#include "kernels/cuda/recurrent/gru.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

enum GradientInput : std::size_t { kDY, kDLastHidden, kY, kSaved, kForward };

template <typename T>
struct GruGradientStep {
  StatesBefore<T> states;
  std::int64_t k;
  std::int64_t t;
  CellRules rules;
  const Computed<T>* saved;  // [N, blocks * H]
  std::int64_t saved_row;
  const T* dy;           // [N, H]; null: none
  Computed<T>* dstate;   // [N, H]: of the state after the step, then before it but for the GEMMs
  Computed<T>* dscaled;  // [N, H]: of the state that the reset gate has scaled
  Computed<T>* dgates;   // [N, 3 * H], rows `row` apart
  std::int64_t row;
  Computed<T>*
      dproduct;  // [N, H], rows `product_row` apart: of what the reset gate scales afterwards
  std::int64_t product_row;
};

// z and g, a thread a unit; with the product kept r too. Bytes: a saved row, the state before and
// dY read, the state's gradient read and written, the gates' written.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) go_back_gru_step(const GruGradientStep<T> step) {
  using C = Computed<T>;
  const std::int64_t hidden = step.states.hidden;
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= step.states.batch * hidden) return;
  const std::int64_t n = at / hidden;
  const std::int64_t j = at % hidden;
  C* d = step.dgates + n * step.row + j;
  C dz = C(0);
  C dr = C(0);
  C dg = C(0);
  C dproduct = C(0);
  if (step.states.order.counts(step.t, n)) {
    const C* y = step.saved + n * step.saved_row + j;
    const C z = y[kZ * hidden];
    const C g = y[kH * hidden];
    const C dh = step.dstate[at] + (step.dy == nullptr ? C(0) : computed(step.dy[at]));
    dz = derived(step.rules, 0, z, dh * (step.states.at(step.k, n, j) - g));
    dg = derived(step.rules, 1, g, dh * (C(1) - z));
    step.dstate[at] = dh * z;
    if (step.rules.linear_before_reset) {
      const C r = y[kR * hidden];
      dproduct = dg * r;
      dr = derived(step.rules, 0, r, dg * y[kProduct * hidden]);
    }
  }
  d[kZ * hidden] = dz;
  d[kR * hidden] = dr;
  d[kH * hidden] = dg;
  if (step.rules.linear_before_reset) step.dproduct[n * step.product_row + j] = dproduct;
}

// r, from the gradient of the state that it has scaled, which goes on to the state itself; a thread
// a unit. Bytes: r, the state before and its scaled gradient read, its gradient read and written,
// r's written.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) go_back_gru_reset(const GruGradientStep<T> step) {
  using C = Computed<T>;
  const std::int64_t hidden = step.states.hidden;
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= step.states.batch * hidden) return;
  const std::int64_t n = at / hidden;
  const std::int64_t j = at % hidden;
  if (!step.states.order.counts(step.t, n)) return;
  const C r = step.saved[n * step.saved_row + kR * hidden + j];
  const C d = step.dscaled[at];
  step.dgates[n * step.row + kR * hidden + j] =
      derived(step.rules, 0, r, d * step.states.at(step.k, n, j));
  step.dstate[at] += d * r;
}

template <typename T>
struct GruGradientBuffers {
  Computed<T>* dgates;         // [T, N, directions * 3 * H]
  Computed<T>* dproduct;       // [T, N, H], where the reset gate scales afterwards
  Computed<T>* dstate;         // [N, H]
  Computed<T>* dscaled;        // [N, H]
  Computed<T>* states_before;  // [T, N, H], then these scaled

  template <class Args>
  GruGradientBuffers(const Args& args, RecurrentWorkspace& workspace) {
    using C = Computed<T>;
    const RecurrentSizes sizes = recurrent_sizes(args.inputs.subspan(kForward));
    const std::int64_t states = sizes.rows() * sizes.hidden;
    dgates = workspace.take<C>(states * sizes.directions * kGruGates);
    dproduct =
        recurrent_params(args.params).linear_before_reset ? workspace.take<C>(states) : nullptr;
    dstate = workspace.take<C>(sizes.states());
    dscaled = workspace.take<C>(sizes.states());
    states_before = workspace.take<C>(states);
  }
};

// One direction of a call.
template <typename T>
struct GruBackward {
  using C = Computed<T>;

  const RunArgs& args;
  std::span<const TensorView> forward;
  RecurrentSizes sizes;
  const RecurrentParams& params;
  GruGradientBuffers<T> buffers;
  std::int64_t d;
  std::int64_t columns;    // of the gates of a direction
  std::int64_t row;        // of the gates of all directions
  std::int64_t saved_row;  // of what the forward pass has kept
  const C* saved;          // [T, N, blocks * H]
  StatesBefore<T> states;

  GruBackward(const RunArgs& call, const GruGradientBuffers<T>& memory, std::int64_t direction)
      : args(call),
        forward(call.inputs.subspan(kForward)),
        sizes(recurrent_sizes(forward)),
        params(recurrent_params(call.params)),
        buffers(memory),
        d(direction),
        columns(kGruGates * sizes.hidden),
        row(sizes.directions * columns),
        saved_row(gru_blocks(params) * sizes.hidden),
        saved(call.inputs[kSaved].as<const C>() + d * sizes.rows() * saved_row),
        states(step_order(call.params, forward, d), sizes, d, call.inputs[kY].as<const T>(),
               data_or_null<const T>(forward, kFirstHidden)) {}

  // Gradients of gates from `gate` on, of `rows` rows from sequence 0 at time t on.
  GateGradients<C> gates(std::int64_t t, std::int64_t rows, std::int64_t gate,
                         std::int64_t count) const {
    return {buffers.dgates + t * sizes.batch * row + d * columns + gate * sizes.hidden, row, rows,
            count * sizes.hidden};
  }
  // Of what R's rows of g are multiplied with: of g, or of the product that r scales.
  GateGradients<C> products(std::int64_t t, std::int64_t rows) const {
    if (!params.linear_before_reset) return gates(t, rows, kH, 1);
    return {buffers.dproduct + t * sizes.states(), sizes.hidden, rows, sizes.hidden};
  }

  GruGradientStep<T> step_at(std::int64_t k) const {
    const std::int64_t t = states.order.at(k);
    const T* dy = data_or_null<const T>(args.inputs, kDY);
    return {
        .states = states,
        .k = k,
        .t = t,
        .rules = {params, d},
        .saved = saved + t * sizes.batch * saved_row,
        .saved_row = saved_row,
        .dy = dy == nullptr ? nullptr : dy + (t * sizes.directions + d) * sizes.states(),
        .dstate = buffers.dstate,
        .dscaled = buffers.dscaled,
        .dgates = buffers.dgates + t * sizes.batch * row + d * columns,
        .row = row,
        .dproduct = params.linear_before_reset ? buffers.dproduct + t * sizes.states() : nullptr,
        .product_row = sizes.hidden};
  }

  void go_back() const {
    const T* of_gates = recurrence_of<T>(forward, sizes, d, kZ);
    const T* of_product = recurrence_of<T>(forward, sizes, d, kH);
    begin_state(args, data_or_null<const T>(args.inputs, kDLastHidden), sizes, d, buffers.dstate);
    for (std::int64_t k = sizes.time; k-- > 0;) {
      const GruGradientStep<T> step = step_at(k);
      launch(args.call, unit_grid(sizes.states()), go_back_gru_step<T>, step);
      const bool after = params.linear_before_reset;
      multiply_back<T>(args.call, products(step.t, sizes.batch), of_product, sizes.hidden,
                       after ? buffers.dstate : buffers.dscaled, after);
      if (!after) launch(args.call, unit_grid(sizes.states()), go_back_gru_reset<T>, step);
      multiply_back<T>(args.call, gates(step.t, sizes.batch, kZ, 2), of_gates, sizes.hidden,
                       buffers.dstate, true);
    }
    end_state(args, buffers.dstate, sizes, d, data_or_null<T>(args.outputs, kDFirstHidden));
  }

  void sum_up() const {
    const std::int64_t rows = sizes.rows();
    if (T* dr = data_or_null<T>(args.outputs, kDRecurrence)) {
      T* own = dr + d * columns * sizes.hidden;
      gather_states_before<T>(args.call, states, sizes, nullptr, 0, buffers.states_before);
      multiply_for_weights(args.call, gates(0, rows, kZ, 2), buffers.states_before, sizes.hidden,
                           own);
      if (!params.linear_before_reset) {
        gather_states_before<T>(args.call, states, sizes, saved + kR * sizes.hidden, saved_row,
                                buffers.states_before);
      }
      multiply_for_weights(args.call, products(0, rows), buffers.states_before, sizes.hidden,
                           own + 2 * sizes.hidden * sizes.hidden);
    }
    if (T* db = data_or_null<T>(args.outputs, kDBias)) {
      T* own = db + d * 2 * columns;
      sum_gates(args.call, gates(0, rows, kZ, 2), own, own + columns);
      sum_gates<C, T>(args.call, gates(0, rows, kH, 1), own + 2 * sizes.hidden, nullptr);
      sum_gates<C, T>(args.call, products(0, rows), own + columns + 2 * sizes.hidden, nullptr);
    }
  }
};

template <typename T>
void run_gru_grad(const RunArgs& args) {
  const auto forward = args.inputs.subspan(kForward);
  const RecurrentSizes sizes = recurrent_sizes(forward);
  RecurrentWorkspace workspace(args.workspace);
  const GruGradientBuffers<T> buffers(args, workspace);
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const GruBackward<T> backward(args, buffers, d);
    backward.go_back();
    backward.sum_up();
  }
  multiply_for_inputs<T>(args, forward, buffers.dgates, kGruGates * sizes.hidden);
}

}  // namespace

void add_gru_grad(KernelTable& table) {
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("GruGrad", kDTypeOf<T>,
              {.name = "gru_grad.cuda",
               .prepare = prepare_cells<GruGradientBuffers<T>>,
               .run = run_gru_grad<T>});
  });
}

}  // namespace trainscope::cuda
