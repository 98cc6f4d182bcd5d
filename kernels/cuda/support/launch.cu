// Queues kernels and copies on a stream of the CUDA runtime.
#include "kernels/cuda/support/launch.h"

#ifdef TRAINSCOPE_EMULATE

#include <cstring>

namespace trainscope::cuda {

void copy_bytes(const CallContext& /*call*/, void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace trainscope::cuda

#else

#include "kernels/cuda/support/stream_name.h"

namespace trainscope::cuda {
namespace {

constexpr std::size_t kSharedWithoutAsking = 48 * 1024;  // bytes a block may have by default

std::string text_of(const dim3& size) {
  return std::to_string(size.x) + "x" + std::to_string(size.y) + "x" + std::to_string(size.z);
}

cudaError_t queue(const CallContext& call, const Grid& grid, const void* kernel, void** arguments) {
  if (grid.shared_bytes > kSharedWithoutAsking) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(grid.shared_bytes));
    if (error != cudaSuccess) return error;
  }
  return cudaLaunchKernel(kernel, grid.blocks, grid.threads, arguments, grid.shared_bytes,
                          static_cast<cudaStream_t>(call.native_stream));
}

// "CUDA does not `what` on the compute stream: out of memory". The runtime forgets the error, which
// it would give to the next call that asks.
void report_refusal(const CallContext& call, cudaError_t error, const std::string& what) {
  (void)cudaGetLastError();
  call.fail(DeviceStatus::Code::kFailed, "CUDA does not " + what + " on " +
                                             std::string(stream_name(call.stream)) + ": " +
                                             cudaGetErrorString(error));
}

}  // namespace

void launch_kernel(const CallContext& call, const Grid& grid, const void* kernel,
                   void** arguments) {
  const cudaError_t error = queue(call, grid, kernel, arguments);
  if (error == cudaSuccess) return;
  const char* name = nullptr;
  if (cudaFuncGetName(&name, kernel) != cudaSuccess) name = "a kernel";
  report_refusal(call, error,
                 std::string("launch ") + name + " (blocks " + text_of(grid.blocks) + ", threads " +
                     text_of(grid.threads) + ", shared bytes " + std::to_string(grid.shared_bytes) +
                     ")");
}

void copy_bytes(const CallContext& call, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault,
                                            static_cast<cudaStream_t>(call.native_stream));
  if (error == cudaSuccess) return;
  report_refusal(call, error, "copy " + std::to_string(bytes) + " bytes");
}

}  // namespace trainscope::cuda

#endif
