// Five steps node by node: f64, f32, and f32 on three orders of the batch.
#include "engine/run/numerics/oracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/core/system/freed_memory.h"
#include "engine/run/numerics/noise.h"
#include "engine/run/numerics/trace_rows.h"
#include "engine/train/first_step_noise.h"
#include "profiler/numerics/tensor_limits.h"

namespace trainscope {
namespace {

using Tensors = std::map<std::string, Tensor>;
using Order = ExampleOrder;

CompileOptions in_f64(CompileOptions options) {
  options.import.float_type = DType::kF64;
  options.training.precision = StepPrecision::kF32;
  return options;
}

// Of optimizers whose steps are as long for a small gradient as for a large one: what is added to
// the gradient's size in the first step, where the mean of squares is (1 - beta2) g^2.
std::optional<double> epsilon_of(const OptimizerOptions& optimizer) {
  const double of_mean = optimizer.epsilon / std::sqrt(1.0 - optimizer.beta2);
  switch (optimizer.kind) {
    case OptimizerKind::kLion:
      return 0.0;
    case OptimizerKind::kAdamWHuggingFace:
    case OptimizerKind::kRmsProp:
      return of_mean;
    case OptimizerKind::kAdam:
      if (optimizer.weight_decay != 0.0) return std::nullopt;  // it is of the gradient there
      [[fallthrough]];
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
      return optimizer.bias_correction ? optimizer.epsilon : of_mean;
    case OptimizerKind::kSgd:
    case OptimizerKind::kPlugin:
      return std::nullopt;
  }
  return std::nullopt;
}

int axis_of(const BatchAxes& axes, const std::string& name) {
  const auto found = axes.find(name);
  return found == axes.end() ? 0 : found->second;
}

std::int64_t examples_of(const Tensors& batch, const BatchAxes& axes) {
  for (const auto& [name, tensor] : batch) {
    const int axis = axis_of(axes, name);
    if (tensor.type().shape.rank > axis) return tensor.type().shape[axis];
  }
  return 0;
}

// Backwards, by one place, and those at even places first.
std::vector<Order> other_orders(std::int64_t examples) {
  Order backwards(static_cast<std::size_t>(examples));
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  Order next(backwards.rbegin(), backwards.rend());
  std::ranges::rotate(next, next.begin() + 1);
  Order even(backwards.rbegin(), backwards.rend());
  std::ranges::stable_partition(even, [](std::int64_t i) { return i % 2 == 0; });
  return {backwards, next, even};
}

Tensors in_order(const Tensors& batch, const BatchAxes& axes, const Order& order) {
  Tensors result;
  for (const auto& [name, tensor] : batch) {
    const int axis = axis_of(axes, name);
    const bool moves = holds_examples(tensor.shape(), axis, order.size());
    result.emplace(name, moves ? reordered(tensor, axis, order) : tensor);
  }
  return result;
}

// Of those that the graph has: no optimizer's states.
Tensors upcast(const Tensors& tensors, const Graph& graph) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) {
    if (graph.find(name) == kNoValue) continue;
    const bool is_single = tensor.dtype() == DType::kF32;
    result.emplace(name, is_single ? convert(tensor, DType::kF64) : tensor);
  }
  return result;
}

// Fills rows: first by the truth, then by steps in f32.
class NoiseMeasurement {
 public:
  NoiseMeasurement(int threads, std::optional<double> epsilon, double clip_norm)
      : threads_(threads), epsilon_(epsilon), clip_norm_(clip_norm) {}

  void take_truth(const UnfusedStep& step, ValueId id, const Tensor& tensor) {
    if (!is_float(tensor.dtype())) return;
    const TracedAs& as = step.values().of(id);
    if (as.kind == profiler::TraceKind::kOwn) return;
    profiler::TraceRow row = trace_row(step.graph(), id, as);
    if (!by_key_.emplace(row.key(), rows_.size()).second) return;
    const double divisor = step.divisor_of(as);
    profiler::TensorSummary summary =
        profiler::summary_of(tensor.dtype(), {tensor.data(), tensor.bytes()}, threads_);
    summary.divide(divisor);
    row.order = static_cast<std::int64_t>(rows_.size());
    row.statistics = summary.statistics;
    row.hash = summary.hash;
    if (as.kind == profiler::TraceKind::kGradient) {
      gradient_norm_ = std::hypot(gradient_norm_, row.statistics.l2);
    }
    noise_.emplace_back(ScaledTensor{tensor, divisor}, summary, threads_);
    rows_.push_back({.row = std::move(row), .sketch = summary.sketch});
  }

