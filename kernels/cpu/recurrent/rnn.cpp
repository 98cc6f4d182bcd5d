// Rnn and its gradient: one GEMM of the inputs of all steps, then step by step a GEMM of the hidden
// state and the function, fused; the same way back. The states of all steps, Y, are all that the
// gradient needs.
#include "kernels/cpu/recurrent/cell_activation.h"
#include "kernels/cpu/recurrent/recurrent_grad.h"
#include "kernels/cpu/recurrent/recurrent_work.h"

namespace trainscope::cpu {
namespace {

enum GradientInput : std::size_t { kDY, kDLastHidden, kY, kForward };

// --- Rnn -----------------------------------------------------------------------------------------

template <typename T>
struct Plan {
  RecurrentSizes sizes;
  GemmPlan<T> of_inputs;
};

// What a direction needs beside the operands.
template <typename T>
struct Buffers {
  T* bias;       // [H], of W and of R
  T* hidden[2];  // [N, H], before and after a step
  T* given;      // [T, N, H], what the function is given
  StepPanels<T> recurrence;
  std::byte* gemm;

  Buffers(const Plan<T>& plan, RecurrentWorkspace& workspace) {
    const RecurrentSizes& sizes = plan.sizes;
    bias = workspace.take<T>(sizes.hidden);
    for (T*& state : hidden) state = workspace.take<T>(padded_states<T>(sizes));
    given = workspace.take<T>(sizes.rows() * sizes.hidden);
    recurrence = StepPanels<T>(sizes.hidden, sizes.hidden, workspace);
    gemm = workspace.take<std::byte>(static_cast<std::int64_t>(plan.of_inputs.workspace_bytes()));
  }
};

template <typename T>
Prepared prepare(const PrepareArgs& args) {
  const RecurrentSizes s = recurrent_sizes(args.inputs);
  return prepared<Buffers<T>>(Plan<T>{
      .sizes = s, .of_inputs = plan_of_all_steps<T>(s.rows(), s.hidden, s.width, args.threads)});
}

// Everything before the first step of direction d.
template <typename T>
void start(const RunArgs& args, const Plan<T>& plan, const Buffers<T>& buffers, std::int64_t d) {
  const RecurrentSizes& sizes = plan.sizes;
  const std::int64_t hidden = sizes.hidden;
  const T* b = optional_data<const T>(args.inputs, kBias);
  for (std::int64_t j = 0; j < hidden; ++j) {
    const T* own = b == nullptr ? nullptr : b + d * 2 * hidden + j;
    buffers.bias[j] = own == nullptr ? T{0} : own[0] + own[hidden];
  }
  const T* w = args.inputs[kInputWeights].as<const T>() + d * hidden * sizes.width;
  run_one_gemm(plan.of_inputs,
               gates_of_inputs(args.inputs[kSteps].as<const T>(), w,
                               static_cast<const T*>(buffers.bias), sizes, buffers.given, hidden),
               buffers.gemm, args.threads);
  const T* r = args.inputs[kRecurrence].as<const T>() + d * hidden * hidden;
  buffers.recurrence.pack(recurrence_of_gate(r, sizes, 0), args.threads);
  for (T* state : buffers.hidden) std::fill_n(state, padded_states<T>(sizes), T{0});
  if (const T* first = optional_data<const T>(args.inputs, kFirstHidden)) {
    std::copy_n(first + d * sizes.states(), sizes.states(), buffers.hidden[0]);
  }
}

template <typename T>
void run_direction(const RunArgs& args, const Plan<T>& plan, const Buffers<T>& buffers,
                   std::int64_t d) {
  start(args, plan, buffers, d);
  const RecurrentSizes& sizes = plan.sizes;
  const StepOrder order = step_order(args.params, args.inputs, d);
  const RecurrentParams& params = recurrent_params(args.params);
  const CellActivation& function = params.activations[static_cast<std::size_t>(d)][0];
  const CellDivision<T> division(sizes, 1, args.threads);
  for (std::int64_t k = 0; k < sizes.time; ++k) {
    const std::int64_t t = order.at(k);
    const T* before = buffers.hidden[k % 2];
    T* after = buffers.hidden[(k + 1) % 2];
    T* given = buffers.given + t * sizes.states();
    T* y = args.outputs[0].as<T>() + (t * sizes.directions + d) * sizes.states();
    for_each_range(division, args.threads, [&](const CellRange& range) {
      buffers.recurrence.add_product(before, sizes.hidden, given, sizes.hidden, range);
      for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
        const std::int64_t at = n * sizes.hidden + range.unit_begin;
        const bool counts = order.counts(t, n);
        if (counts) activate(function, params.clip, given + at, range.units());
        std::copy_n((counts ? given : before) + at, range.units(), after + at);
        if (counts) {
          std::copy_n(given + at, range.units(), y + at);
        } else {
          std::fill_n(y + at, range.units(), T{0});
        }
      }
    });
  }
  if (T* last = optional_data<T>(args.outputs, 1)) {
    std::copy_n(buffers.hidden[sizes.time % 2], sizes.states(), last + d * sizes.states());
  }
}

template <typename T>
void run(const RunArgs& args) {
  const auto& plan = *static_cast<const Plan<T>*>(args.state);
  check_lengths(args, args.inputs);
  RecurrentWorkspace workspace(args.workspace);
  const Buffers<T> buffers(plan, workspace);
  for (std::int64_t d = 0; d < plan.sizes.directions; ++d) run_direction(args, plan, buffers, d);
}

// --- RnnGrad -------------------------------------------------------------------------------------

template <typename T>
struct GradientBuffers {
  T* given;          // [T, N, H], gradients of what the function is given
  T* hidden;         // [N, H], gradient of the state before a step
  T* states_before;  // [T, N, H]
  StepPanels<T> recurrence;
  std::byte* gemm;

