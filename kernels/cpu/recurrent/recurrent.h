// What the kernels of RNN, LSTM and GRU share: which units a thread computes, the GEMMs of all
// steps and of one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "kernels/api/kernel.h"
#include "kernels/api/recurrent_layout.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/panel_gemm.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {

inline bool is_present(std::span<const TensorView> views, std::size_t i) {
  return i < views.size() && views[i].present;
}
// Null for an operand that is left out.
template <typename T>
T* optional_data(std::span<const TensorView> views, std::size_t i) {
  return is_present(views, i) ? views[i].as<T>() : nullptr;
}

// A length that no sequence can have fails the call, whose results then are of no use.
inline void check_lengths(const RunArgs& args, std::span<const TensorView> inputs) {
  const auto* lengths = optional_data<const std::int64_t>(inputs, kLengths);
  const Shape& x = inputs[kSteps].shape();
  for (std::int64_t n = 0; lengths != nullptr && n < x[1]; ++n) {
    if (lengths[n] >= 0 && lengths[n] <= x[0]) continue;
    args.call.fail(DeviceStatus::Code::kBadInput,
                   "the length " + std::to_string(lengths[n]) + " of sequence " +
                       std::to_string(n) + " is outside of the " + std::to_string(x[0]) + " steps");
    return;
  }
}

// What a kernel keeps of its preparation: the plan, and the bytes of the buffers that it needs.
template <class Buffers, class Plan>
Prepared prepared(Plan plan) {
  RecurrentWorkspace counting;
  const Buffers counted(plan, counting);
  return {.workspace_bytes = counting.bytes(), .state = std::make_shared<Plan>(std::move(plan))};
}

// A call's directions one after the other, in the same buffers.
template <class Plan, class Buffers, class Direction>
void run_directions(const RunArgs& args) {
  const auto& plan = *static_cast<const Plan*>(args.state);
  RecurrentWorkspace workspace(args.workspace);
  const Buffers buffers(plan, workspace);
  for (std::int64_t d = 0; d < plan.sizes.directions; ++d) {
    Direction(args, plan, buffers, d).run();
  }
}

// --- Who computes what of a step -----------------------------------------------------------------

// Sequences [row_begin, row_end) of the batch, units [unit_begin, unit_end) of each.
struct CellRange {
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
  std::int64_t unit_begin = 0;
  std::int64_t unit_end = 0;

  std::int64_t rows() const { return row_end - row_begin; }
  std::int64_t units() const { return unit_end - unit_begin; }
};

// A step's cells in ranges of whole tiles, one a thread. No result depends on the division.
template <typename T>
class CellDivision {
 public:
  CellDivision(const RecurrentSizes& sizes, std::int64_t gates, int threads) : sizes_(sizes) {
    constexpr double kLeastFlops = 200'000.0;  // that are worth a thread's start
    const double flops =
        2.0 * static_cast<double>(sizes.states()) * static_cast<double>(gates * sizes.hidden);
    const auto worth = static_cast<std::int64_t>(
        std::clamp(flops / kLeastFlops, 1.0, static_cast<double>(std::max(1, threads))));
    unit_chunks_ = std::clamp<std::int64_t>(panels(), 1, worth);
    row_chunks_ =
        std::clamp<std::int64_t>(row_tiles(), 1, std::max<std::int64_t>(1, worth / unit_chunks_));
  }

  std::int64_t count() const { return unit_chunks_ * row_chunks_; }
  CellRange range(std::int64_t i) const {
    const std::int64_t unit = i % unit_chunks_;
    const std::int64_t row = i / unit_chunks_;
    const auto unit_at = [this](std::int64_t chunk) {
      return std::min(sizes_.hidden, chunk * panels() / unit_chunks_ * whole_tile_columns<T>(1));
    };
    const auto row_at = [this](std::int64_t chunk) {
      return std::min(sizes_.batch, chunk * row_tiles() / row_chunks_ * whole_tile_rows<T>(1));
    };
    return {.row_begin = row_at(row),
            .row_end = row_at(row + 1),
            .unit_begin = unit_at(unit),
            .unit_end = unit_at(unit + 1)};
  }

