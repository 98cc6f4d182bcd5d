// check --expect: the first loss and the parameters, against what PyTorch wrote.
#pragma once

#include "cli/command.h"
#include "engine/check/expectation.h"

namespace trainscope {

// Says in `outcome` what is equal, with exit code 9 (mismatch) if not all is.
void add_expectation(const ExpectationResult& result, Outcome& outcome);

}  // namespace trainscope
