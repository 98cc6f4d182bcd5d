// Multiples of noise; floors where a tensor is nothing but rounding.
#include "profiler/numerics/tensor_limits.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

namespace trainscope::profiler {
namespace {

constexpr double kRounding = 0x1p-23;
// What an optimizer makes of the noise of gradients, of how far it moves a parameter: an element
// whose gradient is rounding moves by the whole learning rate under Adam, whichever way.
constexpr double kMoveNoise = 1e-3;
// Of a tensor with more noise than this little is left but rounding, which is as large in another
// run whatever else the tensor holds there: its noise is a norm, not a share of the tensor's.
constexpr double kNothingButNoise = 1e-2;
// Noise of which the limit is above all errors: two tensors are not further apart than twice the
// larger norm.
constexpr double kAnyError = 1.0;

// Whether a tensor has a norm: no element that is not finite, nor one that is too large to square.
bool is_finite(const TensorStatistics& statistics) {
  return statistics.finite() == statistics.count &&
         statistics.l2 < std::numeric_limits<double>::max();
}

// The power of a gradient of which a state is a mean, as its name says
// ("ai.trainscope.adamw.v/PARAMETER"). 0: of none that is known, or none of its size, as RMSprop's
// momentum, a mean of moves.
int power_of_gradient(std::string_view state) {
  constexpr std::pair<std::string_view, int> kPowers[] = {
      {".m", 1}, {"sgd.momentum", 1}, {"rmsprop.mean", 1}, {".v", 2}, {"rmsprop.square", 2}};
  const std::string_view moment = state.substr(0, state.find('/'));
  const auto found = std::ranges::find_if(
      kPowers, [&](const auto& power) { return moment.ends_with(power.first); });
  return found == std::end(kPowers) ? 0 : found->second;
}

using NormsByStep = std::map<std::pair<std::int64_t, std::int64_t>, GradientNorms>;

NormsByStep gradients_of(const Trace& trace) {
  NormsByStep norms;
  for (const TraceRow& row : trace.rows()) {
    if (row.kind == TraceKind::kGradient) norms[{row.step, row.micro_batch}].add(row);
  }
  return norms;
}

}  // namespace

void GradientNorms::add(const TraceRow& gradient) {
  if (!is_finite(gradient.statistics)) return;
  const double l2 = gradient.statistics.l2;
  of_each_.emplace(gradient.value, l2);
  of_all_ = std::hypot(of_all_, l2);
}

void GradientNorms::take_larger(const GradientNorms& other) {
  for (const auto& [parameter, l2] : other.of_each_) {
    double& larger = of_each_[parameter];
    larger = std::max(larger, l2);
  }
  of_all_ = std::max(of_all_, other.of_all_);
}

double GradientNorms::of(const std::string& parameter) const {
  const auto found = of_each_.find(parameter);
  return found == of_each_.end() ? 0.0 : found->second;
}

bool GradientNorms::vanishes(const std::string& parameter) const {
  return of_each_.contains(parameter) && of(parameter) < 1e-6 * of_all_;
}

TensorLimits::TensorLimits(const Trace& a, const Trace& b, std::int64_t begun) : begun_(begun) {
  oracle_ = a.oracle();
  if (!oracle_) oracle_ = b.oracle();
  if (!oracle_) {
    gradients_ = gradients_of(a);
    for (const auto& [place, norms] : gradients_of(b)) gradients_[place].take_larger(norms);
    return;
  }
  for (std::size_t i = 0; i < oracle_->rows().size(); ++i) {
    const TraceRow& row = oracle_->rows()[i];
    rows_.emplace(row.key(), i);
    step_ = row.step;
    if (row.kind == TraceKind::kGradient) true_gradients_.add(row);
  }
  for (const TraceNoise& noise : oracle_->noise()) noise_.emplace(noise.key, noise.relative);
  if (begun == 0) drift_ = std::max(drift_in(a), drift_in(b));
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
  const std::int64_t steps = std::max<std::int64_t>(1, row.step - begun_);
  norm = std::max(norm, 1e-300);
  double limit = kNoiseFactor * std::max(noise_of(row, norm), kRounding);
  const bool is_gradient =
      row.kind == TraceKind::kGradient || row.kind == TraceKind::kActivationGradient;
  const GradientNorms& gradients = gradients_at(row);
  if (is_gradient) {
    limit = std::max(limit, kNoiseFactor * kOfAllGradients * gradients.of_all() / norm);
  }
  if (row.kind == TraceKind::kParameter) {
    limit = kNoiseFactor * kRounding;
    const bool vanishes = gradients.vanishes(row.value);
    // Of an unknown move: some hundredths of the parameter; one that began at 0 and went whichever
    // way is nothing but its moves.
    const double moved = move.value_or((vanishes ? 1.0 : 1e-2) * norm) / norm;
    limit += (vanishes ? 2.0 : share_of_move(row)) * moved;
  }
  // What the first step's noise turned stays as far apart as it was.
  const double drift = steps > 1 && row.kind != TraceKind::kParameter ? drift_ : 0.0;
  return drift + static_cast<double>(times_one_step(steps)) *
                     (std::isfinite(limit) ? limit : kNoiseFactor * kUnmeasuredNoise);
}

double TensorLimits::share_of_move(const TraceRow& parameter) const {
  const auto measured = noise_.find(parameter.key());
  return measured == noise_.end() ? kMoveNoise : std::clamp(measured->second, kMoveNoise, 2.0);
}

double TensorLimits::drift_in(const Trace& trace) const {
  std::unordered_map<std::string, std::size_t> starts;
  double apart = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < trace.rows().size(); ++i) {
    const TraceRow& row = trace.rows()[i];
    if (row.kind != TraceKind::kParameter || row.step > 1) continue;
    if (row.step == 0) {
      starts.emplace(row.key(), i);
      continue;
    }
    const auto start = starts.find(row.key());
    if (start == starts.end() || !is_finite(row.statistics)) continue;
    norm = std::hypot(norm, row.statistics.l2);
    if (!noise_.contains(row.key())) continue;
    const double moved = estimated_distance(trace.sketch(i), trace.sketch(start->second));
    apart = std::hypot(apart, share_of_move(row) * moved);
  }
  return norm > 0.0 ? apart / norm : 0.0;
}

