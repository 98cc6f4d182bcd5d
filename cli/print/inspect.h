// What `inspect` shows: each function gives facts and text from a graph or a plan.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/bundle/reader.h"
#include "engine/session.h"

namespace trainscope {

// Inputs, outputs, parameters and ops of a model file.
Outcome describe_model(const OnnxModel& model);
// What a run is and how far it came.
Outcome describe_run(const RunReader& run);
// A row for each stage.
Outcome describe_stages(std::span<const StageRecord> stages);
// ... and a line for each node that a pass nearly rewrote: pass, node, reason.
Outcome explain_stages(std::span<const StageRecord> stages);

// A graph: its nodes, and printed.
Outcome describe_graph(const Graph& graph);
// One node: `which` is its position (from 0) or its name. Throws kUsage when there is none.
Outcome describe_node(const Graph& graph, const std::string& which);

// Live buffers of a plan at `at`: a call's number, or a node's name (ONNX's too); empty: where the
// most bytes are alive. Throws kUsage when there is none.
Outcome describe_memory(const PlanView& plan, const std::string& at);

}  // namespace trainscope