  GradientBuffers(const GradientPlan<T>& plan, RecurrentWorkspace& workspace) {
    const RecurrentSizes& s = plan.sizes;
    given = workspace.take<T>((s.rows() + whole_tile_rows<T>(1)) * s.hidden);
    hidden = workspace.take<T>(s.states());
    states_before = workspace.take<T>(s.rows() * s.hidden);
    recurrence = StepPanels<T>(s.hidden, s.hidden, workspace);
    gemm = workspace.take<std::byte>(static_cast<std::int64_t>(plan.workspace_bytes()));
  }
};

template <typename T>
Prepared prepare_gradient(const PrepareArgs& args) {
  const RecurrentSizes sizes = recurrent_sizes(args.inputs.subspan(kForward));
  return prepared<GradientBuffers<T>>(GradientPlan<T>(sizes, sizes.hidden, args.threads));
}

// One direction of a call.
template <typename T>
class Backward {
 public:
  Backward(const RunArgs& args, const GradientPlan<T>& plan, const GradientBuffers<T>& buffers,
           std::int64_t d)
      : args_(args),
        forward_(args.inputs.subspan(kForward)),
        plan_(plan),
        sizes_(plan_.sizes),
        buffers_(buffers),
        d_(d),
        order_(step_order(args.params, forward_, d)) {}

  void run() {
    begin_gradient(optional_data<const T>(args_.inputs, kDLastHidden), sizes_, d_, buffers_.hidden);
    const T* r = forward_[kRecurrence].template as<const T>() + d_ * sizes_.hidden * sizes_.hidden;
    buffers_.recurrence.pack({r, 1, sizes_.hidden}, args_.threads);
    const CellDivision<T> division(sizes_, 1, args_.threads);
    for (std::int64_t k = sizes_.time; k-- > 0;) {
      product_then_rows(
          division, order_, sizes_.batch, args_.threads,
          [&](const CellRange& range) {
            if (k + 1 < sizes_.time) add_step(order_.at(k + 1), range);
          },
          [&](const CellRange& range) { compute_rows(k, range); });
    }
    if (sizes_.time > 0) {
      for_each_range(division, args_.threads,
                     [&](const CellRange& range) { add_step(order_.at(0), range); });
    }
    finish();
  }

