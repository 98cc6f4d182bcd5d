// A batch of matmuls of one size as a call of cuBLASLt: described and chosen once, run many times.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/api/dtype.h"
#include "kernels/api/kernel.h"
#include "kernels/cuda/gemm/lt_choices.h"

namespace trainscope::cuda {

// What is added to alpha op(A) op(B) within the call.
enum class LtAddend : std::uint8_t {
  kNone,
  kMatrix,  // beta times a matrix as large as the result, which may be the result's own bytes
  kRow,     // a row of n elements, by the library's epilogue
};

// D [m, n] = alpha * op(A) [m, k] op(B) [k, n] + addend, all dense row-major; `batch` of them,
// whose matrices lie a stride apart (elements; 0: one matrix for all).
struct LtProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t batch = 1;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  DType dtype = DType::kF32;   // of A and B: f32, f64, or bf16, f16 summed in f32
  DType result = DType::kF32;  // of D and the addend: the same, or f32 of bf16 and f16
  LtAddend addend = LtAddend::kNone;
  bool tf32 = false;  // A and B of f32 are rounded to TF32
};

struct LtOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* addend = nullptr;  // null: none
  void* d = nullptr;
  double alpha = 1.0;
  double beta = 0.0;  // of kMatrix
};

// Sums are formed in the same order in every run: the library may divide k, but adds the parts in
// order. Which algorithm is used is the library's first offer, or, where lt_choices() has a file,
// the fastest of several for operands that are aligned to 16 bytes.
class LtMatmul {
 public:
  // Null, with the reason, where the library has no way to compute this. Throws as LtChoices does.
  static std::unique_ptr<LtMatmul> make(const LtProblem& problem, std::string* why_not);
  ~LtMatmul();
  LtMatmul(const LtMatmul&) = delete;
  LtMatmul& operator=(const LtMatmul&) = delete;

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Whether all four lie at multiples of 16 bytes, and their matrices too.
  bool is_aligned(const LtOperands& operands) const;
  // Whether each matrix of a batch lies at a multiple of 16 bytes where the first one does.
  bool steps_well() const;
  // Says through `call` what the library refuses.
  void run(const LtOperands& operands, void* workspace, const CallContext& call) const;

 private:
  // By how the operands are aligned, which is known when they are there: to 16 bytes, or only to
  // their elements, where operands lie inside other tensors.
  enum Alignment : std::uint8_t { kSixteenBytes, kElements };
  using Offers = std::span<const cublasLtMatmulHeuristicResult_t>;

  explicit LtMatmul(const LtProblem& problem) : problem_(problem) {}
  cublasStatus_t describe();
  cublasStatus_t describe_matrix(cublasLtMatrixLayout_t* layout, DType dtype, std::int64_t rows,
                                 std::int64_t columns, std::int64_t stride) const;
  cublasStatus_t choose(cublasLtHandle_t handle, Alignment alignment);
  // The place of the fastest among those that the library offers, by what was chosen before, or by
  // time.
  std::size_t choose_by_time(cublasLtHandle_t handle, LtChoices& choices, Offers offers) const;
  std::size_t time(cublasLtHandle_t handle, Offers offers) const;
  std::string text() const;
  std::string key() const;

  const LtProblem problem_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t d_ = nullptr;
  std::array<cublasLtMatmulAlgo_t, 2> algorithms_ = {};  // by Alignment
  std::size_t workspace_bytes_ = 0;
};

}  // namespace trainscope::cuda
