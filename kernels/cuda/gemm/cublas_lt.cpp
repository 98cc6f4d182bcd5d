// cuBLASLt by dlopen: whoever loads this library has found the file, and opened it, before.
#include "kernels/cuda/gemm/cublas_lt.h"

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "kernels/cuda/support/library.h"

namespace trainscope::cuda {
namespace {

constexpr const char* kFile = "libcublasLt.so.13";
constexpr std::size_t kMostDevices = 64;

CublasLt& table() {
  static CublasLt functions;
  return functions;
}

void find_all(Library& library, CublasLt& lt) {
  library.find("cublasLtCreate", lt.create);
  library.find("cublasLtGetVersion", lt.version);
  library.find("cublasLtGetStatusName", lt.status_name);
  library.find("cublasLtMatmul", lt.matmul);
  library.find("cublasLtMatmulDescCreate", lt.desc_create);
  library.find("cublasLtMatmulDescDestroy", lt.desc_destroy);
  library.find("cublasLtMatmulDescSetAttribute", lt.desc_set);
  library.find("cublasLtMatrixLayoutCreate", lt.layout_create);
  library.find("cublasLtMatrixLayoutDestroy", lt.layout_destroy);
  library.find("cublasLtMatrixLayoutSetAttribute", lt.layout_set);
  library.find("cublasLtMatmulPreferenceCreate", lt.preference_create);
  library.find("cublasLtMatmulPreferenceDestroy", lt.preference_destroy);
  library.find("cublasLtMatmulPreferenceSetAttribute", lt.preference_set);
  library.find("cublasLtMatmulAlgoGetHeuristic", lt.heuristic);
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
  Library library("cuBLASLt", kFile);
  CublasLt found;
  find_all(library, found);
  if (!library.fault().empty()) return library.fault();
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
