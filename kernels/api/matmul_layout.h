// How MatMul, Gemm, BatchMatMul and MatMulAdd see their tensors: a batch of GEMMs of one size.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/api/params.h"
#include "kernels/api/tensor_view.h"

namespace trainscope {

inline constexpr std::array kMatmulOps = {"MatMul", "Gemm", "BatchMatMul", "MatMulAdd"};

// Matmuls of one size.
struct MatmulSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
};

// op(A) is [m, k], op(B) is [k, n]; op transposes the last two axes of what is stored. Batch axes
// have strides in whole matrices, 0 where a matrix serves several matmuls.
struct MatmulLayout {
  MatmulSize size;
  bool transpose_a = false;
  bool transpose_b = false;
  int batch_rank = 0;
  std::array<std::int64_t, kMaxRank> batch{};
  std::array<std::int64_t, kMaxRank> a_stride{};
  std::array<std::int64_t, kMaxRank> b_stride{};

  std::int64_t a_row() const { return transpose_a ? 1 : size.k; }
  std::int64_t a_column() const { return transpose_a ? size.m : 1; }
  std::int64_t b_row() const { return transpose_b ? 1 : size.n; }
  std::int64_t b_column() const { return transpose_b ? size.k : 1; }
};

// Which of the stored matrices of A and of B matmul number `matmul` of the batch multiplies.
struct MatrixPair {
  std::int64_t a = 0;
  std::int64_t b = 0;
};
inline MatrixPair matrices_of(const MatmulLayout& layout, std::int64_t matmul) {
  MatrixPair pair;
  for (int axis = layout.batch_rank - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t index = matmul % layout.batch[at];
    matmul /= layout.batch[at];
    pair.a += index * layout.a_stride[at];
    pair.b += index * layout.b_stride[at];
  }
  return pair;
}

// The layout for shapes that the op's shape rule has accepted. One-dimensional operands are a row
// (A) or a column (B). Batch axes are merged where possible, and become rows of A where all
// matmuls share one B.
MatmulLayout matmul_layout(const MatMulParams& params, const Shape& a, const Shape& b);

// How the addend of a Gemm or BatchMatMul is broadcast to [m, n]; that of a MatMulAdd has a
// matrix [m, n] for each matmul.
struct AddendStrides {
  std::int64_t row = 0;  // 0: one row for all
  std::int64_t column = 0;
};
AddendStrides addend_strides(const Shape& c);

}  // namespace trainscope
