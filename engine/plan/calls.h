// The calls of a program, of its launches and the places of its buffers.
#pragma once

#include <span>

#include "engine/plan/program_builder.h"

namespace trainscope {

// Fills in calls, sections, the beginning of the update phase and the calls that own workspaces.
// `program` has its graph, buffers with a place, values and times. What launches hold is moved out.
void make_calls(Program& program, std::span<Launch> launches, std::span<const TimeSection> sections,
                std::span<const StateCopy> copies);

}  // namespace trainscope
