// Five steps node by node: f64, f32, and f32 on three orders of the batch.
#include "engine/run/numerics/oracle.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/run/numerics/trace_rows.h"

namespace trainscope {
namespace {

using Tensors = std::map<std::string, Tensor>;
using Order = std::vector<std::int64_t>;

CompileOptions in_f64(CompileOptions options) {
  options.import.float_type = DType::kF64;
  options.training.precision = StepPrecision::kF32;
  return options;
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

Order inverse(const Order& order) {
  Order result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

bool holds_blocks(const Shape& shape, int axis, std::size_t examples) {
  return shape.rank > axis && shape[axis] > 0 &&
         shape[axis] % static_cast<std::int64_t>(examples) == 0;
}

Tensors in_order(const Tensors& batch, const BatchAxes& axes, const Order& order) {
  Tensors result;
  for (const auto& [name, tensor] : batch) {
    const int axis = axis_of(axes, name);
    const bool moves = holds_blocks(tensor.type().shape, axis, order.size());
    result.emplace(name, moves ? reordered(tensor, axis, order) : tensor);
  }
  return result;
}

Tensors upcast(const Tensors& tensors) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) {
    const bool is_single = tensor.dtype() == DType::kF32;
    result.emplace(name, is_single ? convert(tensor, DType::kF64) : tensor);
  }
  return result;
}

profiler::TensorSummary summary_of(const Tensor& tensor) {
  return profiler::summary_of(tensor.dtype(), {tensor.data(), tensor.bytes()});
}

// `divisor`: of the tensor's elements.
double relative_error(const Tensor& tensor, double divisor, const OracleRow& truth) {
  const double l2 = truth.row.statistics.l2;
  if (l2 == 0.0) return 0.0;
  profiler::TensorSummary summary = summary_of(tensor);
  summary.divide(divisor);
  return profiler::estimated_distance(summary.sketch, truth.sketch) / l2;
}

}  // namespace

Tensor reordered(const Tensor& tensor, int axis, const Order& order) {
  const Shape& shape = tensor.type().shape;
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  const auto examples = static_cast<std::int64_t>(order.size());
  const std::size_t block = tensor.bytes() / static_cast<std::size_t>(outer * examples);
  Tensor result(tensor.type());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < examples; ++i) {
      const auto to = static_cast<std::size_t>(o * examples + i) * block;
      const auto from =
          static_cast<std::size_t>(o * examples + order[static_cast<std::size_t>(i)]) * block;
      std::memcpy(result.data() + to, tensor.data() + from, block);
    }
  }
  return result;
}

Oracle::Oracle(const OnnxModel& model, const CompileOptions& options)
    : single_(model, options), truth_(model, in_f64(options)) {}

std::vector<OracleRow> Oracle::rows(const Tensors& batch, const BatchAxes& axes,
                                    const Tensors& others) const {
  std::vector<OracleRow> rows;
  std::map<std::string, std::size_t> by_key;
  Tensors given = upcast(others);
  for (auto& [name, tensor] : upcast(batch)) given.insert_or_assign(name, tensor);
  truth_.run(given, [&](ValueId id, const Tensor& tensor) {
    if (!is_float(tensor.dtype())) return;
    const TracedAs& as = truth_.values().of(id);
    if (as.kind == profiler::TraceKind::kOwn) return;
    profiler::TensorSummary summary = summary_of(tensor);
    summary.divide(truth_.divisor_of(as));
    profiler::TraceRow row = trace_row(truth_.graph(), id, as);
    row.order = static_cast<std::int64_t>(rows.size());
    row.statistics = summary.statistics;
    row.hash = summary.hash;
    if (by_key.emplace(row.key(), rows.size()).second) {
      rows.push_back({.row = std::move(row), .sketch = summary.sketch});
    }
  });
  const auto compare = [&](const Order* order) {
    Tensors inputs = order == nullptr ? batch : in_order(batch, axes, *order);
    inputs.insert(others.begin(), others.end());
    single_.run(inputs, [&](ValueId id, const Tensor& tensor) {
      const TracedAs& as = single_.values().of(id);
      const auto found = by_key.find(trace_row(single_.graph(), id, as).key());
      if (found == by_key.end()) return;
      OracleRow& row = rows[found->second];
      const bool is_act = as.kind == profiler::TraceKind::kActivation ||
                          as.kind == profiler::TraceKind::kActivationGradient;
      const bool moves =
          order != nullptr && is_act && holds_blocks(tensor.type().shape, 0, order->size());
      const double divisor = single_.divisor_of(as);
      double error = relative_error(tensor, divisor, row);
      // What has its examples there, or is as long by chance: a sum over them.
      if (moves) {
        const Tensor back = reordered(tensor, 0, inverse(*order));
        error = std::min(error, relative_error(back, divisor, row));
      }
      if (order == nullptr || error <= kMostNoise) row.noise = std::max(row.noise, error);
    });
  };
  compare(nullptr);
  const std::int64_t examples = examples_of(batch, axes);
  if (examples < 2) return rows;
  for (const Order& order : other_orders(examples)) compare(&order);
  return rows;
}

}  // namespace trainscope
