// Row-major matmuls by a column-major library: D^T = op(B)^T op(A)^T, so that its first matrix is
// our B.
#include "kernels/cuda/gemm/lt_matmul.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/cuda/gemm/cublas_lt.h"
#include "kernels/cuda/gemm/lt_timing.h"
#include "kernels/cuda/support/stream_name.h"

namespace trainscope::cuda {
namespace {

constexpr std::uint64_t kMostWorkspaceBytes = std::uint64_t{32} << 20;
constexpr std::uint32_t kWideAlignment = 16;  // bytes
constexpr int kMostOffers = 8;                // that are timed

bool is_double(const LtProblem& problem) { return problem.dtype == DType::kF64; }

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return CUDA_R_64F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type_of(const LtProblem& problem) {
  if (is_double(problem)) return CUBLAS_COMPUTE_64F;
  return problem.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// Sets attributes one after the other until one fails.
template <auto kSetter, typename Object>
class Attributes {
 public:
  explicit Attributes(Object object) : object_(object) {}
  template <typename Attribute, typename Value>
  Attributes& set(Attribute attribute, const Value& value) {
    if (status_ == CUBLAS_STATUS_SUCCESS) {
      status_ = (cublas_lt().*kSetter)(object_, attribute, &value, sizeof(value));
    }
    return *this;
  }
  cublasStatus_t status() const { return status_; }

 private:
  Object object_;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
};
using DescAttributes = Attributes<&CublasLt::desc_set, cublasLtMatmulDesc_t>;
using LayoutAttributes = Attributes<&CublasLt::layout_set, cublasLtMatrixLayout_t>;
using PreferenceAttributes = Attributes<&CublasLt::preference_set, cublasLtMatmulPreference_t>;

}  // namespace

std::unique_ptr<LtMatmul> LtMatmul::make(const LtProblem& problem, std::string* why_not) {
  cublasLtHandle_t handle = cublas_lt_handle(why_not);
  if (handle == nullptr) return nullptr;
  std::unique_ptr<LtMatmul> matmul(new LtMatmul(problem));
  cublasStatus_t status = matmul->describe();
  for (const Alignment alignment : {kSixteenBytes, kElements}) {
    if (status == CUBLAS_STATUS_SUCCESS) status = matmul->choose(handle, alignment);
  }
  if (status == CUBLAS_STATUS_SUCCESS) return matmul;
  *why_not = cublas_lt().error_text(status, matmul->text());
  return nullptr;
}

LtMatmul::~LtMatmul() {
  const CublasLt& lt = cublas_lt();
  for (cublasLtMatrixLayout_t layout : {a_, b_, d_}) {
    if (layout != nullptr) (void)lt.layout_destroy(layout);
  }
  if (desc_ != nullptr) (void)lt.desc_destroy(desc_);
}

cublasStatus_t LtMatmul::describe() {
  const cublasStatus_t status = cublas_lt().desc_create(
      &desc_, compute_type_of(problem_), is_double(problem_) ? CUDA_R_64F : CUDA_R_32F);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const cublasOperation_t of_first = problem_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_second = problem_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasLtEpilogue_t epilogue =
      problem_.addend == LtAddend::kRow ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  DescAttributes attributes(desc_);
  attributes.set(CUBLASLT_MATMUL_DESC_TRANSA, of_first)
      .set(CUBLASLT_MATMUL_DESC_TRANSB, of_second)
      .set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (attributes.status() != CUBLAS_STATUS_SUCCESS) return attributes.status();
  // Rows of ours, as they are stored, are columns of the library's.
  const auto [m, n, k] = std::array{problem_.m, problem_.n, problem_.k};
  const bool ta = problem_.transpose_a;
  const bool tb = problem_.transpose_b;
  cublasStatus_t described =
      describe_matrix(&b_, problem_.dtype, tb ? k : n, tb ? n : k, problem_.b_stride);
  if (described != CUBLAS_STATUS_SUCCESS) return described;
  described = describe_matrix(&a_, problem_.dtype, ta ? m : k, ta ? k : m, problem_.a_stride);
  if (described != CUBLAS_STATUS_SUCCESS) return described;
  return describe_matrix(&d_, problem_.result, n, m, m * n);
}

cublasStatus_t LtMatmul::describe_matrix(cublasLtMatrixLayout_t* layout, DType dtype,
                                         std::int64_t rows, std::int64_t columns,
                                         std::int64_t stride) const {
  const cublasStatus_t status =
      cublas_lt().layout_create(layout, type_of(dtype), static_cast<std::uint64_t>(rows),
                                static_cast<std::uint64_t>(columns), rows);
  if (status != CUBLAS_STATUS_SUCCESS || problem_.batch == 1) return status;
  return LayoutAttributes(*layout)
      .set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(problem_.batch))
      .set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride)
      .status();
}

