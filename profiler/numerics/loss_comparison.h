// Loss curves of two sides beside each other: of the same seed and data step by step, of other
// seeds by Welch's t-test on several runs a side (B. L. Welch, "The generalization of Student's
// problem when several different population variances are involved", Biometrika 34, 1947).
// docs/numerics.md says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace trainscope::profiler {

// How far two runs of one seed may be apart at each step, relative to the loss, and to no less than
// a hundredth of the first one: of a loss near 0 nothing is left but the rounding of its terms.
inline constexpr double kSameSeedLimit = 1e-5;
inline constexpr double kLeastOfFirstLoss = 1e-2;
// Runs of other seeds: how often all windows of two curves of one program would differ by chance.
inline constexpr double kWelchLevel = 0.01;
inline constexpr std::size_t kMostWindows = 10;

using LossCurve = std::map<std::int64_t, double>;  // by step; NaN where it was no number

struct LossPair {
  std::int64_t step = 0;
  double a = 0.0;
  double b = 0.0;
  double relative = 0.0;  // difference; infinite where one alone is no number
};

struct PairedLosses {
  std::vector<LossPair> steps;       // that both have
  std::optional<std::size_t> first;  // beyond the limit
  std::size_t largest = 0;           // where the difference is
};
PairedLosses compare_paired(const LossCurve& a, const LossCurve& b);

// Steps in a row: the mean loss of each run, over the runs of a side.
struct LossWindow {
  std::int64_t from = 0;
  std::int64_t to = 0;  // this one too
  double mean_a = 0.0;
  double mean_b = 0.0;
  double deviation_a = 0.0;  // of a sample
  double deviation_b = 0.0;
  double t = 0.0;        // Welch's; infinite where runs of a side do not differ and the sides do
  double freedom = 0.0;  // degrees
  double p = 1.0;        // two-sided
};

struct WelchLosses {
  std::size_t steps = 0;            // that all runs have
  std::vector<LossWindow> windows;  // kMostWindows at most; p below kWelchLevel / windows differs
  std::optional<std::size_t> first;
};
// Two runs a side at least. A window with losses that are no numbers on one side alone differs; on
// both it is left out.
WelchLosses compare_by_welch(std::span<const LossCurve> a, std::span<const LossCurve> b);

// The probability that Student's t is farther from 0 than `t`, either way.
double student_two_sided(double t, double freedom);

}  // namespace trainscope::profiler
