// Lstm: one GEMM of the inputs of all steps, then step by step a GEMM of the hidden state and the
// gates, fused. Gates and cells of all steps are kept for the gradient.
#include "kernels/cpu/recurrent/lstm.h"

#include "kernels/cpu/recurrent/cell_activation.h"
#include "kernels/cpu/recurrent/recurrent_work.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

enum Output : std::size_t { kY, kLastHidden, kLastCell, kSaved };

template <typename T>
struct Plan {
  RecurrentSizes sizes;
  bool saves = false;  // into an output
  GemmPlan<T> of_inputs;
};

// What a direction needs beside the operands.
template <typename T>
struct Buffers {
  T* bias;       // [4 * H], of W and of R
  T* hidden[2];  // [N, H], before and after a step
  T* cell;       // [N, H]
  T* saved;      // [T, N, 5 * H], where no output holds it
  StepPanels<T> recurrence[kLstmGates];
  std::byte* gemm;

  Buffers(const Plan<T>& plan, RecurrentWorkspace& workspace) {
    const RecurrentSizes& sizes = plan.sizes;
    bias = workspace.take<T>(kLstmGates * sizes.hidden);
    for (T*& state : hidden) state = workspace.take<T>(padded_states<T>(sizes));
    cell = workspace.take<T>(sizes.states());
    saved = plan.saves ? nullptr : workspace.take<T>(sizes.rows() * kLstmSaved * sizes.hidden);
    for (StepPanels<T>& panels : recurrence) {
      panels = StepPanels<T>(sizes.hidden, sizes.hidden, workspace);
    }
    gemm = workspace.take<std::byte>(static_cast<std::int64_t>(plan.of_inputs.workspace_bytes()));
  }
};

template <typename T>
Prepared prepare(const PrepareArgs& args) {
  const RecurrentSizes sizes = recurrent_sizes(args.inputs);
  return prepared<Buffers<T>>(
      Plan<T>{.sizes = sizes,
              .saves = is_present(args.outputs, kSaved),
              .of_inputs = plan_of_all_steps<T>(sizes.rows(), kLstmGates * sizes.hidden,
                                                sizes.width, args.threads)});
}

// One direction of a call.
template <typename T>
class Direction {
 public:
  Direction(const RunArgs& args, const Plan<T>& plan, const Buffers<T>& buffers, std::int64_t d)
      : args_(args),
        plan_(plan),
        sizes_(plan.sizes),
        buffers_(buffers),
        d_(d),
        order_(step_order(args.params, args.inputs, d)),
        params_(recurrent_params(args.params)),
        functions_(params_.activations[static_cast<std::size_t>(d)]),
        gate_row_(kLstmSaved * sizes_.hidden) {
    T* output = optional_data<T>(args.outputs, kSaved);
    saved_ = output == nullptr ? buffers.saved : output + d * sizes_.rows() * gate_row_;
    if (const T* p = optional_data<const T>(args.inputs, kPeepholes)) {
      peepholes_ = p + d * 3 * sizes_.hidden;
    }
    y_ = args.outputs[kY].as<T>() + d * sizes_.states();
  }

  void run() {
    start();
    const CellDivision<T> division(sizes_, kLstmGates, args_.threads);
    for (std::int64_t k = 0; k < sizes_.time; ++k) {
      const T* before = buffers_.hidden[k % 2];
      T* after = buffers_.hidden[(k + 1) % 2];
      for_each_range(division, args_.threads,
                     [&](const CellRange& range) { step(order_.at(k), before, after, range); });
    }
    finish(kLastHidden, buffers_.hidden[sizes_.time % 2]);
    finish(kLastCell, buffers_.cell);
  }

 private:
  void start() {
    const std::int64_t hidden = sizes_.hidden;
    const std::int64_t columns = kLstmGates * hidden;
    const T* b = optional_data<const T>(args_.inputs, kBias);
    for (std::int64_t j = 0; j < columns; ++j) {
      const T* own = b == nullptr ? nullptr : b + d_ * 2 * columns + j;
      buffers_.bias[j] = own == nullptr ? T{0} : own[0] + own[columns];
    }
    const T* w = args_.inputs[kInputWeights].as<const T>() + d_ * columns * sizes_.width;
    run_one_gemm(plan_.of_inputs,
                 gates_of_inputs(args_.inputs[kSteps].as<const T>(), w, buffers_.bias, sizes_,
                                 saved_, gate_row_),
                 buffers_.gemm, args_.threads);
    const T* r = args_.inputs[kRecurrence].as<const T>() + d_ * columns * hidden;
    for (std::int64_t gate = 0; gate < kLstmGates; ++gate) {
      buffers_.recurrence[gate].pack(recurrence_of_gate(r, sizes_, gate), args_.threads);
    }
    std::fill_n(buffers_.hidden[1], padded_states<T>(sizes_), T{0});
    std::fill_n(buffers_.hidden[0], padded_states<T>(sizes_), T{0});
    begin_state(kFirstHidden, buffers_.hidden[0]);
    begin_state(kFirstCell, buffers_.cell);
  }

