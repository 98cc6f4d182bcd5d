// GruGrad: back through the steps, each the gates' gradients and GEMMs with the recurrence, then
// GEMMs over all steps for dW, dR and dX.
#include "kernels/cpu/recurrent/cell_activation.h"
#include "kernels/cpu/recurrent/gru.h"
#include "kernels/cpu/recurrent/recurrent_grad.h"
#include "kernels/cpu/recurrent/recurrent_work.h"
#include "kernels/cpu/support/upcast.h"

namespace trainscope::cpu {
namespace {

enum Input : std::size_t { kDY, kDLastHidden, kY, kSaved, kForward };

template <typename T>
struct Plan {
  RecurrentSizes sizes;
  std::int64_t blocks = 0;
  GemmPlan<T> steps;    // dX
  GemmPlan<T> weights;  // dW
  GemmPlan<T> gates;    // dR of z and r
  GemmPlan<T> product;  // dR of g

  std::size_t workspace_bytes() const {
    return std::max({steps.workspace_bytes(), weights.workspace_bytes(), gates.workspace_bytes(),
                     product.workspace_bytes()});
  }
};

template <typename T>
Plan<T> plan_of(const PrepareArgs& args) {
  const RecurrentSizes s = recurrent_sizes(args.inputs.subspan(kForward));
  const std::int64_t columns = kGruGates * s.hidden;
  const int threads = args.threads;
  return {.sizes = s,
          .blocks = gru_blocks(recurrent_params(args.params)),
          .steps = plan_of_all_steps<T>(s.rows(), s.width, columns, threads),
          .weights = plan_of_all_steps<T>(columns, s.width, s.rows(), threads),
          .gates = plan_of_all_steps<T>(2 * s.hidden, s.hidden, s.rows(), threads),
          .product = plan_of_all_steps<T>(s.hidden, s.hidden, s.rows(), threads)};
}

// What a direction needs beside the operands.
template <typename T>
struct Buffers {
  T* gates;                  // [T, N, blocks * H], gradients of what the gates are given
  T* hidden;                 // [N, H], gradient of the state before a step
  T* scaled;                 // [N, H], gradient of the state that the reset gate has scaled
  T* states_before;          // [T, N, H], then these scaled
  StepPanels<T> of_gates;    // R of z and r
  StepPanels<T> of_product;  // R of g
  std::byte* gemm;

  Buffers(const Plan<T>& plan, RecurrentWorkspace& workspace) {
    const RecurrentSizes& s = plan.sizes;
    gates = workspace.take<T>((s.rows() + whole_tile_rows<T>(1)) * plan.blocks * s.hidden);
    hidden = workspace.take<T>(s.states());
    scaled = workspace.take<T>(s.states());
    states_before = workspace.take<T>(s.rows() * s.hidden);
    of_gates = StepPanels<T>(2 * s.hidden, s.hidden, workspace);
    of_product = StepPanels<T>(s.hidden, s.hidden, workspace);
    gemm = workspace.take<std::byte>(static_cast<std::int64_t>(plan.workspace_bytes()));
  }
};

template <typename T>
Prepared prepare(const PrepareArgs& args) {
  return prepared<Buffers<T>>(plan_of<T>(args));
}

// One direction of a call.
template <typename T>
class Direction {
 public:
  Direction(const RunArgs& args, const Plan<T>& plan, const Buffers<T>& buffers, std::int64_t d)
      : args_(args),
        forward_(args.inputs.subspan(kForward)),
        plan_(plan),
        sizes_(plan.sizes),
        buffers_(buffers),
        d_(d),
        order_(step_order(args.params, forward_, d)),
        params_(recurrent_params(args.params)),
        functions_(params_.activations[static_cast<std::size_t>(d)]),
        gate_row_(plan.blocks * sizes_.hidden),
        columns_(kGruGates * sizes_.hidden) {
    saved_ = args.inputs[kSaved].as<T>() + d * sizes_.rows() * gate_row_;
    if (const T* h = optional_data<const T>(forward_, kFirstHidden)) {
      first_hidden_ = h + d * sizes_.states();
    }
  }

  void run() {
    go_back();
    if (T* to = optional_data<T>(args_.outputs, kDFirstHidden)) {
      std::copy_n(buffers_.hidden, sizes_.states(), to + d_ * sizes_.states());
    }
    finish_inputs();
    if (T* dr = optional_data<T>(args_.outputs, kDRecurrence)) {
      finish_recurrence(dr + d_ * columns_ * sizes_.hidden);
    }
    if (T* db = optional_data<T>(args_.outputs, kDBias)) finish_bias(db + d_ * 2 * columns_);
  }

 private:
  const T* weights(RecurrentInput input, std::int64_t width) const {
    return forward_[input].template as<const T>() + d_ * columns_ * width;
  }
  T* step_gates(std::int64_t t) const { return buffers_.gates + t * sizes_.batch * gate_row_; }
  // Of which the product's weights are multiplied: g itself, or the product that r scales.
  std::int64_t product_column() const {
    return (params_.linear_before_reset ? 3 : 2) * sizes_.hidden;
  }
  GateColumns<T> columns(std::int64_t first, std::int64_t count) const {
    return {.first = buffers_.gates + first, .row = gate_row_, .count = count};
  }

