// Differences in f64; distances by the order of floats.
#include "profiler/numerics/element_errors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace trainscope::profiler {
namespace {

// Floats in the order of their numbers: neighbours are one apart.
std::int64_t ordinal(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits < 0 ? std::int64_t{std::numeric_limits<std::int32_t>::min()} - bits : bits;
}

}  // namespace

ElementErrors element_errors(const Tensor& a, const Tensor& b) {
  const Tensor x = convert(a, DType::kF64);
  const Tensor y = convert(b, DType::kF64);
  ElementErrors errors;
  double squares = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
  std::vector<std::int64_t> ulps;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double p = x.values<double>()[static_cast<std::size_t>(i)];
    const double q = y.values<double>()[static_cast<std::size_t>(i)];
    if (!std::isfinite(p) || !std::isfinite(q)) continue;
    errors.largest = std::max(errors.largest, std::abs(p - q));
    squares += (p - q) * (p - q);
    xx += p * p;
    yy += q * q;
    xy += p * q;
    errors.sign_flips += p * q < 0.0 || (p == 0.0) != (q == 0.0) ? 1 : 0;
    ulps.push_back(std::abs(ordinal(static_cast<float>(p)) - ordinal(static_cast<float>(q))));
  }
  errors.l2 = std::sqrt(squares);
  if (xx > 0.0 && yy > 0.0) errors.cosine = xy / std::sqrt(xx * yy);
  if (ulps.empty()) return errors;
  std::ranges::sort(ulps);
  errors.ulp_median = static_cast<double>(ulps[ulps.size() / 2]);
  errors.ulp_90 = static_cast<double>(ulps[(ulps.size() - 1) * 90 / 100]);
  errors.ulp_99 = static_cast<double>(ulps[(ulps.size() - 1) * 99 / 100]);
  errors.ulp_most = static_cast<double>(ulps.back());
  return errors;
}

}  // namespace trainscope::profiler
