// Names and texts of CUDA's errors.
#include "kernels/cuda/device/cuda_error.h"

#include "kernels/cuda/support/stream_name.h"

namespace trainscope::cuda {

std::string error_text(cudaError_t error, std::string_view what) {
  return std::string(what) + ": error " + std::to_string(static_cast<int>(error)) + " (" +
         cudaGetErrorName(error) + "), " + cudaGetErrorString(error);
}

DeviceStatus status_of(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  const auto code = error == cudaErrorMemoryAllocation ? DeviceStatus::Code::kOutOfMemory
                                                       : DeviceStatus::Code::kFailed;
  return {.code = code, .message = error_text(error, what)};
}

DeviceStatus status_of(cudaError_t error, std::string_view what, Stream stream) {
  if (error == cudaSuccess) return {};
  return status_of(error, std::string(what) + " on " + std::string(stream_name(stream)));
}

}  // namespace trainscope::cuda