  void go_back() {
    begin_gradient(optional_data<const T>(args_.inputs, kDLastHidden), sizes_, d_, buffers_.hidden);
    const std::int64_t hidden = sizes_.hidden;
    const T* r = weights(kRecurrence, hidden);
    buffers_.of_gates.pack({r, 1, hidden}, args_.threads);
    buffers_.of_product.pack({r + 2 * hidden * hidden, 1, hidden}, args_.threads);
    const CellDivision<T> division(sizes_, kGruGates, args_.threads);
    for (std::int64_t k = sizes_.time; k-- > 0;) {
      product_then_rows(
          division, order_, sizes_.batch, args_.threads,
          [&](const CellRange& range) {
            if (k + 1 < sizes_.time) add_step_gates(order_.at(k + 1), range);
          },
          [&](const CellRange& range) {
            clear_ended_rows(order_.at(k), range);
            for_each_row(k, range, &Direction::compute_row);
          });
      if (params_.linear_before_reset) continue;
      for_each_range(division, args_.threads, [&](const CellRange& range) {
        scale_back(order_.at(k), range);
        for_each_row(k, range, &Direction::compute_reset_row);
      });
    }
    if (sizes_.time == 0) return;
    for_each_range(division, args_.threads,
                   [&](const CellRange& range) { add_step_gates(order_.at(0), range); });
  }

  // The state's gradient through z and r of the step at time t, and through a product that r scales
  // afterwards.
  void add_step_gates(std::int64_t t, const CellRange& range) const {
    T* to = buffers_.hidden;
    buffers_.of_gates.add_product(step_gates(t), gate_row_, to, sizes_.hidden, range);
    if (!params_.linear_before_reset) return;
    buffers_.of_product.add_product(step_gates(t) + product_column(), gate_row_, to, sizes_.hidden,
                                    range);
  }

  // The gradient of the state that r has scaled.
  void scale_back(std::int64_t t, const CellRange& range) const {
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      std::fill_n(buffers_.scaled + n * sizes_.hidden + range.unit_begin, range.units(), T{0});
    }
    buffers_.of_product.add_product(step_gates(t) + product_column(), gate_row_, buffers_.scaled,
                                    sizes_.hidden, range);
  }

  struct Row {
    GruRow<T> y;      // saved
    GruRow<T> dx;     // gradients of what the gates are given
    const T* before;  // the state; null: zeros
    T* dhidden;       // the state's gradient
    const T* dy;      // null: none
    const T* dscaled;
    std::int64_t units;
  };
  template <class Method>
  void for_each_row(std::int64_t k, const CellRange& range, Method method) const {
    const std::int64_t t = order_.at(k);
    const std::int64_t hidden = sizes_.hidden;
    const T* dy = optional_data<const T>(args_.inputs, kDY);
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      const std::int64_t at = n * hidden + range.unit_begin;
      const std::int64_t of_gates = n * gate_row_ + range.unit_begin;
      const Row row{
          .y = {saved_ + t * sizes_.batch * gate_row_ + of_gates, hidden},
          .dx = {step_gates(t) + of_gates, hidden},
          .before = state_before(k, n, range.unit_begin),
          .dhidden = buffers_.hidden + at,
          .dy = dy == nullptr ? nullptr : dy + (t * sizes_.directions + d_) * sizes_.states() + at,
          .dscaled = buffers_.scaled + at,
          .units = range.units()};
      if (order_.counts(t, n)) (this->*method)(row);
    }
  }

