// What is to blame within one run: a pass or what makes a program of a graph, a kernel, a device, a
// precision.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cli/bisect/bisected_model.h"
#include "cli/command.h"

namespace trainscope {

// `inputs`: of a micro-batch of the run's, by name. The passes by what each changes in f64; then,
// where none does, the program that is made of the last one's graph, call by call as it runs.
Outcome bisect_stages_of(const BisectedModel& model, const std::string& folder,
                         const std::map<std::string, Tensor>& inputs);
Outcome bisect_kernels_of(const BisectedModel& model, const std::string& folder,
                          const std::map<std::string, Tensor>& inputs);
// The step on each device that is here. Throws kNoDevice where that is one alone.
Outcome bisect_devices_of(const BisectedModel& model, const std::string& folder,
                          const std::map<std::string, Tensor>& inputs);
// The step in a type of two bytes, node by node, against its definition: what is off by more than
// that type's rounding. In the run's precision, or, of one in f32 or TF32, in bf16 and fp16. Step
// `at` with what it began with, of its micro-batches the first.
Outcome bisect_precisions_of(const BisectedModel& model, const std::string& folder, std::int64_t at,
                             const StepStart& begun);

}  // namespace trainscope
