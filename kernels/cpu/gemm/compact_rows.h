// Masked-label compaction: kernels that compute only the rows whose labels count.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

// Adds the kernels of CountedRows for i32 and i64 labels, and of CountedMatMul on our own GEMM.
void add_compact_rows(KernelTable& table);

}  // namespace trainscope::cpu
