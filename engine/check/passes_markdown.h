// docs/passes.md: the pipeline as text.
#pragma once

#include <span>
#include <string>

#include "engine/passes/pass.h"
#include "engine/program_stages.h"

namespace trainscope {

// Every pass with its place in the pipeline and what it does, and the stages of the program.
std::string passes_markdown(std::span<const Pass> pipeline, std::span<const ProgramStage> program);

}  // namespace trainscope
