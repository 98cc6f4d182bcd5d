// Matmuls by cuBLASLt.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// MatMul, Gemm, BatchMatMul, MatMulAdd and MultiMatMul in f32 and f64.
void add_matmul(KernelTable& table);

}  // namespace trainscope::cuda
