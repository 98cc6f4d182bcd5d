// The kernels of attention, by file.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

void add_attention(KernelTable& table);
void add_attention_tensor(KernelTable& table);
void add_attention_grad(KernelTable& table);
void add_attention_grad_tensor(KernelTable& table);

}  // namespace trainscope::cuda
