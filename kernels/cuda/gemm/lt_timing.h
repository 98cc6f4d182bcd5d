// How long cuBLASLt's algorithms take for a matmul.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/api/dtype.h"

namespace trainscope::cuda {

// A matmul as the library has it: d = a b + beta d, and a bias where `desc` has an epilogue that
// adds one. Bytes are those of all matrices of a batch.
struct LtTimedMatmul {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr;
  cublasLtMatrixLayout_t b = nullptr;
  cublasLtMatrixLayout_t d = nullptr;
  std::size_t a_bytes = 0;
  std::size_t b_bytes = 0;
  std::size_t d_bytes = 0;
  std::size_t bias_bytes = 0;  // 0: it has none
  double beta = 0.0;
  DType dtype = DType::kF32;   // of a and b
  DType result = DType::kF32;  // of d and the bias
};

// For each algorithm the median of five runs in seconds, on the thread's current device, between
// which the device's cache is overwritten; infinite for one that the library refuses to run. Takes
// memory of the device for operands of random numbers; empty where there is not enough of it. Gives
// the desc a pointer to a bias that is not there any more.
std::vector<double> lt_seconds(const LtTimedMatmul& matmul,
                               std::span<const cublasLtMatmulHeuristicResult_t> algorithms);

// The one to take: the first, unless another one takes at most 0.98 of its time.
std::size_t fastest_of(std::span<const double> seconds);

}  // namespace trainscope::cuda
