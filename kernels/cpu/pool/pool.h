// The files of pooling kernels.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_pool(KernelTable& table);             // our own, and those of the functions below
void add_max_pool_places(KernelTable& table);  // MaxPool with its second output
void add_pool_onednn(KernelTable& table);      // f32 on oneDNN
void add_pool_halves(KernelTable& table);      // MaxPool with windows of 2 x 2 side by side

}  // namespace trainscope::cpu