cublasStatus_t LtMatmul::choose(cublasLtHandle_t handle, Alignment alignment) {
  const CublasLt& lt = cublas_lt();
  cublasLtMatmulPreference_t preference = nullptr;
  cublasStatus_t status = lt.preference_create(&preference);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto bytes_of = [alignment](DType dtype) {
    return alignment == kSixteenBytes ? kWideAlignment : static_cast<std::uint32_t>(size_of(dtype));
  };
  const std::uint32_t in_order = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  PreferenceAttributes attributes(preference);
  attributes.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes)
      .set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_order)
      .set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes_of(problem_.dtype))
      .set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes_of(problem_.dtype))
      .set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes_of(problem_.result))
      .set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes_of(problem_.result));
  status = attributes.status();
  LtChoices* choices = alignment == kSixteenBytes && steps_well() ? lt_choices() : nullptr;
  std::array<cublasLtMatmulHeuristicResult_t, kMostOffers> results = {};
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt.heuristic(handle, desc_, b_, a_, d_, d_, preference,
                          choices == nullptr ? 1 : kMostOffers, results.data(), &found);
  }
  (void)lt.preference_destroy(preference);
  if (status == CUBLAS_STATUS_SUCCESS && found == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
  if (status == CUBLAS_STATUS_SUCCESS) status = results[0].state;
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const Offers offers(results.data(), static_cast<std::size_t>(found));
  const auto& taken = offers[choices == nullptr ? 0 : choose_by_time(handle, *choices, offers)];
  algorithms_[alignment] = taken.algo;
  workspace_bytes_ = std::max(workspace_bytes_, taken.workspaceSize);
  return status;
}

// What is kept is used only where the library offers it: of what a file holds nothing else is run.
std::size_t LtMatmul::choose_by_time(cublasLtHandle_t handle, LtChoices& choices,
                                     Offers offers) const {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const auto place_of = [offers](const cublasLtMatmulAlgo_t& algorithm) {
    const auto is_it = [&algorithm](const cublasLtMatmulHeuristicResult_t& offer) {
      return std::memcmp(&offer.algo, &algorithm, sizeof algorithm) == 0;
    };
    const auto found = std::ranges::find_if(offers, is_it);
    return found == offers.end() ? std::nullopt
                                 : std::optional(static_cast<std::size_t>(found - offers.begin()));
  };
  const std::string matmul = key();
  const std::optional<cublasLtMatmulAlgo_t> known = choices.find(matmul);
  if (const auto place = known ? place_of(*known) : std::nullopt) return *place;
  const std::size_t fastest = time(handle, offers);
  if (known) {
    choices.replace(matmul, offers[fastest].algo);
    return fastest;
  }
  return place_of(choices.keep(matmul, offers[fastest].algo)).value_or(fastest);
}

std::size_t LtMatmul::time(cublasLtHandle_t handle, Offers offers) const {
  if (offers.size() < 2) return 0;
  const auto bytes_of = [this](std::int64_t stride, std::int64_t elements, DType dtype) {
    return static_cast<std::size_t>((problem_.batch - 1) * stride + elements) * size_of(dtype);
  };
  const auto [m, n, k] = std::array{problem_.m, problem_.n, problem_.k};
  const bool adds_row = problem_.addend == LtAddend::kRow;
  const LtTimedMatmul timed{.handle = handle,
                            .desc = desc_,
                            .a = b_,
                            .b = a_,
                            .d = d_,
                            .a_bytes = bytes_of(problem_.b_stride, k * n, problem_.dtype),
                            .b_bytes = bytes_of(problem_.a_stride, m * k, problem_.dtype),
                            .d_bytes = bytes_of(m * n, m * n, problem_.result),
                            .bias_bytes = adds_row ? bytes_of(0, n, problem_.result) : 0,
                            .beta = problem_.addend == LtAddend::kMatrix ? 0.5 : 0.0,
                            .dtype = problem_.dtype,
                            .result = problem_.result};
  const std::vector<double> seconds = lt_seconds(timed, offers);
  return seconds.empty() ? 0 : fastest_of(seconds);
}

