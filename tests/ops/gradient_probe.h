// Gradients of an op's examples against f64 central differences of sum(cotangent * y).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "kernels/api/random.h"
#include "tests/ops/backward.h"
#include "tests/support/op_case.h"

namespace trainscope::test {

inline constexpr double kStep = 1e-4;  // of the differences
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::size_t kElements = 2;  // that another one is probed touches no other memory
#else
inline constexpr std::size_t kElements = 24;  // probed one by one, per input
#endif
inline constexpr std::uint64_t kCotangentStream = 1000;
inline constexpr std::uint64_t kDirectionStream = 2000;

using Tensors = std::vector<Tensor>;

struct Tables {
  OpTable ops = standard_ops();
  Evaluate evaluate = evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
};

inline double dot(const Tensor& a, const Tensor& b) {
  const std::span<const double> x = a.values<double>();
  const std::span<const double> y = b.values<double>();
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}
inline double norm(const Tensor& a) { return std::sqrt(dot(a, a)); }

inline bool finite(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
    if (!is_float(tensor.dtype())) return true;
    const Tensor numbers = convert(tensor, DType::kF64);
    const auto values = numbers.values<double>();
    return std::none_of(values.begin(), values.end(), [](double v) { return std::isnan(v); });
  });
}

// One example: its function, its cotangents, its gradient graph.
class Probe {
 public:
  Probe(const Tables& tables, const OpCase& op_case) : tables_(tables), case_(op_case) {
    for (std::size_t k = 0; k < op_case.outputs().size(); ++k) {
      const TensorType& type = op_case.outputs()[k];
      cotangents_.push_back(
          random_tensor({.dtype = DType::kF64, .shape = type.shape}, kSeed, kCotangentStream + k));
    }
  }

  // Inputs that a gradient can flow to.
  std::vector<bool> differentiable_inputs() const {
    std::vector<bool> wanted;
    for (std::size_t i = 0; i < case_.inputs().size(); ++i) {
      wanted.push_back(case_.has(i) && !case_.known(i) && case_.inputs()[i].dtype() == DType::kF64);
    }
    return wanted;
  }

