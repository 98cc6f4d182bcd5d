// docs/ops.md: the op table as text.
#pragma once

#include <string>

#include "engine/ir/op_def.h"
#include "kernels/api/kernel.h"

namespace trainscope {

// Every op with its meaning, attributes, where its gradient comes from, and its kernels.
std::string ops_markdown(const OpTable& ops, const KernelTable& kernels);

}  // namespace trainscope
