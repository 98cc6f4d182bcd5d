// What `inspect` shows: each function gives facts and text from a graph or a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/bundle/reader.h"
#include "engine/session.h"
#include "engine/stage_history.h"
#include "profiler/analysis/measured_memory.h"

namespace trainscope {

// Inputs, outputs, parameters and ops of a model file.
Outcome describe_model(const OnnxModel& model);
// What a run is and how far it came.
Outcome describe_run(const RunReader& run);
// A row for each stage.
Outcome describe_stages(std::span<const StageRecord> stages);
// ... and a line for each node that a pass nearly rewrote: pass, node, reason.
Outcome explain_stages(std::span<const StageRecord> stages);

// What became of nodes and values of a model, stage by stage for one, a row each for all.
Outcome describe_fate(const StageHistory& stages, const std::string& name);
Outcome describe_fates(const StageHistory& stages);
// Two stages: how many nodes and values of which kind, and a row for each, in the text without
// those that are the same in both unless `rows` says so.
enum class DiffRows : std::uint8_t { kChanged, kAll };
Outcome describe_diff(const StageDiff& diff, DiffRows rows);

// A graph: its nodes, and printed.
Outcome describe_graph(const Graph& graph);
// One node: `which` is its position (from 0) or its name. Throws kUsage when there is none.
Outcome describe_node(const Graph& graph, const std::string& which);

// The position of a call: `at` is its number, or a node's name (ONNX's too). Throws kUsage when
// there is none.
std::size_t find_call(const PlanView& plan, const std::string& at);
// The kernel of each call, with the others that there are for it and why they are not used; with
// `at` of that call's node alone.
Outcome describe_calls(const PlanView& plan, const std::string& at);
// Live buffers of a plan at that call; empty: where the most bytes are alive. Beside them what was
// measured, where the session was profiled; null: it was not.
Outcome describe_memory(const PlanView& plan, const std::string& at,
                        const profiler::MeasuredMemory* measured);

}  // namespace trainscope