  // Gradients of the cotangent sum over `outputs` by each wanted input; nothing for an input that
  // no gradient flows to. Throws when the rule refuses one of the outputs.
  std::vector<std::optional<Tensor>> analytic(const std::vector<bool>& outputs,
                                              const std::vector<bool>& wanted) const {
    Graph graph;
    Builder b(graph, tables_.ops);
    b.set_provenance({.sources = {}, .pass = "test"});
    b.set_evaluate(&tables_.evaluate);
    std::map<std::string, Tensor> data;
    const NodeId node = add_node(b, data);
    std::vector<ValueId> dy;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      dy.push_back(kNoValue);
      if (!outputs[k]) continue;
      const std::string name = fmt::format("dy{}", k);
      dy[k] = b.input(name, cotangents_[k].type());
      data.emplace(name, cotangents_[k]);
    }
    const std::vector<ValueId> dx = backward(b, node, dy, wanted);
    const ReferenceValues values = reference_run(graph, data, tables_.evaluate);
    std::vector<std::optional<Tensor>> gradients;
    for (ValueId v : dx) {
      gradients.push_back(v == kNoValue ? std::nullopt : std::optional(values.at(v)));
    }
    return gradients;
  }

  // Float outputs for which the rule gives gradients; it must refuse the others by an error.
  std::vector<bool> differentiable_outputs(const std::vector<bool>& wanted) const {
    std::vector<bool> possible;
    for (std::size_t k = 0; k < case_.outputs().size(); ++k) {
      possible.push_back(false);
      if (case_.outputs()[k].dtype != DType::kF64) continue;
      std::vector<bool> only(case_.outputs().size(), false);
      only[k] = true;
      try {
        analytic(only, wanted);
        possible[k] = true;
      } catch (const Error&) {
        if (k == 0) throw;
      }
    }
    return possible;
  }

  // d/dt of the cotangent sum at x_input + t * direction, from four values of the function. The
  // outputs are subtracted one by one: their sum has fewer digits.
  double numeric(const std::vector<bool>& outputs, std::size_t input,
                 const Tensor& direction) const {
    const Tensors near[2] = {shifted(input, direction, kStep), shifted(input, direction, -kStep)};
    const Tensors far[2] = {shifted(input, direction, 2 * kStep),
                            shifted(input, direction, -2 * kStep)};
    double sum = 0.0;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k]) continue;
      const auto of = [k](const Tensors& y) { return y[k].values<double>(); };
      const std::span<const double> dy = of(cotangents_);
      const std::span<const double> y[4] = {of(near[0]), of(near[1]), of(far[0]), of(far[1])};
      for (std::size_t i = 0; i < dy.size(); ++i) {
        const double difference = 8.0 * (y[0][i] - y[1][i]) - (y[2][i] - y[3][i]);
        sum += dy[i] * difference / (12.0 * kStep);
      }
    }
    return sum;
  }

  Tensors values(const Tensors& inputs) const {
    std::vector<const Tensor*> pointers;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      pointers.push_back(case_.has(i) ? &inputs[i] : nullptr);
    }
    return tables_.evaluate(case_.row(), case_.example().attributes, pointers, case_.outputs());
  }

 private:
  NodeId add_node(Builder& b, std::map<std::string, Tensor>& data) const {
    Builder::Spec spec;
    spec.op = &case_.row();
    spec.name = "node";
    spec.attributes = case_.example().attributes;
    spec.provenance = b.provenance();
    for (std::size_t i = 0; i < case_.inputs().size(); ++i) {
      const Tensor& tensor = case_.inputs()[i];
      const std::string name = fmt::format("x{}", i);
      if (!case_.has(i)) {
        spec.inputs.push_back(kNoValue);
      } else if (case_.known(i)) {
        spec.inputs.push_back(b.constant(tensor, name));
      } else {
        spec.inputs.push_back(b.input(name, tensor.type()));
        data.emplace(name, tensor);
      }
    }
    for (std::size_t k = 0; k < case_.outputs().size(); ++k) {
      spec.output_names.push_back(fmt::format("y{}", k));
    }
    return b.add(std::move(spec));
  }

  Tensors shifted(std::size_t input, const Tensor& direction, double by) const {
    Tensors inputs = case_.inputs();
    const std::span<double> x = inputs[input].values<double>();
    const std::span<const double> d = direction.values<double>();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += by * d[i];
    return values(inputs);
  }

  const Tables& tables_;
  const OpCase& case_;
  Tensors cotangents_;
};

struct Errors {
  double direction = 0.0;  // all elements at once
  double elements = 0.0;   // some elements one by one
};

inline Tensor signs(const TensorType& type, std::size_t input) {
  Tensor direction(type);
  std::uint64_t i = 0;
  for (double& d : direction.values<double>()) {
    d = random_below(kSeed, kDirectionStream + input, i++, 2) == 0 ? -1.0 : 1.0;
  }
  return direction;
}

// The analytic gradient against differences: along one direction of all signs, and by elements
// spread over the tensor.
inline Errors compare(const Probe& probe, const std::vector<bool>& outputs, std::size_t input,
                      const Tensor& gradient) {
  Errors errors;
  const std::size_t n = gradient.values<double>().size();
  if (n == 0) return errors;
  const double size = std::max(norm(gradient), 1e-3);
  const Tensor all = signs(gradient.type(), input);
  errors.direction = std::abs(probe.numeric(outputs, input, all) - dot(all, gradient)) / size;
  double difference = 0.0;
  double selected = 0.0;
  const std::size_t count = std::min(n, kElements);
  for (std::size_t e = 0; e < count; ++e) {
    const std::size_t at = e * n / count;
    Tensor one(gradient.type());
    one.values<double>()[at] = 1.0;
    const double exact = gradient.values<double>()[at];
    const double error = probe.numeric(outputs, input, one) - exact;
    difference += error * error;
    selected += exact * exact;
  }
  // The elements' share of the whole gradient, in case those chosen have none.
  const double share = size * std::sqrt(static_cast<double>(count) / static_cast<double>(n));
  errors.elements = std::sqrt(difference) / std::max(std::sqrt(selected), 0.1 * share);
  return errors;
}

}  // namespace trainscope::test
