// Mixed precision against the stored numbers of a model folder.
#pragma once

#include "engine/check/verify.h"

namespace trainscope {

// Loss and gradients of one batch, with limits from what rounding the operands of matmuls alone
// does to them (`noise.bf16_operands` and, for fp16 and TF32, which have as many digits,
// `noise.tf32_operands`). kUsage when the folder does not say.
VerifyReport verify_mixed(const std::filesystem::path& folder, const VerifyOptions& options);

}  // namespace trainscope
