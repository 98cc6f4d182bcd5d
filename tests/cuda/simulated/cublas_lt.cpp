// cuBLASLt, simulated: computes what its descriptors say, in double for f64 and else in float. It
// offers up to three algorithms: number i adds the terms of a sum in i + 1 parts, so that each has
// bits of its own. TRAINSCOPE_SIMULATED_FASTEST=I: the others take 10 s longer by the clock of
// events.
#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/api/low_precision.h"
#include "tests/cuda/simulated/runtime.h"

namespace trainscope::simulated {
namespace {

// What a heuristic's result asks for, and what its matmul then writes: nobody else may use it.
constexpr std::size_t kWorkspaceBytes = 4096;

struct Desc {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t op[2] = {CUBLAS_OP_N, CUBLAS_OP_N};
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Layout {
  cudaDataType_t type = CUDA_R_32F;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t leading = 0;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};
struct Preference {
  std::uint64_t most_workspace = 0;
  std::uint32_t alignment = 256;  // bytes of all four, as the library assumes where nobody says
};
// The first words of an algorithm.
struct Algorithm {
  std::uint64_t alignment;  // bytes
  std::uint64_t workspace;  // bytes
  std::uint64_t number;     // from 0
};
constexpr std::uint64_t kAlgorithms = 3;

// What the algorithm takes longer than the fastest one.
double seconds_more_of(const Algorithm& algorithm) {
  const char* fastest = std::getenv("TRAINSCOPE_SIMULATED_FASTEST");
  const bool is_slow =
      fastest != nullptr && std::strtoull(fastest, nullptr, 10) != algorithm.number;
  return is_slow ? 10.0 : 0.0;
}

template <typename T>
T& of(void* object) {
  return *static_cast<T*>(object);
}
template <typename T>
const T& of(const void* object) {
  return *static_cast<const T*>(object);
}

template <typename T>
cublasStatus_t set(T& attribute, const void* value, std::size_t bytes) {
  if (bytes != sizeof attribute) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&attribute, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t bytes_of(cudaDataType_t type) {
  if (type == CUDA_R_64F) return 8;
  return type == CUDA_R_32F ? 4 : 2;
}

double element(const void* data, cudaDataType_t type, std::int64_t at) {
  switch (type) {
    case CUDA_R_64F:
      return static_cast<const double*>(data)[at];
    case CUDA_R_16BF:
      return static_cast<float>(static_cast<const BFloat16*>(data)[at]);
    case CUDA_R_16F:
      return static_cast<float>(static_cast<const Float16*>(data)[at]);
    default:
      return static_cast<const float*>(data)[at];
  }
}

void store(void* data, cudaDataType_t type, std::int64_t at, double value) {
  switch (type) {
    case CUDA_R_64F:
      static_cast<double*>(data)[at] = value;
      return;
    case CUDA_R_16BF:
      static_cast<BFloat16*>(data)[at] = static_cast<BFloat16>(static_cast<float>(value));
      return;
    case CUDA_R_16F:
      static_cast<Float16*>(data)[at] = static_cast<Float16>(static_cast<float>(value));
      return;
    default:
      static_cast<float*>(data)[at] = static_cast<float>(value);
  }
}

// To 10 bits behind the point, the nearest, of two the even one; f32 keeps 23.
double rounded_to_tf32(double value) {
  constexpr std::uint32_t kDropped = 13;
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t half = (1U << (kDropped - 1)) - 1 + (bits >> kDropped & 1U);
  return std::bit_cast<float>((bits + half) >> kDropped << kDropped);
}

// Dense column-major [rows, columns] of op(matrix), as factors of the products.
template <typename Sum>
std::vector<Sum> factors(const void* data, const Layout& layout, cublasOperation_t op,
                         cublasComputeType_t compute, std::int64_t offset) {
  const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const auto rows = static_cast<std::int64_t>(op == CUBLAS_OP_N ? layout.rows : layout.columns);
  const auto columns = static_cast<std::int64_t>(op == CUBLAS_OP_N ? layout.columns : layout.rows);
  std::vector<Sum> wide(static_cast<std::size_t>(rows * columns));
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t at = op == CUBLAS_OP_N ? c * layout.leading + r : r * layout.leading + c;
      const double value = element(data, layout.type, offset + at);
      wide[static_cast<std::size_t>(c * rows + r)] =
          static_cast<Sum>(tf32 ? rounded_to_tf32(value) : value);
    }
  }
  return wide;
}

struct Matmul {
  Desc desc;
  Layout a, b, c, d;
  const void* a_data = nullptr;
  const void* b_data = nullptr;
  const void* c_data = nullptr;
  void* d_data = nullptr;
  double alpha = 1.0;
  double beta = 0.0;
  std::int64_t parts = 1;  // of each sum
};

// D [m, n] = alpha op(A) [m, k] op(B) [k, n] + beta C + bias [m], column-major.
template <typename Sum>
void compute(const Matmul& matmul) {
  const auto m = static_cast<std::int64_t>(matmul.d.rows);
  const auto n = static_cast<std::int64_t>(matmul.d.columns);
  const auto k = static_cast<std::int64_t>(matmul.desc.op[0] == CUBLAS_OP_N ? matmul.a.columns
                                                                            : matmul.a.rows);
  std::vector<Sum> column(static_cast<std::size_t>(m));
  std::vector<Sum> part(static_cast<std::size_t>(m));
  for (std::int32_t batch = 0; batch < matmul.d.batch; ++batch) {
    const std::vector<Sum> a = factors<Sum>(matmul.a_data, matmul.a, matmul.desc.op[0],
                                            matmul.desc.compute, batch * matmul.a.stride);
    const std::vector<Sum> b = factors<Sum>(matmul.b_data, matmul.b, matmul.desc.op[1],
                                            matmul.desc.compute, batch * matmul.b.stride);
    for (std::int64_t j = 0; j < n; ++j) {
      std::ranges::fill(column, Sum{0});
      for (std::int64_t p = 0; p < matmul.parts; ++p) {
        std::ranges::fill(part, Sum{0});
        for (std::int64_t i = k * p / matmul.parts; i < k * (p + 1) / matmul.parts; ++i) {
          const Sum factor = b[static_cast<std::size_t>(j * k + i)];
          const Sum* from = a.data() + i * m;
          for (std::int64_t r = 0; r < m; ++r)
            part[static_cast<std::size_t>(r)] += factor * from[r];
        }
        std::ranges::transform(column, part, column.begin(), std::plus());
      }
      for (std::int64_t r = 0; r < m; ++r) {
        double value = matmul.alpha * static_cast<double>(column[static_cast<std::size_t>(r)]);
        if (matmul.beta != 0.0) {
          value += matmul.beta * element(matmul.c_data, matmul.c.type,
                                         batch * matmul.c.stride + j * matmul.c.leading + r);
        }
        if (matmul.desc.bias != nullptr) value += element(matmul.desc.bias, matmul.d.type, r);
        store(matmul.d_data, matmul.d.type, batch * matmul.d.stride + j * matmul.d.leading + r,
              value);
      }
    }
  }
}

// Whether the descriptors fit each other, as the library asks.
bool fits(const Desc& desc, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const bool ta = desc.op[0] != CUBLAS_OP_N;
  const bool tb = desc.op[1] != CUBLAS_OP_N;
  const bool sizes = (ta ? a.columns : a.rows) == d.rows &&
                     (tb ? b.rows : b.columns) == d.columns &&
                     (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) && c.rows == d.rows &&
                     c.columns == d.columns;
  const bool batches = a.batch == d.batch && b.batch == d.batch && c.batch == d.batch;
  const bool leading = a.leading >= static_cast<std::int64_t>(a.rows) &&
                       b.leading >= static_cast<std::int64_t>(b.rows) &&
                       d.leading >= static_cast<std::int64_t>(d.rows);
  const bool is_double = d.type == CUDA_R_64F;
  const bool types = a.type == b.type && c.type == d.type &&
                     (desc.compute == CUBLAS_COMPUTE_64F) == is_double &&
                     (desc.compute != CUBLAS_COMPUTE_32F_FAST_TF32 || a.type == CUDA_R_32F) &&
                     (a.type == d.type || (bytes_of(a.type) == 2 && d.type == CUDA_R_32F));
  return sizes && batches && leading && types;
}

bool lies_at(const void* address, std::uint64_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

}  // namespace
}  // namespace trainscope::simulated

using namespace trainscope::simulated;  // NOLINT: what follows is C's

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int object = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&object);
  return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() { return 130000; }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "a simulated status";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc{.compute = compute, .scale = scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete &of<Desc>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t object,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  auto& desc = of<Desc>(object);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(desc.op[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(desc.op[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(desc.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(desc.bias, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{.type = type, .rows = rows, .columns = columns, .leading = leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &of<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t object,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  auto& layout = of<Layout>(object);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return set(layout.batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set(layout.stride, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &of<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t object,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  auto& preference = of<Preference>(object);
  std::uint32_t ignored = 0;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference.most_workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(ignored, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: {
      const cublasStatus_t status = set(ignored, value, bytes);
      preference.alignment = std::min(preference.alignment, ignored);
      return status;
    }
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t object, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  const auto& preference = of<Preference>(object);
  *found = 0;
  if (requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (!fits(of<Desc>(desc), of<Layout>(a), of<Layout>(b), of<Layout>(c), of<Layout>(d))) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  for (std::uint64_t i = 0;
       i < std::min<std::uint64_t>(static_cast<std::uint64_t>(requested), kAlgorithms); ++i) {
    results[i] = {};
    results[i].state = CUBLAS_STATUS_SUCCESS;
    results[i].workspaceSize = std::min<std::size_t>(preference.most_workspace, kWorkspaceBytes);
    const Algorithm algorithm{
        .alignment = preference.alignment, .workspace = results[i].workspaceSize, .number = i};
    std::memcpy(&results[i].algo, &algorithm, sizeof algorithm);
    ++*found;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a_data, cublasLtMatrixLayout_t a, const void* b_data,
                              cublasLtMatrixLayout_t b, const void* beta, const void* c_data,
                              cublasLtMatrixLayout_t c, void* d_data, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algo, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (runtime_refuses("cublasLtMatmul")) return CUBLAS_STATUS_EXECUTION_FAILED;
  Matmul matmul{.desc = of<Desc>(desc),
                .a = of<Layout>(a),
                .b = of<Layout>(b),
                .c = of<Layout>(c),
                .d = of<Layout>(d),
                .a_data = a_data,
                .b_data = b_data,
                .c_data = c_data,
                .d_data = d_data};
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  const bool well =
      fits(matmul.desc, matmul.a, matmul.b, matmul.c, matmul.d) && algorithm.alignment > 0 &&
      lies_at(a_data, algorithm.alignment) && lies_at(b_data, algorithm.alignment) &&
      lies_at(c_data, algorithm.alignment) && lies_at(d_data, algorithm.alignment) &&
      workspace_bytes >= algorithm.workspace && (algorithm.workspace == 0 || workspace != nullptr);
  if (!well) return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_double = matmul.desc.scale == CUDA_R_64F;
  matmul.alpha = is_double ? of<double>(alpha) : of<float>(alpha);
  matmul.beta = is_double ? of<double>(beta) : of<float>(beta);
  if (matmul.desc.epilogue != CUBLASLT_EPILOGUE_BIAS) matmul.desc.bias = nullptr;
  ++runtime().counts.matmuls;
  matmul.parts = static_cast<std::int64_t>(algorithm.number) + 1;
  runtime().add(stream, [=, bytes = algorithm.workspace, more = seconds_more_of(algorithm)] {
    std::memset(workspace, 0xFF, bytes);
    runtime().streams.pass(more);
    if (is_double) {
      compute<double>(matmul);
    } else {
      compute<float>(matmul);
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
