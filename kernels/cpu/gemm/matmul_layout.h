// How MatMul, Gemm, BatchMatMul and SummedMatMul see their tensors: a batch of equal products.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/api/params.h"
#include "kernels/api/tensor_view.h"
#include "kernels/cpu/gemm/gemm.h"

namespace trainscope::cpu {

inline constexpr std::array kProducts = {"MatMul", "Gemm", "BatchMatMul", "SummedMatMul"};

// op(A) is [m, k], op(B) is [k, n]; op transposes the last two axes of what is stored. Batch axes
// have strides in whole matrices, 0 where a matrix serves several products.
struct MatMulLayout {
  GemmSize size;
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

// Which matrices product number `product` multiplies.
struct MatrixPair {
  std::int64_t a = 0;
  std::int64_t b = 0;
};
inline MatrixPair matrices_of(const MatMulLayout& layout, std::int64_t product) {
  MatrixPair pair;
  for (int axis = layout.batch_rank - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t index = product % layout.batch[at];
    product /= layout.batch[at];
    pair.a += index * layout.a_stride[at];
    pair.b += index * layout.b_stride[at];
  }
  return pair;
}

// The layout for shapes that the op's shape rule has accepted. One-dimensional operands are a row
// (A) or a column (B). Batch axes are merged where possible, and become rows of A where all
// products share one B.
MatMulLayout matmul_layout(const MatMulParams& params, const Shape& a, const Shape& b);

// How the addend of a Gemm or BatchMatMul is broadcast to [m, n]; that of a SummedMatMul has a
// matrix for each product.
struct AddendStrides {
  std::int64_t row = 0;  // 0: one row for all
  std::int64_t column = 0;
};
AddendStrides addend_strides(const Shape& c);

// Our own products pack both operands, which repays where each element is used in many sums: there
// they are quicker than oneDNN's, and have the same bits for any number of threads.
bool is_worth_packing(const MatMulLayout& layout);

}  // namespace trainscope::cpu
