// Gru: one GEMM of the inputs of all steps, then step by step GEMMs of the hidden state and the
// gates, fused. Where the reset gate scales the state before its product, a step has two parts:
// the product needs all units of the scaled state. Gates of all steps are kept for the gradient.
#include "kernels/cpu/recurrent/gru.h"

#include "kernels/cpu/recurrent/cell_activation.h"
#include "kernels/cpu/recurrent/recurrent_work.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

enum Output : std::size_t { kY, kLastHidden, kSaved };

template <typename T>
struct Plan {
  RecurrentSizes sizes;
  std::int64_t blocks = 0;
  bool saves = false;  // into an output
  GemmPlan<T> of_inputs;
};

// What a direction needs beside the operands.
template <typename T>
struct Buffers {
  T* bias;       // [3 * H], what is added to X W'
  T* hidden[2];  // [N, H], before and after a step
  T* scaled;     // [N, H], the state before a step, by the reset gate
  T* saved;      // [T, N, blocks * H], where no output holds it
  StepPanels<T> recurrence[kGruGates];
  std::byte* gemm;

  Buffers(const Plan<T>& plan, RecurrentWorkspace& workspace) {
    const RecurrentSizes& sizes = plan.sizes;
    bias = workspace.take<T>(kGruGates * sizes.hidden);
    for (T*& state : hidden) state = workspace.take<T>(padded_states<T>(sizes));
    scaled = workspace.take<T>(padded_states<T>(sizes));
    saved = plan.saves ? nullptr : workspace.take<T>(sizes.rows() * plan.blocks * sizes.hidden);
    for (StepPanels<T>& panels : recurrence) {
      panels = StepPanels<T>(sizes.hidden, sizes.hidden, workspace);
    }
    gemm = workspace.take<std::byte>(static_cast<std::int64_t>(plan.of_inputs.workspace_bytes()));
  }
};

