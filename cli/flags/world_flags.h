// `plan --target`: a step on devices that are not here.
#pragma once

#include <span>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "engine/run/batch/world_batch.h"

namespace trainscope {

std::span<const Flag> world_flags();  // --target, --world, --zero, ...

// Whether the call asks for other devices than this machine. Throws kUsage for flags that mean
// something with --target alone.
bool asks_for_world(const Settings& settings);

// A row for each world. Throws kOutOfMemory when the step fits none of them.
Outcome plan_worlds(const CompileStep& compile, const Invocation& invocation);

}  // namespace trainscope
