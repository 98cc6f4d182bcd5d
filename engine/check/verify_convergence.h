// verify for a convergence folder: hundreds of steps from the same seed against stored curves.
#pragma once

#include <filesystem>

#include "engine/check/verify.h"

namespace trainscope {

VerifyReport verify_convergence(const std::filesystem::path& folder, const VerifyOptions& options);

}  // namespace trainscope
