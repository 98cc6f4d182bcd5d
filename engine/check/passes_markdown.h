// docs/passes.md: the pipeline as text.
#pragma once

#include <span>
#include <string>

#include "engine/passes/pass.h"

namespace trainscope {

// Every pass with its place in the pipeline and what it does.
std::string passes_markdown(std::span<const Pass> pipeline);

}  // namespace trainscope
