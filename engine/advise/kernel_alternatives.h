// The kernels that there are for a call of a program, each timed by itself where it takes the call.
#pragma once

#include <string_view>
#include <vector>

#include "engine/advise/call_timing.h"
#include "engine/ir/op_def.h"

namespace trainscope {

struct KernelAlternative {
  const Kernel* kernel = nullptr;
  std::string_view why_not = {};  // it does not take the call; empty: it was timed
  bool is_chosen = false;         // the plan's
  CallTiming timing = {};
  Cost done = {};  // by the kernel
};

// In the order in which a plan prefers them; none for a call without a kernel.
std::vector<KernelAlternative> time_alternatives(const Program& program, const Call& call,
                                                 const TimingEffort& effort = {});

}  // namespace trainscope
