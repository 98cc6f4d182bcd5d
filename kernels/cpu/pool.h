// The two files of pooling kernels.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_pool(KernelTable& table);         // our own, and those of the function below
void add_pool_onednn(KernelTable& table);  // f32 on oneDNN

}  // namespace trainscope::cpu
