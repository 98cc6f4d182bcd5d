// What of a kernel's code follows from the numbers of a block's threads: no thread comes to some of
// it, as to the rest of a loop that all threads go through equally often.
#pragma once

#include <map>

#include "tests/cuda/interpreter/instruction.h"

namespace trainscope::ptx {

// Predicates that are computed from constants and the thread's number alone and have one value for
// every thread of the largest block that the kernel may be launched with: by register, that value.
std::map<int, bool> choices_of_threads(const Kernel& kernel);

}  // namespace trainscope::ptx
