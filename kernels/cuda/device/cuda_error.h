// Errors of the CUDA runtime as statuses of a device.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// "cudaMalloc of 4096 bytes: error 2 (cudaErrorMemoryAllocation), out of memory".
std::string error_text(cudaError_t error, std::string_view what);

// Done for cudaSuccess, kOutOfMemory where there is no memory, else kFailed. `what` says which call
// failed. Also forgets an error that the runtime kept for the next call.
DeviceStatus status_of(cudaError_t error, std::string_view what);
// The same of a call for a stream, which the message names: "cudaStreamSynchronize on the compute
// stream: error ...".
DeviceStatus status_of(cudaError_t error, std::string_view what, Stream stream);

}  // namespace trainscope::cuda