  void begin_state(std::size_t input, T* state) const {
    const T* first = optional_data<const T>(args_.inputs, input);
    if (first == nullptr) {
      std::fill_n(state, sizes_.states(), T{0});
    } else {
      std::copy_n(first + d_ * sizes_.states(), sizes_.states(), state);
    }
  }
  void finish(std::size_t output, const T* state) const {
    T* last = optional_data<T>(args_.outputs, output);
    if (last != nullptr) std::copy_n(state, sizes_.states(), last + d_ * sizes_.states());
  }

  void step(std::int64_t t, const T* before, T* after, const CellRange& range) const {
    T* gates = saved_ + t * sizes_.batch * gate_row_;  // [N, 5 * H]
    for (std::int64_t gate = 0; gate < kLstmGates; ++gate) {
      buffers_.recurrence[gate].add_product(before, sizes_.hidden, gates + gate * sizes_.hidden,
                                            gate_row_, range);
    }
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      const std::int64_t at = n * sizes_.hidden + range.unit_begin;
      T* y = y_ + t * sizes_.directions * sizes_.states() + at;
      const LstmRow<T> row(gates + n * gate_row_ + range.unit_begin, sizes_.hidden);
      if (order_.counts(t, n)) {
        compute_row(row, range, buffers_.cell + at, after + at);
        std::copy_n(after + at, range.units(), y);
      } else {
        skip_row(row, range.units(), buffers_.cell + at);
        std::copy_n(before + at, range.units(), after + at);
        std::fill_n(y, range.units(), T{0});
      }
    }
  }

  // A step behind the end of a sequence changes no state and has gates of 0.
  void skip_row(const LstmRow<T>& row, std::int64_t units, const T* cell) const {
    for (T* gate : {row.i, row.o, row.f, row.g}) std::fill_n(gate, units, T{0});
    std::copy_n(cell, units, row.cell);
  }

  // From what the gates are given to the gates, the cell and the hidden state.
  void compute_row(const LstmRow<T>& row, const CellRange& range, T* cell, T* hidden) const {
    const std::int64_t units = range.units();
    const T* p = peepholes_ == nullptr ? nullptr : peepholes_ + range.unit_begin;
    const auto& [i, o, f, g, c] = row;
    if (p != nullptr) {
      add_peephole(i, p, cell, units);
      add_peephole(f, p + 2 * sizes_.hidden, cell, units);
    }
    activate(functions_[0], params_.clip, i, units);
    if (params_.coupled) {
#pragma omp simd
      for (std::int64_t j = 0; j < units; ++j) f[j] = T{1} - i[j];
    } else {
      activate(functions_[0], params_.clip, f, units);
    }
    activate(functions_[1], params_.clip, g, units);
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) {
      cell[j] = f[j] * cell[j] + i[j] * g[j];
      c[j] = cell[j];
      hidden[j] = cell[j];
    }
    if (p != nullptr) add_peephole(o, p + sizes_.hidden, cell, units);
    activate(functions_[0], params_.clip, o, units);
    activate(functions_[2], params_.clip, hidden, units);
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) hidden[j] *= o[j];
  }

  static void add_peephole(T* gate, const T* weights, const T* cell, std::int64_t units) {
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) gate[j] += weights[j] * cell[j];
  }

  const RunArgs& args_;
  const Plan<T>& plan_;
  const RecurrentSizes& sizes_;
  const Buffers<T>& buffers_;
  std::int64_t d_;
  StepOrder order_;
  const RecurrentParams& params_;
  const std::array<CellActivation, kMostCellActivations>& functions_;
  std::int64_t gate_row_;
  T* saved_ = nullptr;            // [T, N, 5 * H]
  const T* peepholes_ = nullptr;  // [3 * H]: i, o, f
  T* y_ = nullptr;                // [T, directions, N, H], from this direction on
};

template <typename T>
void run(const RunArgs& args) {
  check_lengths(args, args.inputs);
  run_directions<Plan<T>, Buffers<T>, Direction<T>>(args);
}

constexpr Kernel kLstm{.name = "lstm.own",
                       .prepare = prepare<float>,
                       .run = run<float>,
                       .estimate = estimate_steps<float, kLstmGates>};

}  // namespace

void add_lstm(KernelTable& table) {
  table.add("Lstm", DType::kF32, kLstm);
  add_upcast<kLstm>(table, "Lstm", "lstm.upcast");
  table.add("Lstm", DType::kF64,
            {.name = "lstm.own",
             .prepare = prepare<double>,
             .run = run<double>,
             .estimate = estimate_steps<double, kLstmGates>});
}

}  // namespace trainscope::cpu
