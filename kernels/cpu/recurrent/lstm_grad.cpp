// LstmGrad: back through the steps, each the gates' gradients and a GEMM with the recurrence, then
// one GEMM over all steps for each of dW, dR and dX.
#include "kernels/cpu/recurrent/cell_activation.h"
#include "kernels/cpu/recurrent/lstm.h"
#include "kernels/cpu/recurrent/recurrent_grad.h"
#include "kernels/cpu/recurrent/recurrent_work.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

enum Input : std::size_t { kDY, kDLastHidden, kDLastCell, kY, kSaved, kForward };
constexpr std::int64_t kUnitsAtOnce = 256;

// What a direction needs beside the operands.
template <typename T>
struct Buffers {
  T* gates;          // [T, N, 4 * H], gradients of what the gates are given
  T* hidden;         // [N, H], gradient of the state before a step
  T* cell;           // [N, H]
  T* states_before;  // [T, N, H]
  StepPanels<T> recurrence;
  std::byte* gemm;

  Buffers(const GradientPlan<T>& plan, RecurrentWorkspace& workspace) {
    const RecurrentSizes& s = plan.sizes;
    gates = workspace.take<T>((s.rows() + whole_tile_rows<T>(1)) * kLstmGates * s.hidden);
    hidden = workspace.take<T>(s.states());
    cell = workspace.take<T>(s.states());
    states_before = workspace.take<T>(s.rows() * s.hidden);
    recurrence = StepPanels<T>(kLstmGates * s.hidden, s.hidden, workspace);
    gemm = workspace.take<std::byte>(static_cast<std::int64_t>(plan.workspace_bytes()));
  }
};

template <typename T>
Prepared prepare(const PrepareArgs& args) {
  const RecurrentSizes sizes = recurrent_sizes(args.inputs.subspan(kForward));
  return prepared<Buffers<T>>(GradientPlan<T>(sizes, kLstmGates * sizes.hidden, args.threads));
}

// One direction of a call.
template <typename T>
class Direction {
 public:
  Direction(const RunArgs& args, const GradientPlan<T>& plan, const Buffers<T>& buffers,
            std::int64_t d)
      : args_(args),
        forward_(args.inputs.subspan(kForward)),
        plan_(plan),
        sizes_(plan.sizes),
        buffers_(buffers),
        d_(d),
        order_(step_order(args.params, forward_, d)),
        params_(recurrent_params(args.params)),
        functions_(params_.activations[static_cast<std::size_t>(d)]),
        columns_(kLstmGates * sizes_.hidden) {
    saved_ = args.inputs[kSaved].as<T>() + d * sizes_.rows() * kLstmSaved * sizes_.hidden;
    if (const T* p = optional_data<const T>(forward_, kPeepholes)) {
      peepholes_ = p + d * 3 * sizes_.hidden;
    }
    if (const T* c = optional_data<const T>(forward_, kFirstCell)) {
      first_cell_ = c + d * sizes_.states();
    }
  }

  void run() {
    go_back();
    finish_states();
    finish_weights();
    if (T* dp = optional_data<T>(args_.outputs, kDPeepholes)) {
      finish_peepholes(dp + d_ * 3 * sizes_.hidden);
    }
  }

 private:
  const T* weights(RecurrentInput input, std::int64_t width) const {
    return forward_[input].template as<const T>() + d_ * columns_ * width;
  }
  T* step_gates(std::int64_t t) const { return buffers_.gates + t * sizes_.batch * columns_; }

  void go_back() {
    begin_gradient(optional_data<const T>(args_.inputs, kDLastHidden), sizes_, d_, buffers_.hidden);
    begin_gradient(optional_data<const T>(args_.inputs, kDLastCell), sizes_, d_, buffers_.cell);
    buffers_.recurrence.pack({weights(kRecurrence, sizes_.hidden), 1, sizes_.hidden},
                             args_.threads);
    const CellDivision<T> division(sizes_, kLstmGates, args_.threads);
    for (std::int64_t k = sizes_.time; k-- > 0;) {
      product_then_rows(
          division, order_, sizes_.batch, args_.threads,
          [&](const CellRange& range) {
            if (k + 1 < sizes_.time) add_step_gates(order_.at(k + 1), range);
          },
          [&](const CellRange& range) { compute_rows(k, range); });
    }
    if (sizes_.time == 0) return;
    for_each_range(division, args_.threads,
                   [&](const CellRange& range) { add_step_gates(order_.at(0), range); });
  }

  // The state's gradient through the gates of the step at time t.
  void add_step_gates(std::int64_t t, const CellRange& range) const {
    buffers_.recurrence.add_product(step_gates(t), columns_, buffers_.hidden, sizes_.hidden, range);
  }

