// Errors beside f64, and what the reference kernel's own error allows.
#include "engine/bisect/call_judge.h"

#include <algorithm>
#include <cmath>

#include "engine/bisect/limits.h"
#include "engine/bisect/node_alone.h"
#include "engine/bisect/observed.h"
#include "engine/core/error.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

constexpr double kKernelFactor = 16.0;
constexpr double kInexactNoise = 2e-6;

Coordinates numbers_of(const Tensor& tensor) {
  const Tensor wide = convert(tensor, DType::kF64);
  return {wide.values<double>().begin(), wide.values<double>().end()};
}

// Infinite where one alone is no number.
double distance_of_all(const Coordinates& x, const Coordinates& y) {
  double squares = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    if (!same) squares += (x[i] - y[i]) * (x[i] - y[i]);
  }
  return std::isnan(squares) ? HUGE_VAL : std::sqrt(squares);
}

}  // namespace

JudgedResult judged_result(const Tensor& chosen, const Tensor& plain, const Tensor* exact) {
  const Coordinates got = numbers_of(chosen);
  const Coordinates by_reference = numbers_of(plain);
  const Coordinates truth = exact == nullptr ? by_reference : numbers_of(*exact);
  const double norm = std::max(norm_of(finite_elements(exact == nullptr ? plain : *exact)), 1e-300);
  // What overflows in f32 alone does so for both.
  const bool plain_is_finite = std::isfinite(distance_of_all(by_reference, truth));
  const double noise = exact == nullptr || !plain_is_finite
                           ? kInexactNoise
                           : distance_of_all(by_reference, truth) / norm;
  return {.error = distance_of_all(got, plain_is_finite ? truth : by_reference) / norm,
          .limit = is_float(plain.dtype())
                       ? kKernelFactor * std::max(noise, rounding_of(plain.dtype()))
                       : 0.0};
}

std::vector<Tensor> exact_results(const Node& node, const std::vector<const Tensor*>& inputs,
                                  const Evaluate& reference) {
  std::vector<Tensor> wide;
  std::vector<const Tensor*> wide_inputs;
  wide.reserve(inputs.size());
  for (const Tensor* input : inputs) {
    wide_inputs.push_back(nullptr);
    if (input == nullptr) continue;
    wide.push_back(is_float(input->dtype()) ? convert(*input, DType::kF64) : *input);
    wide_inputs.back() = &wide.back();
  }
  try {
    return computed_alone(*node.op, node, wide_inputs, reference);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace trainscope
