// What is said of a loss that is no number.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "engine/core/error.h"
#include "engine/exec/executor.h"

namespace trainscope {

// Names of parameters of which the model does not tell whether they are parameters or buffers.
using UnmarkedNames = std::set<std::string, std::less<>>;

// A trained value that models hold constant, if it stands at the bad tensor: the exponent of a
// power, a single number, or an unmarked one that divides or whose root or logarithm is taken. ""
// when there is none.
std::string trained_constant(const Graph& graph, const BadTensor& bad,
                             const UnmarkedNames& unmarked = {});

// kNumeric, with the first bad tensor of the step and what to do.
Error bad_loss_error(Executor& executor, double loss, std::int64_t step,
                     const UnmarkedNames& unmarked = {});

}  // namespace trainscope