  void compute_rows(std::int64_t k, const CellRange& range) const {
    const std::int64_t t = order_.at(k);
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      for (std::int64_t unit = range.unit_begin; unit < range.unit_end; unit += kUnitsAtOnce) {
        const std::int64_t units = std::min(kUnitsAtOnce, range.unit_end - unit);
        if (order_.counts(t, n)) {
          compute_row(k, n, unit, units);
        } else {
          T* gates = step_gates(t) + n * columns_ + unit;
          for (std::int64_t g = 0; g < kLstmGates; ++g) {
            std::fill_n(gates + g * sizes_.hidden, units, T{0});
          }
        }
      }
    }
  }

  LstmRow<T> saved_row(std::int64_t t, std::int64_t n, std::int64_t unit) const {
    return {saved_ + (t * sizes_.batch + n) * kLstmSaved * sizes_.hidden + unit, sizes_.hidden};
  }
  // Null: zeros.
  const T* cell_before(std::int64_t k, std::int64_t n, std::int64_t unit) const {
    if (k > 0) return saved_row(order_.at(k - 1), n, unit).cell;
    return first_cell_ == nullptr ? nullptr : first_cell_ + n * sizes_.hidden + unit;
  }

  // The gates' gradients of sequence n at step k, from those of the states behind it, which become
  // those before it (of the hidden state without its way through the gates).
  void compute_row(std::int64_t k, std::int64_t n, std::int64_t unit, std::int64_t units) const {
    alignas(64) T dh[kUnitsAtOnce];
    alignas(64) T of_cell[kUnitsAtOnce];  // what the output gate scales
    alignas(64) T dc[kUnitsAtOnce];
    alignas(64) T before[kUnitsAtOnce];
    const std::int64_t t = order_.at(k);
    const std::int64_t at = n * sizes_.hidden + unit;
    const LstmRow<T> y = saved_row(t, n, unit);
    const LstmRow<T> dx(step_gates(t) + n * columns_ + unit, sizes_.hidden);
    T* dhidden = buffers_.hidden + at;
    T* dcell = buffers_.cell + at;
    const T* dy = optional_data<const T>(args_.inputs, kDY);
    const std::int64_t of_step = (t * sizes_.directions + d_) * sizes_.states();
    add_gradient_of_y(dhidden, dy == nullptr ? nullptr : dy + of_step + at, units, dh);
    std::copy_n(y.cell, units, of_cell);
    activate(functions_[2], params_.clip, of_cell, units);
    const T* previous = cell_before(k, n, unit);
    for (std::int64_t j = 0; j < units; ++j) {
      before[j] = previous == nullptr ? T{0} : previous[j];
      dx.o[j] = dh[j] * of_cell[j];
      dc[j] = dh[j] * y.o[j];
      dhidden[j] = T{0};
    }
    derive(functions_[2], params_.clip, of_cell, dc, units);
    derive(functions_[0], params_.clip, y.o, dx.o, units);
    const T* p = peepholes_ == nullptr ? nullptr : peepholes_ + unit;
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) dc[j] += dcell[j];
    if (p != nullptr) add_peephole(dc, p + sizes_.hidden, dx.o, units);
    derive_gates(y, dx, dc, before, units);
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) dcell[j] = dc[j] * y.f[j];
    if (p != nullptr) {
      add_peephole(dcell, p, dx.i, units);
      add_peephole(dcell, p + 2 * sizes_.hidden, dx.f, units);
    }
  }

  // Of i, f and g, from the cell's gradient dc and the cell before the step.
  void derive_gates(const LstmRow<T>& y, const LstmRow<T>& dx, const T* dc, const T* before,
                    std::int64_t units) const {
    const bool coupled = params_.coupled;
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) {
      dx.g[j] = dc[j] * y.i[j];
      dx.i[j] = dc[j] * (coupled ? y.g[j] - before[j] : y.g[j]);
      dx.f[j] = coupled ? T{0} : dc[j] * before[j];
    }
    derive(functions_[0], params_.clip, y.i, dx.i, units);
    if (!coupled) derive(functions_[0], params_.clip, y.f, dx.f, units);
    derive(functions_[1], params_.clip, y.g, dx.g, units);
  }

  static void add_peephole(T* to, const T* weights, const T* d, std::int64_t units) {
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) to[j] += weights[j] * d[j];
  }

  void finish_states() const {
    const std::int64_t at = d_ * sizes_.states();
    if (T* to = optional_data<T>(args_.outputs, kDFirstHidden)) {
      std::copy_n(buffers_.hidden, sizes_.states(), to + at);
    }
    if (T* to = optional_data<T>(args_.outputs, kDFirstCell)) {
      std::copy_n(buffers_.cell, sizes_.states(), to + at);
    }
  }

  void finish_weights() const {
    const GateColumns<T> gates{.first = buffers_.gates, .row = columns_, .count = columns_};
    const T* x = forward_[kSteps].template as<const T>();
    T* dx = args_.outputs[kDSteps].template as<T>();
    run_one_gemm(
        plan_.steps,
        inputs_gradient(gates, weights(kInputWeights, sizes_.width), sizes_.width, dx, d_ > 0),
        buffers_.gemm, args_.threads);
    if (T* dw = optional_data<T>(args_.outputs, kDInputWeights)) {
      run_one_gemm(plan_.weights,
                   weights_gradient(gates, x, sizes_.width, dw + d_ * columns_ * sizes_.width),
                   buffers_.gemm, args_.threads);
    }
    if (T* dr = optional_data<T>(args_.outputs, kDRecurrence)) {
      gather_states_before(order_, sizes_, d_, args_.inputs[kY].template as<const T>(),
                           optional_data<const T>(forward_, kFirstHidden), args_.threads,
                           buffers_.states_before);
      run_one_gemm(plan_.recurrence,
                   weights_gradient(gates, static_cast<const T*>(buffers_.states_before),
                                    sizes_.hidden, dr + d_ * columns_ * sizes_.hidden),
                   buffers_.gemm, args_.threads);
    }
    if (T* db = optional_data<T>(args_.outputs, kDBias)) {
      T* own = db + d_ * 2 * columns_;
      sum_gates(gates, sizes_.rows(), args_.threads, own);
      std::copy_n(own, columns_, own + columns_);
    }
  }

  // dP [3 * H]: of i and f by the cell before the step, of o by the one after it.
  void finish_peepholes(T* dp) const {
    const std::int64_t hidden = sizes_.hidden;
    const auto gate = [&](std::int64_t row, std::int64_t number, std::int64_t unit) {
      return buffers_.gates[row * columns_ + number * hidden + unit];
    };
    const auto before = [&](std::int64_t row, std::int64_t unit) {
      const std::int64_t t = row / sizes_.batch;
      const T* cell = cell_before(order_.step_at(t), row % sizes_.batch, unit);
      return cell == nullptr ? T{0} : *cell;
    };
    sum_over_rows(sizes_.rows(), hidden, args_.threads, dp, [&](std::int64_t row, std::int64_t j) {
      return gate(row, 0, j) * before(row, j);
    });
    sum_over_rows(
        sizes_.rows(), hidden, args_.threads, dp + hidden, [&](std::int64_t row, std::int64_t j) {
          return gate(row, 1, j) * *saved_row(row / sizes_.batch, row % sizes_.batch, j).cell;
        });
    sum_over_rows(
        sizes_.rows(), hidden, args_.threads, dp + 2 * hidden,
        [&](std::int64_t row, std::int64_t j) { return gate(row, 2, j) * before(row, j); });
  }

  const RunArgs& args_;
  std::span<const TensorView> forward_;  // the inputs of Lstm
  const GradientPlan<T>& plan_;
  const RecurrentSizes& sizes_;
  const Buffers<T>& buffers_;
  std::int64_t d_;
  StepOrder order_;
  const RecurrentParams& params_;
  const std::array<CellActivation, kMostCellActivations>& functions_;
  std::int64_t columns_;           // of the gates
  T* saved_ = nullptr;             // [T, N, 5 * H], which is only read
  const T* peepholes_ = nullptr;   // [3 * H]
  const T* first_cell_ = nullptr;  // [N, H]
};

template <typename T>
void run(const RunArgs& args) {
  run_directions<GradientPlan<T>, Buffers<T>, Direction<T>>(args);
}

constexpr Kernel kLstmGrad{.name = "lstm_grad.own",
                           .prepare = prepare<float>,
                           .run = run<float>,
                           .estimate = estimate_steps_back<float, kLstmGates, kForward>};

}  // namespace

void add_lstm_grad(KernelTable& table) {
  table.add("LstmGrad", DType::kF32, kLstmGrad);
  add_upcast<kLstmGrad>(table, "LstmGrad", "lstm_grad.upcast");
  table.add("LstmGrad", DType::kF64,
            {.name = "lstm_grad.own",
             .prepare = prepare<double>,
             .run = run<double>,
             .estimate = estimate_steps_back<double, kLstmGates, kForward>});
}

}  // namespace trainscope::cpu
