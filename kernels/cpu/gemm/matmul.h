// The files of matmul kernels, and which of them a matmul goes to.
#pragma once

#include <algorithm>
#include <string_view>

#include "kernels/api/kernel.h"
#include "kernels/api/matmul_layout.h"
#include "kernels/cpu/gemm/gemm.h"

namespace trainscope::cpu {

void add_matmul(KernelTable& table);         // our own, and those of the function below
void add_matmul_onednn(KernelTable& table);  // on oneDNN
void add_multi_matmul_onednn(KernelTable& table);

inline GemmSize gemm_size(const MatmulSize& size) {
  return {.m = size.m, .n = size.n, .k = size.k, .batch = size.batch};
}

// Our own GEMM packs both operands, which repays where each element is used in many sums: there it
// is quicker than oneDNN's, and gives the same bits for any number of threads.
inline bool is_worth_packing(const MatmulLayout& layout) {
  constexpr std::int64_t kShortSide = 256;
  return std::min(layout.size.m, layout.size.n) > kShortSide;
}
// Why a kernel leaves a matmul to the other of the two.
inline constexpr std::string_view kRepaysPacking =
    "our own GEMM is quicker where both sides of the result are above 256";
inline constexpr std::string_view kLacksPackingsReturn =
    "packing does not repay where a side of the result is 256 or below";

}  // namespace trainscope::cpu
