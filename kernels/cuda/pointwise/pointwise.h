// The parts of the pointwise family.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

void add_logic(KernelTable& table);          // logic.cu
void add_extremes(KernelTable& table);       // extremes.cu
void add_pow(KernelTable& table);            // pow.cu
void add_functions(KernelTable& table);      // pointwise_functions.cu
void add_trigonometric(KernelTable& table);  // trigonometric.cu

}  // namespace trainscope::cuda
