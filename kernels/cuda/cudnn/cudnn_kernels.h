// Kernels by cuDNN, each preferred to the own ones of its op where it takes a call.
#pragma once

#include <cudnn_graph.h>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// Conv, ConvGradInput and ConvGradWeight in f32, bf16 and f16.
void add_cudnn_conv(KernelTable& table);
// Attention and AttentionGrad in bf16 and f16.
void add_cudnn_attention(KernelTable& table);

// The library is loaded.
inline void add_cudnn_kernels(KernelTable& table) {
  add_cudnn_conv(table);
  add_cudnn_attention(table);
}

inline cudnnDataType_t cudnn_type(DType dtype) {
  if (dtype == DType::kBF16) return CUDNN_DATA_BFLOAT16;
  return dtype == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

}  // namespace trainscope::cuda
