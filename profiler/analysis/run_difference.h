// Two runs beside each other by ONNX node: what each takes in time and in bytes, by which kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/analysis/comparison.h"
#include "profiler/analysis/step_times.h"

namespace trainscope::profiler {

// Times may be absent (null): the run was not profiled.
struct RunSide {
  const PlanView& plan;
  const StepTimes* times = nullptr;
};

// Of the calls that are counted for an ONNX node, in one run; where either run computes several
// nodes in one call (profiler/analysis/fused_nodes.h), for all of these.
struct NodeInPlan {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;    // of what they write, each value once
  std::string kernels = {};  // their names, each once, with commas between

  bool operator==(const NodeInPlan&) const = default;
};

struct DifferenceRow {
  ComparedRow time = {};  // with the node's name
  NodeInPlan a = {};
  NodeInPlan b = {};
};

struct RunDifference {
  Comparison times = {};     // but for its rows, which are below
  std::int64_t arena_a = 0;  // bytes
  std::int64_t arena_b = 0;
  // Nodes of either plan, and what is no call: those that differ most in time first, then those
  // that differ most in bytes.
  std::vector<DifferenceRow> rows = {};
};

RunDifference difference_of(const RunSide& a, const RunSide& b);

}  // namespace trainscope::profiler
