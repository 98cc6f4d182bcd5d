// Flags of the verbs that compare with stored numbers: verify and gradients.
#pragma once

#include <vector>

#include "cli/flags/invocation.h"
#include "engine/session.h"

namespace trainscope {

std::vector<Flag> check_flags();  // --disable, --kernels
LowerOptions lower_options(const Invocation& invocation);
PassOptions pass_options(const Invocation& invocation);

}  // namespace trainscope
