// The files of matmul kernels.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

void add_matmul(KernelTable& table);         // our own, and those of the function below
void add_matmul_onednn(KernelTable& table);  // on oneDNN
void add_multi_matmul_onednn(KernelTable& table);

}  // namespace trainscope::cpu