template <typename T>
Prepared prepare(const PrepareArgs& args) {
  const RecurrentSizes sizes = recurrent_sizes(args.inputs);
  return prepared<Buffers<T>>(Plan<T>{
      .sizes = sizes,
      .blocks = gru_blocks(recurrent_params(args.params)),
      .saves = is_present(args.outputs, kSaved),
      .of_inputs =
          plan_of_all_steps<T>(sizes.rows(), kGruGates * sizes.hidden, sizes.width, args.threads)});
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
        gate_row_(plan.blocks * sizes_.hidden) {
    T* output = optional_data<T>(args.outputs, kSaved);
    saved_ = output == nullptr ? buffers.saved : output + d * sizes_.rows() * gate_row_;
    if (const T* b = optional_data<const T>(args.inputs, kBias)) {
      bias_ = b + d * 2 * kGruGates * sizes_.hidden;
    }
    y_ = args.outputs[kY].as<T>() + d * sizes_.states();
  }

  void run() {
    start();
    const CellDivision<T> division(sizes_, kGruGates, args_.threads);
    for (std::int64_t k = 0; k < sizes_.time; ++k) {
      const std::int64_t t = order_.at(k);
      const T* before = buffers_.hidden[k % 2];
      T* after = buffers_.hidden[(k + 1) % 2];
      if (!params_.linear_before_reset) {
        for_each_range(division, args_.threads,
                       [&](const CellRange& range) { compute_gates(t, before, range); });
      }
      for_each_range(division, args_.threads,
                     [&](const CellRange& range) { finish_step(t, before, after, range); });
    }
    if (T* last = optional_data<T>(args_.outputs, kLastHidden)) {
      std::copy_n(buffers_.hidden[sizes_.time % 2], sizes_.states(), last + d_ * sizes_.states());
    }
  }

 private:
  // R's bias of g goes with the product that the reset gate scales.
  void add_up_bias() const {
    const std::int64_t columns = kGruGates * sizes_.hidden;
    for (std::int64_t j = 0; j < columns; ++j) {
      const bool of_product = params_.linear_before_reset && j >= 2 * sizes_.hidden;
      const T own = bias_ == nullptr ? T{0} : bias_[j];
      buffers_.bias[j] = bias_ == nullptr || of_product ? own : own + bias_[columns + j];
    }
  }

  void start() {
    const std::int64_t hidden = sizes_.hidden;
    const std::int64_t columns = kGruGates * hidden;
    add_up_bias();
    const T* w = args_.inputs[kInputWeights].as<const T>() + d_ * columns * sizes_.width;
    run_one_gemm(plan_.of_inputs,
                 gates_of_inputs(args_.inputs[kSteps].as<const T>(), w,
                                 static_cast<const T*>(buffers_.bias), sizes_, saved_, gate_row_),
                 buffers_.gemm, args_.threads);
    const T* r = args_.inputs[kRecurrence].as<const T>() + d_ * columns * hidden;
    for (std::int64_t gate = 0; gate < kGruGates; ++gate) {
      buffers_.recurrence[gate].pack(recurrence_of_gate(r, sizes_, gate), args_.threads);
    }
    for (T* state : {buffers_.hidden[0], buffers_.hidden[1], buffers_.scaled}) {
      std::fill_n(state, padded_states<T>(sizes_), T{0});
    }
    if (const T* first = optional_data<const T>(args_.inputs, kFirstHidden)) {
      std::copy_n(first + d_ * sizes_.states(), sizes_.states(), buffers_.hidden[0]);
    }
  }

  T* step_gates(std::int64_t t) const { return saved_ + t * sizes_.batch * gate_row_; }
  GruRow<T> row_at(std::int64_t t, std::int64_t n, const CellRange& range) const {
    return {step_gates(t) + n * gate_row_ + range.unit_begin, sizes_.hidden};
  }
  void add_product(std::int64_t gate, const T* a, T* c, const CellRange& range) const {
    buffers_.recurrence[gate].add_product(a, sizes_.hidden, c, gate_row_, range);
  }

  // z and r, and the state that r scales, for the product of g.
  void compute_gates(std::int64_t t, const T* before, const CellRange& range) const {
    add_update_and_reset(t, before, range);
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      const GruRow<T> row = row_at(t, n, range);
      activate_update_and_reset(row, range.units());
      const std::int64_t at = n * sizes_.hidden + range.unit_begin;
      const T* h = before + at;
      T* scaled = buffers_.scaled + at;
#pragma omp simd
      for (std::int64_t j = 0; j < range.units(); ++j) scaled[j] = row.r[j] * h[j];
    }
  }

  void add_update_and_reset(std::int64_t t, const T* before, const CellRange& range) const {
    add_product(0, before, step_gates(t), range);
    add_product(1, before, step_gates(t) + sizes_.hidden, range);
  }
  void activate_update_and_reset(const GruRow<T>& row, std::int64_t units) const {
    activate(functions_[0], params_.clip, row.z, units);
    activate(functions_[0], params_.clip, row.r, units);
  }

  // R's bias of g, then the product is added to it.
  void begin_products(std::int64_t t, const CellRange& range) const {
    const T* bias = bias_ == nullptr ? nullptr : bias_ + 5 * sizes_.hidden + range.unit_begin;
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      T* product = row_at(t, n, range).product;
      if (bias == nullptr) {
        std::fill_n(product, range.units(), T{0});
      } else {
        std::copy_n(bias, range.units(), product);
      }
    }
  }

  void finish_step(std::int64_t t, const T* before, T* after, const CellRange& range) const {
    if (params_.linear_before_reset) {
      add_update_and_reset(t, before, range);
      begin_products(t, range);
      add_product(2, before, step_gates(t) + 3 * sizes_.hidden, range);
    } else {
      add_product(2, buffers_.scaled, step_gates(t) + 2 * sizes_.hidden, range);
    }
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      const std::int64_t at = n * sizes_.hidden + range.unit_begin;
      T* y = y_ + t * sizes_.directions * sizes_.states() + at;
      if (order_.counts(t, n)) {
        finish_row(row_at(t, n, range), range.units(), before + at, after + at);
        std::copy_n(after + at, range.units(), y);
      } else {
        std::copy_n(before + at, range.units(), after + at);
        std::fill_n(y, range.units(), T{0});
        skip_row(row_at(t, n, range), range.units());
      }
    }
  }

  // A step behind the end of a sequence changes no state and has gates of 0.
  void skip_row(const GruRow<T>& row, std::int64_t units) const {
    for (T* gate : {row.z, row.r, row.g}) std::fill_n(gate, units, T{0});
    if (params_.linear_before_reset) std::fill_n(row.product, units, T{0});
  }

  void finish_row(const GruRow<T>& row, std::int64_t units, const T* h, T* next) const {
    const auto& [z, r, g, product] = row;
    if (params_.linear_before_reset) {
      activate_update_and_reset(row, units);
#pragma omp simd
      for (std::int64_t j = 0; j < units; ++j) g[j] += r[j] * product[j];
    }
    activate(functions_[1], params_.clip, g, units);
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) next[j] = (T{1} - z[j]) * g[j] + z[j] * h[j];
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
  T* saved_ = nullptr;       // [T, N, blocks * H]
  const T* bias_ = nullptr;  // [6 * H]
  T* y_ = nullptr;           // [T, directions, N, H], from this direction on
};

template <typename T>
void run(const RunArgs& args) {
  check_lengths(args, args.inputs);
  run_directions<Plan<T>, Buffers<T>, Direction<T>>(args);
}

constexpr Kernel kGru{.name = "gru.own",
                      .prepare = prepare<float>,
                      .run = run<float>,
                      .estimate = estimate_steps<float, kGruGates>};

}  // namespace

void add_gru(KernelTable& table) {
  table.add("Gru", DType::kF32, kGru);
  add_upcast<kGru>(table, "Gru", "gru.upcast");
  table.add("Gru", DType::kF64,
            {.name = "gru.own",
             .prepare = prepare<double>,
             .run = run<double>,
             .estimate = estimate_steps<double, kGruGates>});
}

}  // namespace trainscope::cpu
