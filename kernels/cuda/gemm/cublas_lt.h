// NVIDIA's cuBLASLt: its functions in one table, found when the back end starts.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <string>

namespace trainscope::cuda {

// Each function has the name that the library has it under.
struct CublasLt {
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtGetVersion) version = nullptr;
  decltype(&::cublasLtGetStatusName) status_name = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
  decltype(&::cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;

  // "13.0.2"
  std::string version_text() const;
  std::string error_text(cublasStatus_t status, const std::string& what) const;
};

// Loads the library. Empty when it did, else why not.
std::string load_cublas_lt();
// The table, which is loaded: kernels that use it are in a device's list only then.
const CublasLt& cublas_lt();
// The library's handle for the thread's current device, made when it is first asked for; null, with
// the reason, where the library gives none.
cublasLtHandle_t cublas_lt_handle(std::string* why_not);

}  // namespace trainscope::cuda
