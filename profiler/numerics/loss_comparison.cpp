// Differences step by step, and Welch's test window by window.
#include "profiler/numerics/loss_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainscope::profiler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double relative_difference(double a, double b, double least) {
  if (!std::isfinite(a) && !std::isfinite(b)) return 0.0;
  if (!std::isfinite(a) || !std::isfinite(b)) return kInfinity;
  const double scale = std::max({std::abs(a), std::abs(b), least});
  return scale > 0.0 ? std::abs(a - b) / scale : 0.0;
}

// The continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8), by
// Lentz's method: a quotient of numerator and denominator that are kept away from 0.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostTerms = 500;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double numerator = 1.0;
  double denominator = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double value = denominator;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    double change = 1.0;
    for (const double term : {even, odd}) {
      denominator = 1.0 / away_from_zero(1.0 + term * denominator);
      numerator = away_from_zero(1.0 + term / numerator);
      change = numerator * denominator;
      value *= change;
    }
    if (std::abs(change - 1.0) < 1e-15) break;
  }
  return value;
}

// The regularized incomplete beta function I_x(a, b).
double regularized_beta(double a, double b, double x) {
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  const double logarithm =
      std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  const double front = std::exp(logarithm);
  // The fraction converges fast on this side of the mean.
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

struct Sample {
  double mean = 0.0;
  double variance = 0.0;  // of a sample
  std::size_t count = 0;

  double of_mean() const { return variance / static_cast<double>(count); }
};

// Of the runs' means over the steps.
Sample sample_of(std::span<const LossCurve> runs, std::span<const std::int64_t> steps) {
  std::vector<double> means;
  for (const LossCurve& run : runs) {
    double sum = 0.0;
    for (const std::int64_t step : steps) sum += run.at(step);
    means.push_back(sum / static_cast<double>(steps.size()));
  }
  Sample sample{.count = means.size()};
  for (const double mean : means) sample.mean += mean / static_cast<double>(means.size());
  for (const double mean : means) {
    const double from_mean = mean - sample.mean;
    sample.variance += from_mean * from_mean / static_cast<double>(means.size() - 1);
  }
  return sample;
}

LossWindow window_of(const Sample& a, const Sample& b, std::span<const std::int64_t> steps) {
  LossWindow window{.from = steps.front(),
                    .to = steps.back(),
                    .mean_a = a.mean,
                    .mean_b = b.mean,
                    .deviation_a = std::sqrt(a.variance),
                    .deviation_b = std::sqrt(b.variance)};
  if (std::isfinite(a.mean) != std::isfinite(b.mean)) {
    window.t = kInfinity;
    window.p = 0.0;
    return window;
  }
  const double variance = a.of_mean() + b.of_mean();
  const double apart = b.mean - a.mean;
  if (variance <= 0.0) {
    window.t = apart == 0.0 ? 0.0 : std::copysign(kInfinity, apart);
    window.p = apart == 0.0 ? 1.0 : 0.0;
    return window;
  }
  const double own_a = a.of_mean() * a.of_mean() / static_cast<double>(a.count - 1);
  const double own_b = b.of_mean() * b.of_mean() / static_cast<double>(b.count - 1);
  window.t = apart / std::sqrt(variance);
  window.freedom = variance * variance / (own_a + own_b);
  window.p = student_two_sided(window.t, window.freedom);
  return window;
}

std::vector<std::int64_t> steps_of_all(std::span<const LossCurve> a, std::span<const LossCurve> b) {
  std::vector<std::int64_t> steps;
  const auto all_have = [](std::span<const LossCurve> runs, std::int64_t step) {
    return std::ranges::all_of(runs, [step](const LossCurve& run) { return run.contains(step); });
  };
  for (const auto& [step, loss] : a.front()) {
    if (all_have(a, step) && all_have(b, step)) steps.push_back(step);
  }
  return steps;
}

}  // namespace

PairedLosses compare_paired(const LossCurve& a, const LossCurve& b) {
  PairedLosses paired;
  double least = 0.0;
  for (const auto& [step, loss] : a) {
    const auto other = b.find(step);
    if (other == b.end()) continue;
    if (paired.steps.empty() && std::isfinite(loss)) least = kLeastOfFirstLoss * std::abs(loss);
    const double relative = relative_difference(loss, other->second, least);
    paired.steps.push_back({.step = step, .a = loss, .b = other->second, .relative = relative});
    const std::size_t here = paired.steps.size() - 1;
    if (relative > paired.steps[paired.largest].relative) paired.largest = here;
    if (relative > kSameSeedLimit && !paired.first) paired.first = here;
  }
  return paired;
}

WelchLosses compare_by_welch(std::span<const LossCurve> a, std::span<const LossCurve> b) {
  const std::vector<std::int64_t> steps = steps_of_all(a, b);
  WelchLosses result{.steps = steps.size(), .windows = {}, .first = {}};
  const std::size_t windows = std::min(kMostWindows, steps.size());
  for (std::size_t i = 0; i < windows; ++i) {
    const std::size_t begin = i * steps.size() / windows;
    const std::size_t end = (i + 1) * steps.size() / windows;
    const auto part = std::span(steps).subspan(begin, end - begin);
    const Sample side_a = sample_of(a, part);
    const Sample side_b = sample_of(b, part);
    if (!std::isfinite(side_a.mean) && !std::isfinite(side_b.mean)) continue;
    result.windows.push_back(window_of(side_a, side_b, part));
  }
  const double limit = kWelchLevel / static_cast<double>(std::max<std::size_t>(1, windows));
  for (std::size_t i = 0; i < result.windows.size() && !result.first; ++i) {
    if (result.windows[i].p < limit) result.first = i;
  }
  return result;
}

double student_two_sided(double t, double freedom) {
  return regularized_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
}

}  // namespace trainscope::profiler