bool LtMatmul::is_aligned(const LtOperands& operands) const {
  const auto lies_well = [](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % kWideAlignment == 0;
  };
  return lies_well(operands.a) && lies_well(operands.b) && lies_well(operands.addend) &&
         lies_well(operands.d) && steps_well();
}

bool LtMatmul::steps_well() const {
  const auto is_whole = [](std::int64_t stride, DType dtype) {
    return stride * static_cast<std::int64_t>(size_of(dtype)) % kWideAlignment == 0;
  };
  return problem_.batch == 1 || (is_whole(problem_.a_stride, problem_.dtype) &&
                                 is_whole(problem_.b_stride, problem_.dtype) &&
                                 is_whole(problem_.m * problem_.n, problem_.result));
}

std::string LtMatmul::text() const {
  const auto side = [](std::int64_t rows, std::int64_t columns, bool transposed) {
    return "[" + std::to_string(rows) + "," + std::to_string(columns) + "]" +
           (transposed ? " (transposed)" : "");
  };
  return "cublasLtMatmul of " + std::to_string(problem_.batch) + " x " +
         side(problem_.m, problem_.k, problem_.transpose_a) + " " +
         side(problem_.k, problem_.n, problem_.transpose_b) + (problem_.tf32 ? " in TF32" : "");
}

// All that the library's choice depends on.
std::string LtMatmul::key() const {
  int device = 0;
  cudaDeviceProp properties = {};
  (void)cudaGetDevice(&device);
  (void)cudaGetDeviceProperties(&properties, device);
  constexpr std::array kAddends = {"", " + matrix", " + row"};  // by LtAddend
  return std::string(properties.name) + ", cuBLASLt " + cublas_lt().version_text() + ": " + text() +
         " of " + std::string(name_of(problem_.dtype)) + ", strides " +
         std::to_string(problem_.a_stride) + " and " + std::to_string(problem_.b_stride) + ", in " +
         std::string(name_of(problem_.result)) +
         kAddends[static_cast<std::size_t>(problem_.addend)];
}

void LtMatmul::run(const LtOperands& operands, void* workspace, const CallContext& call) const {
  const CublasLt& lt = cublas_lt();
  std::string why_not;
  cublasLtHandle_t handle = cublas_lt_handle(&why_not);
  if (handle == nullptr) return call.fail(DeviceStatus::Code::kFailed, why_not);
  const bool adds_matrix = problem_.addend == LtAddend::kMatrix && operands.addend != nullptr;
  const auto alpha32 = static_cast<float>(operands.alpha);
  const auto beta32 = adds_matrix ? static_cast<float>(operands.beta) : 0.0F;
  const double beta64 = adds_matrix ? operands.beta : 0.0;
  const bool f64 = is_double(problem_);
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (problem_.addend == LtAddend::kRow) {
    status = DescAttributes(desc_).set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.addend).status();
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status =
        lt.matmul(handle, desc_, f64 ? static_cast<const void*>(&operands.alpha) : &alpha32,
                  operands.b, b_, operands.a, a_, f64 ? static_cast<const void*>(&beta64) : &beta32,
                  adds_matrix ? operands.addend : operands.d, d_, operands.d, d_,
                  &algorithms_[is_aligned(operands) ? kSixteenBytes : kElements], workspace,
                  workspace_bytes_, static_cast<cudaStream_t>(call.native_stream));
  }
  if (status == CUBLAS_STATUS_SUCCESS) return;
  call.fail(DeviceStatus::Code::kFailed,
            lt.error_text(status, text() + " on " + std::string(stream_name(call.stream))));
}

}  // namespace trainscope::cuda
