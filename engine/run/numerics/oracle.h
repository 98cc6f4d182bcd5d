// The truth about one step, and what rounding makes of it: the unfused step in f64, and how far f32
// is from it on several orders of the same batch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/numerics/unfused_step.h"
#include "engine/train/data.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

// A value or gradient of the model.
struct OracleRow {
  profiler::TraceRow row;  // without step and micro-batch; dtype f64
  profiler::Sketch sketch{};
  // The largest L2 error of f32 over the L2 norm, of the batch as it is and of its examples in
  // three other orders (TensorNoise); where the norm is 0 the error itself. None: it is not known,
  // as elements overflow.
  std::optional<double> noise = {};
  // Of a parameter's gradient, under an optimizer that divides it by its size: by how much of its
  // first step a gradient that is off by kNoiseFactor times its noise moves the parameter
  // elsewhere.
  std::optional<double> step_noise = {};
};

class Oracle {
 public:
  // `options` as for training.
  Oracle(const OnnxModel& model, const CompileOptions& options);

  // What a step gives on these: `batch`, of which `axes` says where the examples are, and the other
  // inputs, parameters and states by name.
  std::vector<OracleRow> rows(const std::map<std::string, Tensor>& batch, const BatchAxes& axes,
                              const std::map<std::string, Tensor>& others) const;

 private:
  UnfusedStep single_;
  UnfusedStep truth_;
  int threads_;
  std::optional<double> epsilon_;  // of such an optimizer
  double clip_norm_;
};

}  // namespace trainscope
