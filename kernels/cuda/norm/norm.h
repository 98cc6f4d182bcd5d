// The kernels of normalisations, by file.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

void add_norm(KernelTable& table);
void add_layer_norm(KernelTable& table);
void add_layer_norm_grad(KernelTable& table);
void add_norm_grad(KernelTable& table);
void add_instance_norm(KernelTable& table);

}  // namespace trainscope::cuda