  // A step behind the end of a sequence gives its gates no gradient.
  void clear_ended_rows(std::int64_t t, const CellRange& range) const {
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      if (order_.counts(t, n)) continue;
      T* gates = step_gates(t) + n * gate_row_ + range.unit_begin;
      for (std::int64_t block = 0; block < plan_.blocks; ++block) {
        std::fill_n(gates + block * sizes_.hidden, range.units(), T{0});
      }
    }
  }

  const T* state_before(std::int64_t k, std::int64_t n, std::int64_t unit) const {
    const std::int64_t at = n * sizes_.hidden + unit;
    if (!order_.has_before(k, n)) return first_hidden_ == nullptr ? nullptr : first_hidden_ + at;
    const T* y = args_.inputs[kY].template as<const T>();
    return y + (order_.at(k - 1) * sizes_.directions + d_) * sizes_.states() + at;
  }

  // z and g; with the product kept r too. The state's gradient becomes that through z alone.
  void compute_row(const Row& row) const {
    const auto& [y, dx, before, dhidden, dy, dscaled, units] = row;
    for (std::int64_t j = 0; j < units; ++j) {
      const T dh = dhidden[j] + (dy == nullptr ? T{0} : dy[j]);
      const T h = before == nullptr ? T{0} : before[j];
      dx.z[j] = dh * (h - y.g[j]);
      dx.g[j] = dh * (T{1} - y.z[j]);
      dhidden[j] = dh * y.z[j];
    }
    derive(functions_[0], params_.clip, static_cast<const T*>(y.z), dx.z, units);
    derive(functions_[1], params_.clip, static_cast<const T*>(y.g), dx.g, units);
    if (!params_.linear_before_reset) {
      std::fill_n(dx.r, units, T{0});
      return;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < units; ++j) {
      dx.product[j] = dx.g[j] * y.r[j];
      dx.r[j] = dx.g[j] * y.product[j];
    }
    derive(functions_[0], params_.clip, static_cast<const T*>(y.r), dx.r, units);
  }

  // r, from the gradient of the state that it has scaled, which goes on to the state itself.
  void compute_reset_row(const Row& row) const {
    const auto& [y, dx, before, dhidden, dy, dscaled, units] = row;
    for (std::int64_t j = 0; j < units; ++j) {
      dx.r[j] = dscaled[j] * (before == nullptr ? T{0} : before[j]);
      dhidden[j] += dscaled[j] * y.r[j];
    }
    derive(functions_[0], params_.clip, static_cast<const T*>(y.r), dx.r, units);
  }

  void finish_inputs() const {
    const GateColumns<T> gates = columns(0, columns_);
    run_one_gemm(plan_.steps,
                 inputs_gradient(gates, weights(kInputWeights, sizes_.width), sizes_.width,
                                 args_.outputs[kDSteps].template as<T>(), d_ > 0),
                 buffers_.gemm, args_.threads);
    T* dw = optional_data<T>(args_.outputs, kDInputWeights);
    if (dw == nullptr) return;
    run_one_gemm(plan_.weights,
                 weights_gradient(gates, forward_[kSteps].template as<const T>(), sizes_.width,
                                  dw + d_ * columns_ * sizes_.width),
                 buffers_.gemm, args_.threads);
  }

  void finish_recurrence(T* dr) const {
    const std::int64_t hidden = sizes_.hidden;
    T* states = buffers_.states_before;
    gather_states_before(order_, sizes_, d_, args_.inputs[kY].template as<const T>(),
                         optional_data<const T>(forward_, kFirstHidden), args_.threads, states);
    run_one_gemm(
        plan_.gates,
        weights_gradient(columns(0, 2 * hidden), static_cast<const T*>(states), hidden, dr),
        buffers_.gemm, args_.threads);
    if (!params_.linear_before_reset) scale_states(states);
    run_one_gemm(plan_.product,
                 weights_gradient(columns(product_column(), hidden), static_cast<const T*>(states),
                                  hidden, dr + 2 * hidden * hidden),
                 buffers_.gemm, args_.threads);
  }

  // States before all steps become what the reset gates made of them.
  void scale_states(T* states) const {
    const std::int64_t hidden = sizes_.hidden;
    parallel_for(args_.threads, sizes_.rows(), row_grain(hidden),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const T* reset = saved_ + row * gate_row_ + hidden;
                     T* state = states + row * hidden;
#pragma omp simd
                     for (std::int64_t j = 0; j < hidden; ++j) state[j] *= reset[j];
                   }
                 });
  }

  // db [6 * H]: of W, then of R.
  void finish_bias(T* db) const {
    const std::int64_t hidden = sizes_.hidden;
    sum_gates(columns(0, columns_), sizes_.rows(), args_.threads, db);
    std::copy_n(db, 2 * hidden, db + columns_);
    sum_gates(columns(product_column(), hidden), sizes_.rows(), args_.threads,
              db + columns_ + 2 * hidden);
  }

  const RunArgs& args_;
  std::span<const TensorView> forward_;  // the inputs of Gru
  const Plan<T>& plan_;
  const RecurrentSizes& sizes_;
  const Buffers<T>& buffers_;
  std::int64_t d_;
  StepOrder order_;
  const RecurrentParams& params_;
  const std::array<CellActivation, kMostCellActivations>& functions_;
  std::int64_t gate_row_;
  std::int64_t columns_;             // of z, r and g
  T* saved_ = nullptr;               // [T, N, blocks * H], which is only read
  const T* first_hidden_ = nullptr;  // [N, H]
};

template <typename T>
void run(const RunArgs& args) {
  run_directions<Plan<T>, Buffers<T>, Direction<T>>(args);
}

constexpr Kernel kGruGrad{.name = "gru_grad.own",
                          .prepare = prepare<float>,
                          .run = run<float>,
                          .estimate = estimate_steps_back<float, kGruGates, kForward>};

}  // namespace

void add_gru_grad(KernelTable& table) {
  table.add("GruGrad", DType::kF32, kGruGrad);
  add_upcast<kGruGrad>(table, "GruGrad", "gru_grad.upcast");
  table.add("GruGrad", DType::kF64,
            {.name = "gru_grad.own",
             .prepare = prepare<double>,
             .run = run<double>,
             .estimate = estimate_steps_back<double, kGruGates, kForward>});
}

}  // namespace trainscope::cpu
