// The three files of normalisation kernels.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_norm(KernelTable& table);        // batch norm, and those of the functions below
void add_norm_relu(KernelTable& table);   // batch norm, addition of a residual, Relu
void add_layer_norm(KernelTable& table);  // layer norm

}  // namespace trainscope::cpu
