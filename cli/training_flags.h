// Flags that say what to build around a model, and the engine's options made of them.
#pragma once

#include <span>
#include <string>

#include "cli/invocation.h"
#include "cli/sizes.h"
#include "engine/session.h"

namespace trainscope {

std::span<const Flag> loss_flags();  // --loss
std::span<const Flag>
optimizer_flags();                    // --optimizer, --lr, --schedule, --clip, --accumulate, ...
std::span<const Flag> graph_flags();  // --train, --freeze, --disable, --stop-after, --kernels
// All of them and size_flags().
std::vector<Flag> compile_flags();

// Of a verb that has compile_flags().
CompileOptions compile_options(const Invocation& invocation, const OnnxModel& model,
                               const Sizes& sizes);
// Of a verb that has graph_flags() or not: a forward or evaluation program.
CompileOptions forward_options(const Invocation& invocation, const Sizes& sizes);

Schedule training_schedule(const Settings& settings, std::int64_t steps);

// The optimizer as checkpoints keep it: every number that steps depend on.
Json optimizer_json(const OptimizerOptions& optimizer);

}  // namespace trainscope
