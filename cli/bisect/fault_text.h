// What bisecting found, for people and as facts.
#pragma once

#include <string>

#include "cli/command.h"
#include "engine/bisect/gradient_check.h"
#include "engine/bisect/kernel_bisect.h"
#include "engine/bisect/local_fault.h"
#include "engine/bisect/stage_bisect.h"

namespace trainscope {

Json fault_json(const LocalFault& fault);
// "step 1, backward, dact:x of Softmax '/h.0/attn/Softmax': local error 3.1e-02, 4.0e+04 times its
// limit: the contribution of ... is missing".
std::string fault_text(const LocalFault& fault);

Outcome print(const StageBisect& found, const std::string& run);
Outcome print(const KernelBisect& found, const std::string& run);

}  // namespace trainscope
