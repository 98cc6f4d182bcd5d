// Limits of the errors of tensors: from the noise that an oracle measured, else from what is usual.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "profiler/numerics/trace.h"

namespace trainscope::profiler {

inline constexpr double kNoiseFactor = 8.0;
inline constexpr double kUnmeasuredNoise = 2e-6;
inline constexpr double kOfAllGradients = 1e-8;  // of the norm of all

// By how much a limit after `steps` steps from a common start is that of one. What is off at a step
// is off by more the farther the parameters are apart by then, and that goes into them: after n
// steps n of the first step's errors, n - 1 of the second's ...
constexpr std::int64_t times_one_step(std::int64_t steps) { return steps * (steps + 1) / 2; }

// L2 norms of the gradients of one micro-batch.
class GradientNorms {
 public:
  // Of elements that are all finite; others say nothing.
  void add(const TraceRow& gradient);
  // The larger one of each norm.
  void take_larger(const GradientNorms& other);

  double of_all() const { return of_all_; }
  // Of a parameter's; 0 where it is not known.
  double of(const std::string& parameter) const;
  // Whether a parameter's gradient is nothing but rounding.
  bool vanishes(const std::string& parameter) const;

 private:
  std::unordered_map<std::string, double> of_each_;  // by parameter
  double of_all_ = 0.0;
};

class TensorLimits {
 public:
  // `begun`: the step after which both had the same parameters and states.
  TensorLimits(const Trace& a, const Trace& b, std::int64_t begun);

  bool measured() const { return oracle_.has_value(); }

  // The truth's row at its step; none elsewhere.
  std::optional<std::size_t> truth(const TraceRow& row) const;
  double error_from_truth(std::size_t truth, const Sketch& sketch) const;

  // Relative to `norm`, the larger one of both tensors; `move`: how far a parameter went in the
  // step, where that is known.
  double of(const TraceRow& row, double norm, std::optional<double> move) const;

 private:
  double noise_of(const TraceRow& row, double norm) const;
  // How much of its move a parameter may be off by.
  double share_of_move(const TraceRow& parameter) const;
  // How far all parameters may be apart after the first step, of their norm: what the noise of
  // gradients turns of their moves in the trace.
  double drift_in(const Trace& trace) const;
  // Of what an optimizer keeps of a gradient.
  double noise_of_moment(const TraceRow& row, double norm) const;
  // The norm of the noise of a tensor that is nothing else.
  std::optional<double> noise_norm(const std::string& key) const;
  // The oracle's, of whichever step; else what both traces have of this one.
  const GradientNorms& gradients_at(const TraceRow& row) const;

  std::int64_t begun_;
  std::optional<Trace> oracle_;
  std::unordered_map<std::string, std::size_t> rows_;
  std::unordered_map<std::string, double> noise_;
  std::int64_t step_ = 0;
  double drift_ = 0.0;
  GradientNorms true_gradients_;
  // Without an oracle: by step and micro-batch.
  std::map<std::pair<std::int64_t, std::int64_t>, GradientNorms> gradients_;
};

}  // namespace trainscope::profiler
