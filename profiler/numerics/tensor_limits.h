// Limits of the errors of tensors: from the noise that an oracle measured, else from what is usual.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "profiler/numerics/trace.h"

namespace trainscope::profiler {

inline constexpr double kNoiseFactor = 8.0;
inline constexpr double kUnmeasuredNoise = 2e-6;
inline constexpr double kOfAllGradients = 1e-8;  // of the norm of all

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
  // The norm of the noise of a tensor that is nothing else.
  std::optional<double> noise_norm(const std::string& key) const;
  // Whether a parameter's gradient is nothing but rounding.
  bool vanishes(const std::string& parameter) const;

  std::int64_t begun_;
  std::optional<Trace> oracle_;
  std::unordered_map<std::string, std::size_t> rows_;
  std::unordered_map<std::string, double> noise_;
  std::int64_t step_ = 0;
  double all_gradients_ = 0.0;
};

}  // namespace trainscope::profiler
