// A matmul as cublasLt takes it: its description, the algorithms that the library's
// heuristics offer for it, and its run.
#pragma once

#include <cublasLt.h>

#include "bench/gpu/support.cuh"

namespace trainscope::bench {

inline void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::printf("{\"kind\": \"error\", \"what\": \"%s\", \"error\": \"cublasLt: %s\"}\n", what,
              cublasLtGetStatusString(status));
  std::exit(1);
}

// Element type and arithmetic of a matmul; the accumulators are f32 in each.
struct Precision {
  const char* name = "";
  cudaDataType_t type = CUDA_R_32F;  // of A, B and D
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

inline constexpr Precision kPrecisions[] = {
    {"f32", CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F},
};

// D[m, n] = op(A) op(B) with columns that lie in a row, as in the library: op(A) is m x k, op(B)
// k x n. Row-major y[rows, out] = x[rows, in] w[in, out] is m = out, n = rows, k = in, both plain.
struct Matmul {
  long long m = 0;
  long long n = 0;
  long long k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  int batch = 1;  // matrices that lie one after another
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

// An algorithm that the library offers. The type is named: nvcc 13.0 ends with an internal error on
// a vector of the library's own, which is not.
struct Offer {
  cublasLtMatmulHeuristicResult_t found = {};
};
static_assert(sizeof(Offer) == sizeof(cublasLtMatmulHeuristicResult_t));

// The library's objects for a matmul.
class Plan {
 public:
  Plan(const Matmul& matmul, const Precision& precision) {
    check(cublasLtMatmulDescCreate(&description_, precision.compute, CUDA_R_32F), "description");
    set(CUBLASLT_MATMUL_DESC_TRANSA, matmul.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, matmul.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, matmul.epilogue);
    a_ = layout(precision, matmul.m, matmul.k, matmul.transpose_a, matmul.batch);
    b_ = layout(precision, matmul.k, matmul.n, matmul.transpose_b, matmul.batch);
    d_ = layout(precision, matmul.m, matmul.n, false, matmul.batch);
  }
  ~Plan() {
    cublasLtMatrixLayoutDestroy(a_);
    cublasLtMatrixLayoutDestroy(b_);
    cublasLtMatrixLayoutDestroy(d_);
    cublasLtMatmulDescDestroy(description_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(description_, attribute, &value, sizeof value),
          "an attribute of a matmul");
  }

  // Best first; none where the library has no kernel for the matmul.
  std::vector<Offer> algorithms(cublasLtHandle_t library, int most,
                                std::size_t workspace_bytes) const {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "a preference");
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof workspace_bytes),
          "the workspace of a preference");
    std::vector<Offer> offers(static_cast<std::size_t>(most));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        library, description_, a_, b_, d_, d_, preference, most, &offers[0].found, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    offers.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
    std::erase_if(offers, [](const Offer& o) { return o.found.state != CUBLAS_STATUS_SUCCESS; });
    return offers;
  }

  cublasStatus_t run(cublasLtHandle_t library, const Offer& offer, const void* a, const void* b,
                     void* d, void* workspace, std::size_t workspace_bytes) const {
    const float one = 1;
    const float zero = 0;
    return cublasLtMatmul(library, description_, &one, a, a_, b, b_, &zero, d, d_, d, d_,
                          &offer.found.algo, workspace, workspace_bytes, nullptr);
  }

 private:
  static cublasLtMatrixLayout_t layout(const Precision& precision, long long rows,
                                       long long columns, bool transposed, int batch) {
    const auto stored_rows = static_cast<std::uint64_t>(transposed ? columns : rows);
    const auto stored_columns = static_cast<std::uint64_t>(transposed ? rows : columns);
    cublasLtMatrixLayout_t made = nullptr;
    check(cublasLtMatrixLayoutCreate(&made, precision.type, stored_rows, stored_columns,
                                     static_cast<std::int64_t>(stored_rows)),
          "a layout");
    const std::int64_t stride = rows * columns;
    check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                           sizeof batch),
          "a batch");
    check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &stride, sizeof stride),
          "a batch's stride");
    return made;
  }

  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t d_ = nullptr;
};

template <class T>
T configured(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t name) {
  T value = {};
  std::size_t written = 0;
  cublasLtMatmulAlgoConfigGetAttribute(&algorithm, name, &value, sizeof value, &written);
  return value;
}

// What tells an algorithm from others: kernel, tile, stages, parts of k and how they are summed.
inline std::string described(const Offer& offer) {
  const cublasLtMatmulAlgo_t& algorithm = offer.found.algo;
  const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t name) {
    return configured<std::int32_t>(algorithm, name);
  };
  char text[256];
  std::snprintf(text, sizeof text,
                "{\"id\": %d, \"tile\": %d, \"stages\": %d, \"split_k\": %d, \"reduction\": %d, "
                "\"swizzle\": %d, \"custom\": %d, \"inner\": %d, \"cluster\": %d, "
                "\"workspace\": %zu, \"waves\": %.4g",
                number(CUBLASLT_ALGO_CONFIG_ID), number(CUBLASLT_ALGO_CONFIG_TILE_ID),
                number(CUBLASLT_ALGO_CONFIG_STAGES_ID), number(CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                number(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
                number(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
                number(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
                configured<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
                configured<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
                offer.found.workspaceSize, static_cast<double>(offer.found.wavesCount));
  return text;  // the caller closes the object
}

}  // namespace trainscope::bench
