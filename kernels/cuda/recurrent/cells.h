// What the kernels of Rnn, Lstm and Gru share beside their GEMMs: a thread for each unit of each
// sequence, states that begin and end, sums over all steps.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/api/kernel.h"
#include "kernels/api/low_precision.h"
#include "kernels/api/recurrent_layout.h"
#include "kernels/cuda/recurrent/tile_gemm.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {

// Buffers are made of a call's arguments, prepared or run, and of memory, which is counted here.
template <class Buffers>
Prepared prepare_cells(const PrepareArgs& args) {
  RecurrentWorkspace counting;
  const Buffers counted(args, counting);
  return {.workspace_bytes = counting.bytes(), .state = nullptr};
}

// --- States --------------------------------------------------------------------------------------

// to[i] = from[i], 0 where `from` is null. Bytes: both once.
template <typename From, typename To>
__global__ void __launch_bounds__(kTeamThreads)
    convert_state(const From* from, To* to, std::int64_t elements) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  to[i] = from == nullptr ? To(0.0F) : static_cast<To>(computed(from[i]));
}

inline Grid unit_grid(std::int64_t units) {
  return {.blocks = team_blocks(units, kTeamThreads), .threads = dim3(kTeamThreads)};
}

// State [N, H] of direction d of an operand [directions, N, H] that may be absent, as it begins.
template <typename T>
void begin_state(const RunArgs& args, const T* first, const RecurrentSizes& sizes, std::int64_t d,
                 Computed<T>* state) {
  launch(args.call, unit_grid(sizes.states()), convert_state<T, Computed<T>>,
         first == nullptr ? nullptr : first + d * sizes.states(), state, sizes.states());
}
// And as it ends, in a result that may be absent.
template <typename T>
void end_state(const RunArgs& args, const Computed<T>* state, const RecurrentSizes& sizes,
               std::int64_t d, T* last) {
  if (last == nullptr) return;
  launch(args.call, unit_grid(sizes.states()), convert_state<Computed<T>, T>, state,
         last + d * sizes.states(), sizes.states());
}

// --- GEMMs ---------------------------------------------------------------------------------------

// gates [rows, count] (+)= states [rows, depth] weights' of weights [count, depth], both dense;
// rows of gates `gate_row` apart.
template <typename S, typename T>
void multiply_by_weights(const CallContext& call, const S* states, const T* weights,
                         std::int64_t rows, std::int64_t count, std::int64_t depth,
                         Computed<T>* gates, std::int64_t gate_row, bool adds) {
  run_tile_gemm<S, T, Computed<T>>(call, {.a = {states, depth, 1},
                                          .b = {weights, depth, 1},
                                          .c = gates,
                                          .c_row = gate_row,
                                          .m = rows,
                                          .n = count,
                                          .k = depth,
                                          .adds = adds});
}

// Gradients of what some gates are given: [rows, count], rows `row` apart.
template <typename C>
struct GateGradients {
  const C* first = nullptr;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t count = 0;
};

// to [rows, width] (+)= gates weights, of weights [count, width].
template <typename T, typename R>
void multiply_back(const CallContext& call, const GateGradients<Computed<T>>& gates,
                   const T* weights, std::int64_t width, R* to, bool adds) {
  run_tile_gemm<Computed<T>, T, R>(call, {.a = {gates.first, gates.row, 1},
                                          .b = {weights, 1, width},
                                          .c = to,
                                          .c_row = width,
                                          .m = gates.rows,
                                          .n = width,
                                          .k = gates.count,
                                          .adds = adds});
}

// to [count, width] = gates' x, of x [rows, width]: the gradient of the weights of some gates.
template <typename C, typename X, typename T>
void multiply_for_weights(const CallContext& call, const GateGradients<C>& gates, const X* x,
                          std::int64_t width, T* to) {
  run_tile_gemm<C, X, T>(call, {.a = {gates.first, 1, gates.row},
                                .b = {x, 1, width},
                                .c = to,
                                .c_row = width,
                                .m = gates.count,
                                .n = width,
                                .k = gates.rows,
                                .adds = false});
}

