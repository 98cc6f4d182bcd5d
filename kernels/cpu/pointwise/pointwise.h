// The parts of the pointwise family.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_logic(KernelTable& table);          // logic.cpp
void add_extremes(KernelTable& table);       // extremes.cpp
void add_pow(KernelTable& table);            // pow.cpp
void add_functions(KernelTable& table);      // pointwise_functions.cpp
void add_trigonometric(KernelTable& table);  // trigonometric.cpp

}  // namespace trainscope::cpu
