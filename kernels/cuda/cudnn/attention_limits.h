// Attention that cuDNN takes, but not as this project promises it: with gradients that can be NaN,
// or with sums in no fixed order. Own kernels compute it.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/cuda/cudnn/attention_graphs.h"

namespace trainscope::cuda {

// The library and the device that would compute.
struct CudnnPlace {
  std::size_t version = 0;   // 91900 of 9.19.0
  int major_capability = 0;  // of the device: 9 of 9.0
};
// The library that is loaded, and the thread's current device.
CudnnPlace current_place();

// Why attention of this shape, or its gradient, is not given to the library there, in static
// storage; empty: it may be.
std::string_view why_not_attention(const AttentionShape& shape, const CudnnPlace& place);
std::string_view why_not_attention_grad(const AttentionShape& shape, const CudnnPlace& place);

}  // namespace trainscope::cuda
