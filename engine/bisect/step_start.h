// What a step of a recorded run begins with.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/tensor.h"
#include "profiler/numerics/indexed_trace.h"

namespace trainscope {

struct StepStart {
  // By micro-batch, the inputs' elements by name.
  std::vector<std::map<std::string, Tensor>> batches;
  // Parameters and states before the step, by name: those of which elements are known.
  std::map<std::string, Tensor> kept = {};
};
using StartOf = std::function<std::optional<StepStart>(std::int64_t step)>;

// From the elements that a trace keeps: none where it lacks those of an input of the batch.
std::optional<StepStart> recorded_start(const profiler::IndexedTrace& trace, std::int64_t step);

// What a micro-batch of the step is given, by name: its batch, parameters, states and scalars.
std::map<std::string, Tensor> inputs_of(const StepStart& start, std::int64_t step,
                                        std::int64_t micro_batch, double learning_rate);

}  // namespace trainscope
