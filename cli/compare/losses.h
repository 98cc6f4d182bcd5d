// compare's section on losses: the curves of both sides, with the test that their runs allow.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/bundle/format.h"
#include "profiler/numerics/loss_comparison.h"

namespace trainscope {

// What one run says of its losses.
struct LossRun {
  std::string folder;
  profiler::LossCurve curve;  // of every step, or of those that a trace has
  std::vector<EvaluationRecord> validation = {};
  std::optional<RunManifest> manifest = {};  // none: another engine's
  std::int64_t examples = 0;                 // in a step; 0: not known
};
LossRun read_losses(const std::string& folder);

// Whether there is a loss that is a number.
bool has_losses(const std::vector<LossRun>& side);

// Runs of the same seeds and data are compared step by step; of other seeds, several a side, by
// Welch's test. Exit code 9 where they differ; where neither test is possible the facts and the
// text say why.
struct LossSides {
  const std::vector<LossRun>& a;
  const std::vector<LossRun>& b;
  std::string b_name = "B";
};
Outcome compare_losses(const LossSides& sides, std::size_t top);

}  // namespace trainscope
