// Loads one of the two libraries, and descriptions of devices.
#include "tests/cuda/cudnn/library.h"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/cuda/cudnn/cudnn.h"
#include "tests/cuda/simulated/kernel_runner.h"

// No kernel runs here.
extern "C" const trainscope::simulated::RunnableKernel* trainscope_simulated_kernel(
    const char* /*name*/) {
  return nullptr;
}

namespace trainscope::test {

std::string load_simulated_cudnn() { return cuda::load_cudnn(TRAINSCOPE_SIMULATED_CUDNN); }

bool has_real_cudnn() {
  static const bool is_there = [] {
    const bool found = std::filesystem::exists(TRAINSCOPE_REAL_CUDNN);
    if (!found) std::puts("skipped: there is no libcudnn.so.9 of NVIDIA");
    return found;
  }();
  return is_there;
}

std::string load_real_cudnn() {
  static const void* const driver = dlopen(TRAINSCOPE_CUDA_DRIVER_STUB, RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) return "there is no stub of libcuda.so.1: " TRAINSCOPE_CUDA_DRIVER_STUB;
  return cuda::load_cudnn(TRAINSCOPE_REAL_CUDNN);
}

cuda::CudnnTarget described_device(std::string_view name) {
  std::ifstream file(std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/cuda/cudnn" /
                     (std::string(name) + ".json"));
  std::ostringstream text;
  text << file.rdbuf();
  return {.handle = nullptr, .description = text.str()};
}

}  // namespace trainscope::test
