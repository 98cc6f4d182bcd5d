// Compiled once: each function in vector form is long.
#include "kernels/cpu/recurrent/cell_activation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/support/vector_math.h"

namespace trainscope::cpu {
namespace {

template <typename T, class F>
void for_each_unit(T* x, std::int64_t n, F f) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) x[j] = f(x[j]);
}

template <typename T>
T softplus(T x) {
  return (x > T{0} ? x : T{0}) + std::log1p(std::exp(-std::abs(x)));
}

template <typename T, class F>
void scale_each_unit(T* d, const T* y, std::int64_t n, F derivative) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) d[j] *= derivative(y[j]);
}

}  // namespace

template <typename T>
void activate(const CellActivation& f, double clip, T* x, std::int64_t n) {
  if (clip > 0.0) {
    const T most = static_cast<T>(clip);
    for_each_unit(x, n, [=](T v) { return v > most ? most : v < -most ? -most : v; });
  }
  const T alpha = static_cast<T>(f.alpha);
  const T beta = static_cast<T>(f.beta);
  switch (f.function) {
    case CellFunction::kSigmoid:
      return for_each_unit(x, n, [](T v) { return vector_sigmoid(v); });
    case CellFunction::kTanh:
      return for_each_unit(x, n, [](T v) { return vector_tanh(v); });
    case CellFunction::kRelu:
      return for_each_unit(x, n, [](T v) { return v < T{0} ? T{0} : v; });
    case CellFunction::kHardSigmoid:
      return for_each_unit(x, n, [=](T v) {
        const T y = alpha * v + beta;
        return y > T{1} ? T{1} : y < T{0} ? T{0} : y;
      });
    case CellFunction::kAffine:
      return for_each_unit(x, n, [=](T v) { return alpha * v + beta; });
    case CellFunction::kLeakyRelu:
      return for_each_unit(x, n, [=](T v) { return v < T{0} ? alpha * v : v; });
    case CellFunction::kThresholdedRelu:
      return for_each_unit(x, n, [=](T v) { return v <= alpha ? T{0} : v; });
    case CellFunction::kScaledTanh:
      return for_each_unit(x, n, [=](T v) { return alpha * vector_tanh(beta * v); });
    case CellFunction::kElu:
      return for_each_unit(x, n, [=](T v) { return v > T{0} ? v : alpha * vector_expm1(v); });
    case CellFunction::kSoftsign:
      return for_each_unit(x, n, [](T v) { return v / (T{1} + std::abs(v)); });
    case CellFunction::kSoftplus:
      return for_each_unit(x, n, [](T v) { return softplus(v); });
  }
}

namespace {

// Nothing passes where y is what f gives at a limit of the clip, to within rounding: f is monotone,
// so only there has the argument been outside, or f is flat.
template <typename T>
void stop_at_limits(const CellActivation& f, double clip, const T* y, T* d, std::int64_t n) {
  T limits[2] = {static_cast<T>(clip), static_cast<T>(-clip)};
  activate(f, 0.0, limits, 2);
  const T near = 8 * std::numeric_limits<T>::epsilon();
  for (const T limit : limits) {
    const T distance = near * std::abs(limit);
    for (std::int64_t j = 0; j < n; ++j) {
      if (std::abs(y[j] - limit) <= distance) d[j] = T{0};
    }
  }
}

}  // namespace

template <typename T>
void derive(const CellActivation& f, double clip, const T* y, T* d, std::int64_t n) {
  if (clip > 0.0) stop_at_limits(f, clip, y, d, n);
  const T alpha = static_cast<T>(f.alpha);
  const T beta = static_cast<T>(f.beta);
  const T inverse = alpha == T{0} ? T{0} : T{1} / alpha;
  switch (f.function) {
    case CellFunction::kSigmoid:
      return scale_each_unit(d, y, n, [](T v) { return v * (T{1} - v); });
    case CellFunction::kTanh:
      return scale_each_unit(d, y, n, [](T v) { return T{1} - v * v; });
    case CellFunction::kRelu:
      return scale_each_unit(d, y, n, [](T v) { return v > T{0} ? T{1} : T{0}; });
    case CellFunction::kHardSigmoid:
      return scale_each_unit(d, y, n, [=](T v) { return v > T{0} && v < T{1} ? alpha : T{0}; });
    case CellFunction::kAffine:
      return scale_each_unit(d, y, n, [=](T) { return alpha; });
    case CellFunction::kLeakyRelu:
      return scale_each_unit(d, y, n, [=](T v) { return v > T{0} ? T{1} : alpha; });
    case CellFunction::kThresholdedRelu:
      return scale_each_unit(d, y, n, [](T v) { return v == T{0} ? T{0} : T{1}; });
    case CellFunction::kScaledTanh:
      return scale_each_unit(d, y, n, [=](T v) { return beta * (alpha - v * v * inverse); });
    case CellFunction::kElu:
      return scale_each_unit(d, y, n, [=](T v) { return v > T{0} ? T{1} : v + alpha; });
    case CellFunction::kSoftsign:
      return scale_each_unit(d, y, n, [](T v) {
        const T left = T{1} - std::abs(v);
        return left * left;
      });
    case CellFunction::kSoftplus:
      return scale_each_unit(d, y, n, [](T v) { return T{1} - vector_exp(-v); });
  }
}

template void activate(const CellActivation& f, double clip, float* x, std::int64_t n);
template void activate(const CellActivation& f, double clip, double* x, std::int64_t n);
template void derive(const CellActivation& f, double clip, const float* y, float* d,
                     std::int64_t n);
template void derive(const CellActivation& f, double clip, const double* y, double* d,
                     std::int64_t n);

}  // namespace trainscope::cpu
