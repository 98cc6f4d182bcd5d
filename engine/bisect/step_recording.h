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
};

using NamedTensors = std::map<std::string, Tensor>;

// Runs step 1 and on, one for each batch, with the update, and writes each into a trace in
// `folder`; parameters and states begin as the graph has them. Throws as reference_run.
void record_steps(const GraphRun& run, const std::vector<NamedTensors>& batches,
                  const profiler::TraceHeader& header, const Folder& folder);

}  // namespace trainscope
