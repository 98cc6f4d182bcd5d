// What the gradients of RNN, LSTM and GRU share: from the gradients of what the gates are given, of
// all steps, to those of X, W, R and B, a GEMM each over all steps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/recurrent/recurrent.h"

namespace trainscope::cpu {

// The GEMMs over all steps of a cell whose gates, `columns` together, are all of W and of R.
template <typename T>
struct GradientPlan {
  RecurrentSizes sizes;
  GemmPlan<T> steps;       // dX
  GemmPlan<T> weights;     // dW
  GemmPlan<T> recurrence;  // dR

  GradientPlan(const RecurrentSizes& of, std::int64_t columns, int threads)
      : sizes(of),
        steps(plan_of_all_steps<T>(of.rows(), of.width, columns, threads)),
        weights(plan_of_all_steps<T>(columns, of.width, of.rows(), threads)),
        recurrence(plan_of_all_steps<T>(columns, of.hidden, of.rows(), threads)) {}

  std::size_t workspace_bytes() const {
    return std::max(
        {steps.workspace_bytes(), weights.workspace_bytes(), recurrence.workspace_bytes()});
  }
};

// product(range), which reads gates' gradients [N, ..] of step k + 1, then rows(range), which
// writes those of step k: on each thread one after the other. In reverse, step k lies behind step k
// + 1, where the last tile of the product reads rows that it drops, if N is no multiple of a
// tile's: then all products first.
template <typename T, class Product, class Rows>
void product_then_rows(const CellDivision<T>& division, const StepOrder& order, std::int64_t batch,
                       int threads, Product product, Rows rows) {
  if (order.is_reverse() && batch % whole_tile_rows<T>(1) != 0) {
    for_each_range(division, threads, product);
    for_each_range(division, threads, rows);
    return;
  }
  for_each_range(division, threads, [&](const CellRange& range) {
    product(range);
    rows(range);
  });
}

// Some columns of the gradients of gates [T * N, ..], whose rows lie `row` apart.
template <typename T>
struct GateColumns {
  const T* first = nullptr;
  std::int64_t row = 0;
  std::int64_t count = 0;
};

// to [columns, width] = gates' x, x [T * N, width]: the gradient of the weights of some gates.
template <typename T>
GemmOperands<T> weights_gradient(const GateColumns<T>& gates, const T* x, std::int64_t width,
                                 T* to) {
  return {.a = gates.first,
          .a_row = 1,
          .a_column = gates.row,
          .b = x,
          .b_row = width,
          .b_column = 1,
          .c = to,
          .c_row = width};
}

// to [T * N, width] = gates w, w [columns, width]; with `adds` what is there is added.
template <typename T>
GemmOperands<T> inputs_gradient(const GateColumns<T>& gates, const T* w, std::int64_t width, T* to,
                                bool adds) {
  return {.a = gates.first,
          .a_row = gates.row,
          .a_column = 1,
          .b = w,
          .b_row = width,
          .b_column = 1,
          .c = to,
          .c_row = width,
          .d = adds ? to : nullptr,
          .d_row = width,
          .d_column = 1,
          .beta = adds ? T{1} : T{0}};
}

// to[j] = sum over the rows of f(row, column j), in their order, for columns [0, columns).
template <typename T, class F>
void sum_over_rows(std::int64_t rows, std::int64_t columns, int threads, T* to, F f) {
  constexpr std::int64_t kBlock = 64;
  parallel_for(threads, divide_up(columns, kBlock), std::max<std::int64_t>(1, 512 / (rows + 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t block = begin; block < end; ++block) {
                   const std::int64_t first = block * kBlock;
                   const std::int64_t width = std::min(kBlock, columns - first);
                   double sums[kBlock] = {};
                   for (std::int64_t row = 0; row < rows; ++row) {
                     for (std::int64_t j = 0; j < width; ++j) {
                       sums[j] += static_cast<double>(f(row, first + j));
                     }
                   }
                   for (std::int64_t j = 0; j < width; ++j) to[first + j] = static_cast<T>(sums[j]);
                 }
               });
}

template <typename T>
void sum_gates(const GateColumns<T>& gates, std::int64_t rows, int threads, T* to) {
  sum_over_rows(rows, gates.count, threads, to,
                [=](std::int64_t row, std::int64_t j) { return gates.first[row * gates.row + j]; });
}

// The hidden states before all steps [T * N, H], in the order of time: of Y, or the first one.
// Rows of steps behind the end of a sequence hold whatever is finite; their gates' gradients are 0.
template <typename T>
void gather_states_before(const StepOrder& order, const RecurrentSizes& sizes, std::int64_t d,
                          const T* y, const T* first, int threads, T* to) {
  const std::int64_t hidden = sizes.hidden;
  parallel_for(threads, sizes.time, row_grain(sizes.states()),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t k = begin; k < end; ++k) {
                   for (std::int64_t n = 0; n < sizes.batch; ++n) {
                     T* row = to + (order.at(k) * sizes.batch + n) * hidden;
                     if (order.has_before(k, n)) {
                       const std::int64_t t = order.at(k - 1);
                       const T* from = y + ((t * sizes.directions + d) * sizes.batch + n) * hidden;
                       std::copy_n(from, hidden, row);
                     } else if (first != nullptr) {
                       std::copy_n(first + (d * sizes.batch + n) * hidden, hidden, row);
                     } else {
                       std::fill_n(row, hidden, T{0});
                     }
                   }
                 }
               });
}

// A state's gradient before the last step that counts: that of the op's output, if it has any.
template <typename T>
void begin_gradient(const T* of_last, const RecurrentSizes& sizes, std::int64_t d, T* to) {
  if (of_last == nullptr) {
    std::fill_n(to, sizes.states(), T{0});
  } else {
    std::copy_n(of_last + d * sizes.states(), sizes.states(), to);
  }
}

// to [N, H] rows of units: the state's gradient and that of Y at this step.
template <typename T>
void add_gradient_of_y(const T* dstate, const T* dy, std::int64_t units, T* to) {
  if (dy == nullptr) {
    std::copy_n(dstate, units, to);
    return;
  }
#pragma omp simd
  for (std::int64_t j = 0; j < units; ++j) to[j] = dstate[j] + dy[j];
}

}  // namespace trainscope::cpu
