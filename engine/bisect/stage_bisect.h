// Which of our own passes changes what a step computes: the graph after each, on the same inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/compile.h"
#include "engine/exec/reference.h"

namespace trainscope {

struct StageFault {
  std::string stage = {};   // "fuse_gelu": the pass, or what makes a program of a graph
  std::string label = {};   // "07-fuse_gelu"
  std::string before = {};  // the label of the stage before
  std::string end = {};     // what differs: "loss", "output logits", "gradient w", "next w"
  // The first value that both stages have and that differs, and the node that makes it there;
  // empty: none but the ends.
  std::string value = {};
  std::string op = {};
  std::string node = {};
  double error = 0.0;  // relative to the larger norm
  double limit = 0.0;
};

struct StageBisect {
  std::optional<StageFault> fault = {};
  std::int64_t stages = 0;  // that were run
  std::int64_t ends = 0;    // that were compared
};

// 16 * 2^-23: constants of models are rounded to f32, and a fusion has the exact ones.
inline constexpr double kStageLimit = 0x1p-19;

// Runs the graph of each stage that changed it. Outputs, loss, gradients and next states of two
// stages in a row must agree to kStageLimit (gradients: or to 8 * 1e-8 of the norm of all).
// `inputs` by name; parameters and states begin as the graphs have them. Stages without a graph are
// skipped.
StageBisect bisect_stages(const Stages& stages, const std::map<std::string, Tensor>& inputs,
                          const Evaluate& evaluate);

}  // namespace trainscope