 private:
  // The state's gradient through the step at time t.
  void add_step(std::int64_t t, const CellRange& range) const {
    buffers_.recurrence.add_product(buffers_.given + t * sizes_.states(), sizes_.hidden,
                                    buffers_.hidden, sizes_.hidden, range);
  }

  void compute_rows(std::int64_t k, const CellRange& range) const {
    const RecurrentParams& params = recurrent_params(args_.params);
    const CellActivation& function = params.activations[static_cast<std::size_t>(d_)][0];
    const std::int64_t t = order_.at(k);
    const std::int64_t of_step = (t * sizes_.directions + d_) * sizes_.states();
    const T* dy = optional_data<const T>(args_.inputs, kDY);
    for (std::int64_t n = range.row_begin; n < range.row_end; ++n) {
      const std::int64_t at = n * sizes_.hidden + range.unit_begin;
      T* to = buffers_.given + t * sizes_.states() + at;
      if (!order_.counts(t, n)) {
        std::fill_n(to, range.units(), T{0});
        continue;
      }
      add_gradient_of_y(static_cast<const T*>(buffers_.hidden + at),
                        dy == nullptr ? nullptr : dy + of_step + at, range.units(), to);
      derive(function, params.clip, args_.inputs[kY].template as<const T>() + of_step + at, to,
             range.units());
      std::fill_n(buffers_.hidden + at, range.units(), T{0});
    }
  }

  void finish() const {
    const std::int64_t hidden = sizes_.hidden;
    const int threads = args_.threads;
    const GateColumns<T> given{.first = buffers_.given, .row = hidden, .count = hidden};
    const T* w = forward_[kInputWeights].template as<const T>() + d_ * hidden * sizes_.width;
    run_one_gemm(
        plan_.steps,
        inputs_gradient(given, w, sizes_.width, args_.outputs[kDSteps].template as<T>(), d_ > 0),
        buffers_.gemm, threads);
    if (T* dw = optional_data<T>(args_.outputs, kDInputWeights)) {
      run_one_gemm(plan_.weights,
                   weights_gradient(given, forward_[kSteps].template as<const T>(), sizes_.width,
                                    dw + d_ * hidden * sizes_.width),
                   buffers_.gemm, threads);
    }
    const T* first = optional_data<const T>(forward_, kFirstHidden);
    if (T* dr = optional_data<T>(args_.outputs, kDRecurrence)) {
      gather_states_before(order_, sizes_, d_, args_.inputs[kY].template as<const T>(), first,
                           threads, buffers_.states_before);
      run_one_gemm(plan_.recurrence,
                   weights_gradient(given, static_cast<const T*>(buffers_.states_before), hidden,
                                    dr + d_ * hidden * hidden),
                   buffers_.gemm, threads);
    }
    if (T* db = optional_data<T>(args_.outputs, kDBias)) {
      T* own = db + d_ * 2 * hidden;
      sum_gates(given, sizes_.rows(), threads, own);
      std::copy_n(own, hidden, own + hidden);
    }
    if (T* dh = optional_data<T>(args_.outputs, kDFirstHidden)) {
      std::copy_n(buffers_.hidden, sizes_.states(), dh + d_ * sizes_.states());
    }
  }

  const RunArgs& args_;
  std::span<const TensorView> forward_;  // the inputs of Rnn
  const GradientPlan<T>& plan_;
  const RecurrentSizes& sizes_;
  const GradientBuffers<T>& buffers_;
  std::int64_t d_;
  StepOrder order_;
};

template <typename T>
void run_gradient(const RunArgs& args) {
  run_directions<GradientPlan<T>, GradientBuffers<T>, Backward<T>>(args);
}

template <typename T>
void add_for(KernelTable& table) {
  table.add(
      "Rnn", kDTypeOf<T>,
      {.name = "rnn.own", .prepare = prepare<T>, .run = run<T>, .estimate = estimate_steps<T, 1>});
  table.add("RnnGrad", kDTypeOf<T>,
            {.name = "rnn_grad.own",
             .prepare = prepare_gradient<T>,
             .run = run_gradient<T>,
             .estimate = estimate_steps_back<T, 1, kForward>});
}

}  // namespace

void add_rnn(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
