// The step that a run has planned, to be planned anew: its graph as recorded, and the options that
// decide its plan. Neither the run's model nor its data are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/bundle/reader.h"
#include "engine/compile.h"

namespace trainscope {

struct PlannedStep {
  OnnxModel model;  // the recorded graph: no pass is to run on it
  // Without recomputation; of the stages behind the passes those that the run had.
  CompileOptions options = {};
};

// The graph that a run planned, before ops were put in order or rematerialized; none where no stage
// is recorded yet.
std::optional<StageRecord> planned_stage(const RunReader& run);

// The threads that the run was planned for: its option, or where it has none what its newest
// session used; none where neither is recorded.
std::optional<std::int64_t> planned_threads(const RunManifest& manifest);

// Throws kBadInput when the run has no such stage, or options that this program does not know.
PlannedStep planned_step(const RunReader& run);

// Words of options, as flags and records have them. Throw kBadInput for others.
KernelChoice kernel_choice_of(std::string_view word);  // "fastest", "direct", "reference"
SameBits same_bits_of(std::string_view word);          // "threads", "strict"
OpOrder op_order_of(std::string_view word);            // "given", "memory"

}  // namespace trainscope
