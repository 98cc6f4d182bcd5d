// Five steps node by node: f64, f32, and f32 on three orders of the batch.
#include "engine/run/numerics/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/core/system/freed_memory.h"
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

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.data(), tensor.bytes()};
}

// By what other orders of the batch are compared: the first elements of a large value, as noise is
// alike all over it.
constexpr std::size_t kHeadElements = std::size_t{1} << 18;

std::size_t head_bytes(const Tensor& tensor) {
  return std::min(tensor.bytes(), kHeadElements * size_of(tensor.dtype()));
}

// The head of the tensor whose examples stand in it as `order` says.
std::vector<std::byte> reordered_head(const Tensor& tensor, const Order& order) {
  const std::size_t block = tensor.bytes() / order.size();
  std::vector<std::byte> head;
  for (std::size_t i = 0; head.size() < head_bytes(tensor); ++i) {
    const std::byte* const example = tensor.data() + static_cast<std::size_t>(order[i]) * block;
    head.insert(head.end(), example, example + std::min(block, head_bytes(tensor) - head.size()));
  }
  return head;
}

double l2_of(std::span<const std::byte> doubles) {
  double sum = 0.0;
  for (std::size_t at = 0; at < doubles.size(); at += sizeof(double)) {
    double element = 0.0;
    std::memcpy(&element, doubles.data() + at, sizeof element);
    sum += element * element;
  }
  return std::sqrt(sum);
}

// What elements should be: their sketch and norm.
struct Expected {
  profiler::Sketch sketch{};
  double l2 = 0.0;
};

// A tensor is divided by `divisor`, as that of the truth was.
double relative_error(const Expected& expected, DType dtype, std::span<const std::byte> bytes,
                      double divisor, int threads) {
  if (expected.l2 == 0.0) return 0.0;
  profiler::Sketch sketch = profiler::sketch_of(dtype, bytes, threads);
  for (double& bucket : sketch) bucket /= divisor;
  return profiler::estimated_distance(sketch, expected.sketch) / expected.l2;
}

// Fills rows: first by the truth, then by steps in f32.
class NoiseMeasurement {
 public:
  explicit NoiseMeasurement(int threads) : threads_(threads) {}

  void take_truth(const UnfusedStep& step, ValueId id, const Tensor& tensor) {
    if (!is_float(tensor.dtype())) return;
    const TracedAs& as = step.values().of(id);
    if (as.kind == profiler::TraceKind::kOwn) return;
    profiler::TraceRow row = trace_row(step.graph(), id, as);
    if (!by_key_.emplace(row.key(), rows_.size()).second) return;
    profiler::TensorSummary summary =
        profiler::summary_of(tensor.dtype(), bytes_of(tensor), threads_);
    summary.divide(step.divisor_of(as));
    row.order = static_cast<std::int64_t>(rows_.size());
    row.statistics = summary.statistics;
    row.hash = summary.hash;
    rows_.push_back({.row = std::move(row), .sketch = summary.sketch});
    heads_.push_back(head_of(tensor, step.divisor_of(as)));
  }

  // A value of the batch as it is (null) or in another order.
  void compare(const UnfusedStep& step, ValueId id, const Tensor& tensor, const Order* order) {
    const TracedAs& as = step.values().of(id);
    const auto found = by_key_.find(trace_row(step.graph(), id, as).key());
    if (found == by_key_.end()) return;
    OracleRow& row = rows_[found->second];
    const double divisor = step.divisor_of(as);
    if (order == nullptr) {
      const Expected all{.sketch = row.sketch, .l2 = row.row.statistics.l2};
      row.noise = std::max(
          row.noise, relative_error(all, tensor.dtype(), bytes_of(tensor), divisor, threads_));
      return;
    }
    const double error = error_in(*order, as, tensor, divisor, heads_[found->second]);
    if (error <= kMostNoise) row.noise = std::max(row.noise, error);
  }

  std::vector<OracleRow> rows() && { return std::move(rows_); }

 private:
  Expected head_of(const Tensor& tensor, double divisor) const {
    const std::span<const std::byte> head = bytes_of(tensor).first(head_bytes(tensor));
    Expected expected{.sketch = profiler::sketch_of(tensor.dtype(), head, threads_)};
    for (double& bucket : expected.sketch) bucket /= divisor;
    expected.l2 = tensor.dtype() == DType::kF64
                      ? l2_of(head) / divisor
                      : profiler::summary_of(tensor.dtype(), head, 1).statistics.l2 / divisor;
    return expected;
  }

  double error_in(const Order& order, const TracedAs& as, const Tensor& tensor, double divisor,
                  const Expected& head) const {
    const auto error_of = [&](std::span<const std::byte> bytes) {
      return relative_error(head, tensor.dtype(), bytes, divisor, threads_);
    };
    const bool is_act = as.kind == profiler::TraceKind::kActivation ||
                        as.kind == profiler::TraceKind::kActivationGradient;
    double error = kMostNoise + 1.0;
    if (is_act && holds_blocks(tensor.type().shape, 0, order.size())) {
      error = error_of(reordered_head(tensor, inverse(order)));
    }
    // What has no examples there, or is as long by chance: a sum over them.
    if (error <= kMostNoise) return error;
    return std::min(error, error_of(bytes_of(tensor).first(head_bytes(tensor))));
  }

  int threads_;
  std::vector<OracleRow> rows_;
  std::vector<Expected> heads_;  // of each row
  std::map<std::string, std::size_t> by_key_;
};

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
    : single_(model, options), truth_(model, in_f64(options)), threads_(options.lower.threads) {}

std::vector<OracleRow> Oracle::rows(const Tensors& batch, const BatchAxes& axes,
                                    const Tensors& others) const {
  const KeepsFreedMemory keeps_memory;  // between the values of five steps
  NoiseMeasurement noise(threads_);
  Tensors given = upcast(others);
  for (auto& [name, tensor] : upcast(batch)) given.insert_or_assign(name, tensor);
  truth_.run(given,
             [&](ValueId id, const Tensor& tensor) { noise.take_truth(truth_, id, tensor); });
  const auto compare = [&](const Order* order) {
    Tensors inputs = order == nullptr ? batch : in_order(batch, axes, *order);
    inputs.insert(others.begin(), others.end());
    single_.run(inputs, [&](ValueId id, const Tensor& tensor) {
      noise.compare(single_, id, tensor, order);
    });
  };
  compare(nullptr);
  const std::int64_t examples = examples_of(batch, axes);
  if (examples >= 2) {
    for (const Order& order : other_orders(examples)) compare(&order);
  }
  return std::move(noise).rows();
}

}  // namespace trainscope
