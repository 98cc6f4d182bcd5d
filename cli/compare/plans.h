// compare's sections on plans: what each node writes in bytes, and by which kernels it is computed.
#pragma once

#include <cstddef>

#include "cli/command.h"
#include "cli/compare/sides.h"

namespace trainscope {

// Arenas, and the nodes of which calls write another number of bytes, those that differ most first.
Outcome compare_bytes(const Side& a, const Side& b, std::size_t top);

// The nodes that have other kernels, or another number of calls; in the order of their names.
Outcome compare_plans(const Side& a, const Side& b, std::size_t top);

}  // namespace trainscope