double TensorLimits::noise_of(const TraceRow& row, double norm) const {
  if (row.kind == TraceKind::kState) return noise_of_moment(row, norm);
  const auto found = noise_.find(row.key());
  if (found == noise_.end()) return kUnmeasuredNoise;
  const std::optional<double> absolute = noise_norm(row.key());
  return absolute ? *absolute / norm : found->second;
}

double TensorLimits::noise_of_moment(const TraceRow& row, double norm) const {
  const std::string parameter = row.value.substr(row.value.find('/') + 1);
  const std::string gradient = "grad:" + parameter;
  const GradientNorms& gradients = gradients_at(row);
  const double of_all = kOfAllGradients * gradients.of_all();
  const std::optional<double> measured = noise_norm(gradient);
  if (measured || gradients.vanishes(parameter)) {
    const double noise = std::max(measured.value_or(0.0), of_all);
    const int power = row.step - begun_ > 1 ? 0 : power_of_gradient(row.value);
    if (power == 1) return 2.0 * noise / norm;
    // (g + noise)^2 is apart from g^2 by so much.
    return power == 2 ? noise * (2.0 * std::sqrt(norm) + noise) / norm : kAnyError;
  }
  const auto found = noise_.find(gradient);
  const double share = found == noise_.end() ? kUnmeasuredNoise : found->second;
  const double l2 = gradients.of(parameter);
  return 2.0 * (l2 > 0.0 ? std::max(share, of_all / l2) : share);
}

std::optional<double> TensorLimits::noise_norm(const std::string& key) const {
  const auto noise = noise_.find(key);
  const auto truth = rows_.find(key);
  if (noise == noise_.end() || truth == rows_.end()) return std::nullopt;
  const double l2 = oracle_->rows()[truth->second].statistics.l2;
  if (l2 == 0.0) return noise->second;
  return noise->second > kNothingButNoise ? std::optional(noise->second * l2) : std::nullopt;
}

const GradientNorms& TensorLimits::gradients_at(const TraceRow& row) const {
  const auto found = gradients_.find({row.step, row.micro_batch});
  return found == gradients_.end() ? true_gradients_ : found->second;
}

}  // namespace trainscope::profiler
