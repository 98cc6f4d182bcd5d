// One MatMul, Gemm, BatchMatMul or MatMulAdd as calls of cuBLASLt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/api/kernel.h"
#include "kernels/api/matmul_layout.h"
#include "kernels/cuda/gemm/lt_matmul.h"

namespace trainscope::cuda {

enum class LtFactors : std::uint8_t {
  kExact,
  kTf32,  // of f32, rounded to TF32
};

// Operands are A, B and, where present, the addend; the result is one.
class MatmulCall {
 public:
  // Null, with the reason, where it cannot be computed.
  static std::unique_ptr<MatmulCall> make(const MatMulParams& params, LtFactors factors,
                                          std::span<const TensorView> inputs,
                                          const TensorView& output, std::string* why_not);

  std::size_t workspace_bytes() const;
  void run(std::span<const TensorView> inputs, const TensorView& output, void* workspace,
           const CallContext& call) const;

 private:
  MatmulCall() = default;

  LtProblem problem(LtAddend addend) const;
  void choose_addend(const TensorView& addend);
  void spread(std::span<const TensorView> inputs, const TensorView& output, double scale,
              const CallContext& call) const;

  MatMulParams params_;
  LtFactors factors_ = LtFactors::kExact;
  MatmulLayout layout_;
  DType dtype_ = DType::kF32;   // of the operands
  DType result_ = DType::kF32;  // of the addend and the result
  bool adds_ = false;
  bool spreads_ = false;  // the addend first becomes the result, which the matmul is added to
  AddendStrides strides_;
  LtAddend addend_ = LtAddend::kNone;
  std::unique_ptr<LtMatmul> matmul_;  // null where nothing is multiplied
  // Of operands of two bytes with a row as addend: what is run where they are not aligned, for
  // which the library's epilogue says NOT_SUPPORTED though its heuristic offered it. Else null.
  std::unique_ptr<LtMatmul> spread_matmul_;
};

}  // namespace trainscope::cuda