// dX and, where it is there, dW of both directions at once, from the gradients dgates
// [T, N, directions * columns]: W [directions, columns, D] is one matrix of all their rows.
// `forward` are the inputs of the forward op.
template <typename T>
void multiply_for_inputs(const RunArgs& args, std::span<const TensorView> forward,
                         const Computed<T>* dgates, std::int64_t columns) {
  const RecurrentSizes sizes = recurrent_sizes(forward);
  const std::int64_t row = sizes.directions * columns;
  const GateGradients<Computed<T>> all{dgates, row, sizes.rows(), row};
  multiply_back(args.call, all, forward[kInputWeights].as<const T>(), sizes.width,
                args.outputs[kDSteps].as<T>(), false);
  if (T* dw = data_or_null<T>(args.outputs, kDInputWeights)) {
    multiply_for_weights(args.call, all, forward[kSteps].as<const T>(), sizes.width, dw);
  }
}

// --- Sums over all steps -------------------------------------------------------------------------

// to[j] and, where it is there, again[j] = the sum of column j, in the order of rows, in f64; a
// thread a column. Bytes: the gates once. FLOPs: 1 an element, in f64.
template <typename C, typename T>
__global__ void __launch_bounds__(kTeamThreads)
    sum_gate_columns(const GateGradients<C> gates, T* to, T* again) {
  const std::int64_t j = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= gates.count) return;
  double sum = 0.0;
  for (std::int64_t row = 0; row < gates.rows; ++row) {
    sum += static_cast<double>(gates.first[row * gates.row + j]);
  }
  if (to != nullptr) to[j] = static_cast<T>(static_cast<Computed<T>>(sum));
  if (again != nullptr) again[j] = static_cast<T>(static_cast<Computed<T>>(sum));
}

template <typename C, typename T>
void sum_gates(const CallContext& call, const GateGradients<C>& gates, T* to, T* again) {
  launch(call, unit_grid(gates.count), sum_gate_columns<C, T>, gates, to, again);
}

// --- States before steps -------------------------------------------------------------------------

// The hidden states of one direction, as they were before each step.
template <typename T>
struct StatesBefore {
  StepOrder order;
  std::int64_t batch;
  std::int64_t hidden;
  std::int64_t y_row;  // from one time to the next, of Y
  const T* y;          // [T, directions, N, H], from this direction on
  const T* first;      // [N, H]; null: zeros

  StatesBefore(const StepOrder& steps, const RecurrentSizes& sizes, std::int64_t d, const T* all_y,
               const T* all_first)
      : order(steps),
        batch(sizes.batch),
        hidden(sizes.hidden),
        y_row(sizes.directions * sizes.states()),
        y(all_y + d * sizes.states()),
        first(all_first == nullptr ? nullptr : all_first + d * sizes.states()) {}

  __device__ Computed<T> at(std::int64_t k, std::int64_t n, std::int64_t j) const {
    const std::int64_t place = n * hidden + j;
    if (order.has_before(k, n)) return computed(y[order.at(k - 1) * y_row + place]);
    return first == nullptr ? Computed<T>(0) : computed(first[place]);
  }
};

// to [T, N, H], in the order of time; with `reset` [T, N, ..], rows `reset_row` apart, each by the
// reset gate. Rows of steps behind the end of a sequence hold whatever is finite. Bytes: Y and the
// gates once, and what is written.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    gather_states(const StatesBefore<T> states, const Computed<T>* reset, std::int64_t reset_row,
                  std::int64_t elements, Computed<T>* to) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const std::int64_t row = i / states.hidden;
  const std::int64_t j = i % states.hidden;
  const Computed<T> state =
      states.at(states.order.step_at(row / states.batch), row % states.batch, j);
  to[i] = reset == nullptr ? state : state * reset[row * reset_row + j];
}

template <typename T>
void gather_states_before(const CallContext& call, const StatesBefore<T>& states,
                          const RecurrentSizes& sizes, const Computed<T>* reset,
                          std::int64_t reset_row, Computed<T>* to) {
  const std::int64_t elements = sizes.rows() * sizes.hidden;
  launch(call, unit_grid(elements), gather_states<T>, states, reset, reset_row, elements, to);
}

}  // namespace trainscope::cuda
