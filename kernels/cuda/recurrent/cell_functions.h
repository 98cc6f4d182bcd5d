// The functions of recurrent cells on the device, and their derivatives by their own results: no
// argument of theirs has to be kept.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/api/params.h"
#include "kernels/cuda/support/language.h"

namespace trainscope::cuda {

// What the cells of one direction compute, as an argument of a launch.
struct CellRules {
  CellActivation functions[kMostCellActivations];
  double clip = 0.0;
  bool coupled = false;
  bool linear_before_reset = false;

  CellRules(const RecurrentParams& params, std::int64_t direction)
      : clip(params.clip),
        coupled(params.coupled),
        linear_before_reset(params.linear_before_reset) {
    for (std::size_t i = 0; i < kMostCellActivations; ++i) {
      functions[i] = params.activations[static_cast<std::size_t>(direction)][i];
    }
  }
};

template <class C>
__device__ C cell_sigmoid(C x) {
  const C power = std::exp(-std::fabs(x));  // of -|x| it cannot overflow
  return (x < C(0) ? power : C(1)) / (C(1) + power);
}

template <class C>
__device__ C function_value(const CellActivation& f, C x) {
  const auto alpha = static_cast<C>(f.alpha);
  const auto beta = static_cast<C>(f.beta);
  switch (f.function) {
    case CellFunction::kSigmoid:
      return cell_sigmoid(x);
    case CellFunction::kTanh:
      return std::tanh(x);
    case CellFunction::kRelu:
      return x < C(0) ? C(0) : x;
    case CellFunction::kHardSigmoid: {
      const C y = alpha * x + beta;
      return y > C(1) ? C(1) : y < C(0) ? C(0) : y;
    }
    case CellFunction::kAffine:
      return alpha * x + beta;
    case CellFunction::kLeakyRelu:
      return x < C(0) ? alpha * x : x;
    case CellFunction::kThresholdedRelu:
      return x <= alpha ? C(0) : x;
    case CellFunction::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case CellFunction::kElu:
      return x > C(0) ? x : alpha * std::expm1(x);
    case CellFunction::kSoftsign:
      return x / (C(1) + std::fabs(x));
    case CellFunction::kSoftplus:
      return (x > C(0) ? x : C(0)) + std::log1p(std::exp(-std::fabs(x)));
  }
  return x;
}

// f(x), or f(x brought into [-clip, clip]) where clip is above 0.
template <class C>
__device__ C activated(const CellRules& rules, int function, C x) {
  const auto most = static_cast<C>(rules.clip);
  if (most > C(0)) x = x > most ? most : x < -most ? -most : x;
  return function_value(rules.functions[function], x);
}

// f'(x) from y = f(x).
template <class C>
__device__ C slope(const CellActivation& f, C y) {
  const auto alpha = static_cast<C>(f.alpha);
  const auto beta = static_cast<C>(f.beta);
  switch (f.function) {
    case CellFunction::kSigmoid:
      return y * (C(1) - y);
    case CellFunction::kTanh:
      return C(1) - y * y;
    case CellFunction::kRelu:
      return y > C(0) ? C(1) : C(0);
    case CellFunction::kHardSigmoid:
      return y > C(0) && y < C(1) ? alpha : C(0);
    case CellFunction::kAffine:
      return alpha;
    case CellFunction::kLeakyRelu:
      return y > C(0) ? C(1) : alpha;
    case CellFunction::kThresholdedRelu:
      return y == C(0) ? C(0) : C(1);
    case CellFunction::kScaledTanh:
      return alpha == C(0) ? C(0) : beta * (alpha - y * y / alpha);
    case CellFunction::kElu:
      return y > C(0) ? C(1) : y + alpha;
    case CellFunction::kSoftsign: {
      const C left = C(1) - std::fabs(y);
      return left * left;
    }
    case CellFunction::kSoftplus:
      return C(1) - std::exp(-y);
  }
  return C(0);
}

// Whether y is what f gives at x, to within rounding.
template <class C>
__device__ bool is_value_at(const CellActivation& f, C x, C y) {
  const C value = function_value(f, x);
  return std::fabs(y - value) <= 8 * std::numeric_limits<C>::epsilon() * std::fabs(value);
}

// d, the gradient of y = f(x), times the slope. Nothing passes where y is what f gives at a limit
// of the clip: f is monotone, so only there has x been outside, or f is flat.
template <class C>
__device__ C derived(const CellRules& rules, int function, C y, C d) {
  const CellActivation& f = rules.functions[function];
  const auto most = static_cast<C>(rules.clip);
  if (most > C(0) && (is_value_at(f, most, y) || is_value_at(f, -most, y))) return C(0);
  return d * slope(f, y);
}

}  // namespace trainscope::cuda
