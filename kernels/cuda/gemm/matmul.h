// Matmuls by cuBLASLt.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// MatMul, Gemm, BatchMatMul, MatMulAdd and MultiMatMul in f32, f64, bf16 and f16, and their forms
// in TF32.
void add_matmul(KernelTable& table);

}  // namespace trainscope::cuda
