// Steps of a graph that is run node by node, as a trace with all elements.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/run/numerics/unfused_step.h"
#include "engine/train/schedule.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

using NamedTensors = std::map<std::string, Tensor>;

// What is run: `graph` is that of `step`, or one made of it by changing nodes. A value that has the
// name of one of `step` has the row of that one.
struct GraphRun {
  const UnfusedStep& step;
  const Graph& graph;
  const Evaluate& evaluate;
  Schedule schedule = {};
  bool with_elements = true;  // else sketches alone
  // The steps before `from` run the graph of `step`.
  std::int64_t from = 1;
  std::int64_t first = 1;  // the number of the first step
  // Parameters and states before it; those that are not here begin as the graph has them, and so
  // does the loss scale. Recorded gradients are divided by the one that their step begins with.
  NamedTensors kept = {};
};

// Runs the first step and on, one for each batch, with the update, and writes each into a trace in
// `folder`, behind what the first begins with. Throws as reference_run, and as typed_for.
void record_steps(const GraphRun& run, const std::vector<NamedTensors>& batches,
                  const profiler::TraceHeader& header, const Folder& folder);

}  // namespace trainscope
