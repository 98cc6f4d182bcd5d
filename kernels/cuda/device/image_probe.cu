// A kernel that does nothing, to ask for its code.
#include "kernels/cuda/device/image_probe.h"

namespace trainscope::cuda {
namespace {

__global__ void probe() {}

}  // namespace

cudaError_t probe_image() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(probe));
}

}  // namespace trainscope::cuda