 private:
  std::int64_t panels() const { return divide_up(sizes_.hidden, whole_tile_columns<T>(1)); }
  std::int64_t row_tiles() const { return divide_up(sizes_.batch, whole_tile_rows<T>(1)); }

  RecurrentSizes sizes_;
  std::int64_t unit_chunks_ = 1;
  std::int64_t row_chunks_ = 1;
};

// f(range) for all ranges, each on a thread.
template <typename T, class F>
void for_each_range(const CellDivision<T>& division, int threads, F f) {
  parallel_for(threads, division.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(division.range(i));
  });
}

// --- GEMMs of one step ---------------------------------------------------------------------------

// Rows of a state [N, H] that tiles read: whole tiles of them.
template <typename T>
std::int64_t padded_states(const RecurrentSizes& sizes) {
  return whole_tile_rows<T>(sizes.batch) * sizes.hidden;
}

// A part of R as the B [k, n] of the GEMM of every step: packed once a call.
template <typename T>
struct StepPanels {
  std::int64_t k = 0;
  std::int64_t n = 0;
  Packed<T>* memory = nullptr;

  StepPanels() = default;
  StepPanels(std::int64_t depth, std::int64_t columns, RecurrentWorkspace& workspace)
      : k(depth),
        n(columns),
        memory(workspace.take<Packed<T>>(packed_steps<T>(depth) * whole_tile_columns<T>(columns))) {
  }

  // Column j, row p of B is source.data[j * across + p * along].
  void pack(const PanelSource<T>& source, int threads) const {
    const std::int64_t panel = whole_tile_columns<T>(1);
    parallel_for(threads, divide_up(n, panel), std::max<std::int64_t>(1, 65536 / (k * panel + 1)),
                 [&](std::int64_t begin, std::int64_t end) {
                   const std::int64_t first = begin * panel;
                   pack_panels(source.from(first, 0), std::min(n, end * panel) - first, k, panel,
                               memory + first * packed_steps<T>(k));
                 });
  }

  // C += A B for the rows and the columns of the range: A [N, k] has rows `a_row` apart and place
  // for whole tiles, C [N, ..] rows `c_row` apart; both are given from their first row on.
  void add_product(const T* a, std::int64_t a_row, T* c, std::int64_t c_row,
                   const CellRange& range) const {
    if (range.rows() == 0 || range.units() == 0) return;
    multiply<T>({.m = range.rows(),
                 .n = range.units(),
                 .k = k,
                 .a = a + range.row_begin * a_row,
                 .a_line = a_row,
                 .a_step = 1,
                 .c = c + range.row_begin * c_row + range.unit_begin,
                 .c_row = c_row,
                 .adds = true},
                PackedPanels<T>(k, memory + range.unit_begin * packed_steps<T>(k)));
  }
};

// The panels of gate `gate`'s rows of R [gates * H, H] as the B [H, H] of h R'.
template <typename T>
PanelSource<T> recurrence_of_gate(const T* r, const RecurrentSizes& sizes, std::int64_t gate) {
  return {r + gate * sizes.hidden * sizes.hidden, sizes.hidden, 1};
}

// --- GEMMs of all steps --------------------------------------------------------------------------

// C [m, n] (+)= op(A) B of dense matrices, of which A may be read transposed.
template <typename T>
GemmPlan<T> plan_of_all_steps(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  return plan_gemm<T>({.m = m, .n = n, .k = k}, threads);
}
template <typename T>
void run_one_gemm(const GemmPlan<T>& plan, const GemmOperands<T>& operands, void* workspace,
                  int threads) {
  run_gemm(plan, workspace, threads, [&](std::int64_t) { return operands; });
}

// gates [T * N, columns], rows `gate_row` apart, = X W' + bias.
template <typename T>
GemmOperands<T> gates_of_inputs(const T* x, const T* w, const T* bias, const RecurrentSizes& sizes,
                                T* gates, std::int64_t gate_row) {
  return {.a = x,
          .a_row = sizes.width,
          .a_column = 1,
          .b = w,
          .b_row = 1,
          .b_column = sizes.width,
          .c = gates,
          .c_row = gate_row,
          .d = bias,
          .d_row = 0,
          .d_column = 1,
          .beta = T{1}};
}

}  // namespace trainscope::cpu
