// Examples on which kernels have two blocks at least that have one in all other examples.
#pragma once

#include <vector>

#include "tests/cuda/mutants/wide_examples.h"

namespace trainscope::test {

// Ragged, as wide_examples() are.
std::vector<WideExample> several_blocks();

}  // namespace trainscope::test
