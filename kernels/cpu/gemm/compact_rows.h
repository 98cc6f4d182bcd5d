// Masked-label compaction: kernels that compute only the rows whose labels count.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

// Adds the kernels of CompactRows for i32 and i64 labels, and of CompactMatMul on our own GEMM.
void add_compact_rows(KernelTable& table);

}  // namespace trainscope::cpu
