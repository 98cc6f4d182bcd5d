// Multiples of noise; floors where a tensor is nothing but rounding.
#include "profiler/numerics/tensor_limits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainscope::profiler {
namespace {

constexpr double kRounding = 0x1p-23;
// What an optimizer makes of the noise of gradients, of how far it moves a parameter: an element
// whose gradient is rounding moves by the whole learning rate under Adam, whichever way.
constexpr double kMoveNoise = 1e-3;
// Of a tensor with more noise than this little is left but rounding, which is as large in another
// run whatever else the tensor holds there: its noise is a norm, not a share of the tensor's.
constexpr double kNothingButNoise = 1e-2;

// Whether a tensor has a norm: no element that is not finite, nor one that is too large to square.
bool is_finite(const TensorStatistics& statistics) {
  return statistics.finite() == statistics.count &&
         statistics.l2 < std::numeric_limits<double>::max();
}

}  // namespace

TensorLimits::TensorLimits(const Trace& a, const Trace& b, std::int64_t begun) : begun_(begun) {
  oracle_ = a.oracle();
  if (!oracle_) oracle_ = b.oracle();
  if (!oracle_) return;
  for (std::size_t i = 0; i < oracle_->rows().size(); ++i) {
    const TraceRow& row = oracle_->rows()[i];
    rows_.emplace(row.key(), i);
    step_ = row.step;
    const bool counts = row.kind == TraceKind::kGradient && is_finite(row.statistics);
    if (counts) all_gradients_ = std::hypot(all_gradients_, row.statistics.l2);
  }
  for (const TraceNoise& noise : oracle_->noise()) noise_.emplace(noise.key, noise.relative);
}

std::optional<std::size_t> TensorLimits::truth(const TraceRow& row) const {
  if (!oracle_ || row.step != step_ || row.micro_batch != 0) return std::nullopt;
  const auto found = rows_.find(row.key());
  return found == rows_.end() ? std::nullopt : std::optional(found->second);
}

double TensorLimits::error_from_truth(std::size_t truth, const Sketch& sketch) const {
  const double l2 = oracle_->rows()[truth].statistics.l2;
  return l2 > 0.0 ? estimated_distance(sketch, oracle_->sketch(truth)) / l2 : 0.0;
}

double TensorLimits::of(const TraceRow& row, double norm, std::optional<double> move) const {
  const double steps = static_cast<double>(std::max<std::int64_t>(1, row.step - begun_));
  norm = std::max(norm, 1e-300);
  double limit = kNoiseFactor * std::max(noise_of(row, norm), kRounding);
  const bool is_gradient =
      row.kind == TraceKind::kGradient || row.kind == TraceKind::kActivationGradient;
  if (is_gradient) {
    limit = std::max(limit, kNoiseFactor * kOfAllGradients * all_gradients_ / norm);
  }
  if (row.kind == TraceKind::kParameter) {
    limit = kNoiseFactor * kRounding;
    // Of an unknown move: some hundredths of the parameter.
    const double moved = move.value_or(1e-2 * norm) / norm;
    limit += (vanishes(row.value) ? 2.0 : kMoveNoise) * moved;
  }
  return steps * (std::isfinite(limit) ? limit : kNoiseFactor * kUnmeasuredNoise);
}

double TensorLimits::noise_of(const TraceRow& row, double norm) const {
  if (row.kind == TraceKind::kState) {  // a moment: of a gradient, or its square
    const auto found = noise_.find("grad:" + row.value.substr(row.value.find('/') + 1));
    return 2.0 * (found == noise_.end() ? kUnmeasuredNoise : found->second);
  }
  const auto found = noise_.find(row.key());
  if (found == noise_.end()) return kUnmeasuredNoise;
  const std::optional<double> absolute = noise_norm(row.key());
  return absolute ? *absolute / norm : found->second;
}

std::optional<double> TensorLimits::noise_norm(const std::string& key) const {
  const auto noise = noise_.find(key);
  const auto truth = rows_.find(key);
  if (noise == noise_.end() || truth == rows_.end()) return std::nullopt;
  const double l2 = oracle_->rows()[truth->second].statistics.l2;
  if (l2 == 0.0) return noise->second;
  return noise->second > kNothingButNoise ? std::optional(noise->second * l2) : std::nullopt;
}

bool TensorLimits::vanishes(const std::string& parameter) const {
  const auto found = rows_.find("grad:" + parameter);
  if (found == rows_.end()) return false;
  return oracle_->rows()[found->second].statistics.l2 < 1e-6 * all_gradients_;
}

}  // namespace trainscope::profiler
