// The step as it is: its plan, and what its calls take.
#pragma once

#include <cstdint>

#include "cli/advise/advice.h"

namespace trainscope {

// Times are those of the run's profile where it has one of this very plan, else of steps that are
// run now, else, for models without elements and steps that memory does not hold, modelled.
StepFacts step_facts(const Source& source, const Invocation& settled);

// Whether the machine has so much memory to give now.
bool fits_in_memory(std::int64_t bytes);

// Times of all nodes by the costs and the machine that the options name.
StepForecast modelled_step(const Program& program, const CompileOptions& options,
                           std::int64_t micro_batches);

}  // namespace trainscope
