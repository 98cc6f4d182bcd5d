// What is said of a loss that is no number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/core/error.h"
#include "engine/exec/executor.h"

namespace trainscope {

// A trained value that models hold constant, if it stands at the bad tensor: the exponent of a
// power, or a single number. "" when there is none.
std::string trained_constant(const Graph& graph, const BadTensor& bad);

// kNumeric, with the first bad tensor of the step and what to do.
Error bad_loss_error(Executor& executor, double loss, std::int64_t step);

}  // namespace trainscope
