// Kernels that compute the rows that count.
#pragma once

#include "kernels/api/kernel.h"

namespace trainscope::cpu {

// CountedRows of i32 and i64 labels, CountedMatMul on our own product.
void add_counted_rows(KernelTable& table);

}  // namespace trainscope::cpu