  // A value of the batch as it is (null) or in another order.
  void compare(const UnfusedStep& step, ValueId id, const Tensor& tensor, const Order* order,
               bool is_last) {
    const TracedAs& as = step.values().of(id);
    const auto found = by_key_.find(trace_row(step.graph(), id, as).key());
    if (found == by_key_.end()) return;
    TensorNoise& noise = noise_[found->second];
    const ScaledTensor rounded{tensor, step.divisor_of(as)};
    if (order == nullptr) {
      noise.measure(rounded);
    } else {
      const bool of_values = as.kind == profiler::TraceKind::kActivation ||
                             as.kind == profiler::TraceKind::kActivationGradient;
      noise.measure(rounded, *order, of_values);
    }
    if (is_last && as.kind == profiler::TraceKind::kGradient) {
      OracleRow& row = rows_[found->second];
      if (row.row.statistics.l2 > 0.0) row.step_noise = step_noise(rounded, noise.largest());
    }
  }

  std::vector<OracleRow> rows() && {
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].noise = noise_[i].largest();
    return std::move(rows_);
  }

 private:
  std::optional<double> step_noise(const ScaledTensor& gradient,
                                   std::optional<double> noise) const {
    if (!epsilon_ || !noise) return std::nullopt;
    const bool clips = clip_norm_ > 0.0 && gradient_norm_ > clip_norm_;
    const double clip = clips ? clip_norm_ / gradient_norm_ : 1.0;
    const FirstStepNoise step =
        first_step_noise(convert(gradient.tensor, DType::kF64), clip / gradient.divisor,
                         profiler::kNoiseFactor * *noise, *epsilon_);
    return step.move > 0.0 ? std::optional(step.apart / step.move) : std::nullopt;
  }

  int threads_;
  std::optional<double> epsilon_;
  double clip_norm_;
  double gradient_norm_ = 0.0;  // of all that the truth has
  std::vector<OracleRow> rows_;
  std::vector<TensorNoise> noise_;  // of each row
  std::map<std::string, std::size_t> by_key_;
};

}  // namespace

Oracle::Oracle(const OnnxModel& model, const CompileOptions& options)
    : single_(model, options),
      truth_(model, in_f64(options)),
      threads_(options.lower.threads),
      epsilon_(epsilon_of(options.training.optimizer)),
      clip_norm_(options.training.optimizer.clip_norm) {}

std::vector<OracleRow> Oracle::rows(const Tensors& batch, const BatchAxes& axes,
                                    const Tensors& others) const {
  const KeepsFreedMemory keeps_memory;  // between the values of five steps
  NoiseMeasurement noise(threads_, epsilon_, clip_norm_);
  Tensors given = upcast(others, truth_.graph());
  for (auto& [name, tensor] : upcast(batch, truth_.graph())) given.insert_or_assign(name, tensor);
  truth_.run(given,
             [&](ValueId id, const Tensor& tensor) { noise.take_truth(truth_, id, tensor); });
  const std::int64_t examples = examples_of(batch, axes);
  const std::vector<Order> orders = examples >= 2 ? other_orders(examples) : std::vector<Order>();
  const Order* const last = orders.empty() ? nullptr : &orders.back();
  const auto compare = [&](const Order* order) {
    Tensors inputs = order == nullptr ? batch : in_order(batch, axes, *order);
    inputs.insert(others.begin(), others.end());
    single_.run(inputs, [&](ValueId id, const Tensor& tensor) {
      noise.compare(single_, id, tensor, order, order == last);
    });
  };
  compare(nullptr);
  for (const Order& order : orders) compare(&order);
  return std::move(noise).rows();
}

}  // namespace trainscope
