// The two files of normalisation kernels.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_norm(KernelTable& table);        // batch norm, and those of the function below
void add_layer_norm(KernelTable& table);  // layer norm

}  // namespace trainscope::cpu
