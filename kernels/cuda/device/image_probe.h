// Whether this library holds code for the current device.
#pragma once

#include <cuda_runtime.h>

namespace trainscope::cuda {

// cudaErrorNoKernelImageForDevice where it does not.
cudaError_t probe_image();

}  // namespace trainscope::cuda
