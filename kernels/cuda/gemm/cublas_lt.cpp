// cuBLASLt by dlopen: whoever loads this library has found the file, and opened it, before.
#include "kernels/cuda/gemm/cublas_lt.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <array>
#include <cstdint>

namespace trainscope::cuda {
namespace {

constexpr const char* kFile = "libcublasLt.so.13";
constexpr std::size_t kMostDevices = 64;

CublasLt& table() {
  static CublasLt functions;
  return functions;
}

template <typename F>
bool find(void* library, const char* name, F& function, std::string& missing) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
  return function != nullptr;
}

std::string find_all(void* library, CublasLt& lt) {
  std::string missing;
  find(library, "cublasLtCreate", lt.create, missing);
  find(library, "cublasLtGetVersion", lt.version, missing);
  find(library, "cublasLtGetStatusName", lt.status_name, missing);
  find(library, "cublasLtMatmul", lt.matmul, missing);
  find(library, "cublasLtMatmulDescCreate", lt.desc_create, missing);
  find(library, "cublasLtMatmulDescDestroy", lt.desc_destroy, missing);
  find(library, "cublasLtMatmulDescSetAttribute", lt.desc_set, missing);
  find(library, "cublasLtMatrixLayoutCreate", lt.layout_create, missing);
  find(library, "cublasLtMatrixLayoutDestroy", lt.layout_destroy, missing);
  find(library, "cublasLtMatrixLayoutSetAttribute", lt.layout_set, missing);
  find(library, "cublasLtMatmulPreferenceCreate", lt.preference_create, missing);
  find(library, "cublasLtMatmulPreferenceDestroy", lt.preference_destroy, missing);
  find(library, "cublasLtMatmulPreferenceSetAttribute", lt.preference_set, missing);
  find(library, "cublasLtMatmulAlgoGetHeuristic", lt.heuristic, missing);
  return missing;
}

}  // namespace

std::string CublasLt::version_text() const {
  const std::size_t number = version();  // 130002 of 13.0.2
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

std::string CublasLt::error_text(cublasStatus_t status, const std::string& what) const {
  return what + ": status " + std::to_string(static_cast<int>(status)) + " (" +
         status_name(status) + ")";
}

std::string load_cublas_lt() {
  if (table().create != nullptr) return {};
  void* library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return std::string("cuBLASLt cannot be loaded: ") + (why == nullptr ? kFile : why);
  }
  CublasLt found;
  const std::string missing = find_all(library, found);
  if (!missing.empty()) return std::string(kFile) + " lacks " + missing;
  table() = found;
  return {};
}

const CublasLt& cublas_lt() { return table(); }

cublasLtHandle_t cublas_lt_handle(std::string* why_not) {
  static std::array<cublasLtHandle_t, kMostDevices> handles = {};
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= static_cast<int>(kMostDevices)) {
    *why_not = "CUDA has no current device";
    return nullptr;
  }
  cublasLtHandle_t& handle = handles[static_cast<std::size_t>(device)];
  if (handle != nullptr) return handle;
  const cublasStatus_t status = cublas_lt().create(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    handle = nullptr;
    *why_not = cublas_lt().error_text(status, "cublasLtCreate");
  }
  return handle;
}

}  // namespace trainscope::cuda
