// Placement without kernels, and the peak without placement.
#include "engine/world/place.h"

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/plan/lifetimes.h"
#include "engine/world/zero.h"
#include "memplan/bounds.h"
#include "memplan/validate.h"

namespace trainscope {
namespace {

constexpr std::int64_t kTorchBlockBytes = 512;

std::int64_t bytes_of(const Graph& graph, ValueId v) {
  return static_cast<std::int64_t>(graph.value(v).type.bytes());
}

// Lifetimes as they are, but nothing is freed before its phase of the step allows it to.
memplan::Problem eager_problem(const Lifetimes& lifetimes, std::int64_t steps) {
  memplan::Problem problem{.buffers = {}, .alignment_bytes = kTorchBlockBytes};
  for (const Lifetimes::Buffer& buffer : lifetimes.buffers) {
    problem.buffers.push_back(
        {.id = {},
         .lower = buffer.persistent ? 0 : buffer.first,
         .upper = buffer.persistent ? steps + 1 : std::min(buffer.last, steps) + 1,
         .size_bytes = static_cast<std::int64_t>(buffer.bytes)});
  }
  return problem;
}

}  // namespace

std::vector<std::int64_t> workspaces_of(const Program& program) {
  std::vector<std::int64_t> bytes(program.graph.node_capacity(), 0);
  for (const Instruction& instruction : program.instructions) {
    bytes[static_cast<std::size_t>(instruction.node)] =
        static_cast<std::int64_t>(instruction.prepared.workspace_bytes);
  }
  return bytes;
}

Program place_graph(Graph graph, std::span<const std::int64_t> workspaces,
                    const LowerOptions& options, std::int64_t held_bytes) {
  Program program;
  program.graph = std::move(graph);
  program.threads = options.threads;
  const std::vector<NodeId> order = phase_order(program.graph);
  std::vector<std::int64_t> by_instruction;
  for (NodeId id : order) {
    const Node& node = program.graph.node(id);
    if (node.op->is_view) continue;
    if (node.phase != Phase::kUpdate) program.update_begin = program.instructions.size() + 1;
    const auto index = static_cast<std::size_t>(id);
    by_instruction.push_back(index < workspaces.size() ? workspaces[index] : 0);
    Instruction instruction;
    instruction.node = id;
    instruction.prepared.workspace_bytes = static_cast<std::size_t>(by_instruction.back());
    program.workspace_bytes = std::max(program.workspace_bytes, by_instruction.back());
    program.instructions.push_back(std::move(instruction));
  }
  const Lifetimes lifetimes = find_lifetimes(program.graph, order, options, by_instruction);
  program.copies = lifetimes.copies;
  for (const Lifetimes::Buffer& buffer : lifetimes.buffers) {
    if (buffer.persistent) program.persistent_bytes += static_cast<std::int64_t>(buffer.bytes);
  }
  program.problem = placement_problem(lifetimes, by_instruction);
  if (held_bytes > 0) {
    program.problem.buffers.push_back({.id = "micro-batches in flight",
                                       .lower = 0,
                                       .upper = static_cast<std::int64_t>(program.update_begin),
                                       .size_bytes = held_bytes});
  }
  memplan::Result result =
      memplan::solve(program.problem, {.seconds = options.seconds, .threads = options.threads});
  require(result.status == memplan::Status::kPlaced, ErrorCode::kOutOfMemory,
          "the memory plan failed: {}", printable(result.message, 400));
  CHECK_INVARIANT(memplan::validate(program.problem, result.solution).empty());
  program.solution = std::move(result.solution);
  program.arena_bytes = program.solution.height_bytes;
  program.placements.resize(program.graph.value_capacity());
  for (std::size_t v = 0; v < lifetimes.buffer_of.size(); ++v) {
    const std::int32_t buffer = lifetimes.buffer_of[v];
    if (buffer < 0) continue;
    const std::int64_t begin = program.solution.offsets[static_cast<std::size_t>(buffer)];
    program.placements[v] = {.offset = begin + lifetimes.offset_of[v], .buffer = buffer};
  }
  return program;
}

std::int64_t eager_peak_bytes(const Graph& graph) {
  const std::vector<NodeId> order = phase_order(graph);
  const Lifetimes lifetimes = find_lifetimes(graph, order, {.in_place = false});
  std::int64_t steps = 0;
  std::vector<std::int64_t> step_of(graph.node_capacity(), 0);
  for (NodeId id : order) {
    step_of[static_cast<std::size_t>(id)] = steps;
    if (!graph.node(id).op->is_view) ++steps;
  }
  memplan::Problem problem = eager_problem(lifetimes, steps);
  const auto buffer = [&](ValueId v) -> memplan::Buffer* {
    const std::int32_t index = lifetimes.buffer_of[static_cast<std::size_t>(v)];
    return index < 0 ? nullptr : &problem.buffers[static_cast<std::size_t>(index)];
  };
  for (const OptimizerNode& optimizer : optimizer_nodes(graph)) {
    std::int64_t updated = 0;
    for (std::size_t i = 0; i < optimizer.parameters.size() && !optimizer.states.empty(); ++i) {
      updated += bytes_of(graph, optimizer.states[i]);
    }
    for (ValueId gradient : optimizer.gradients) {
      if (memplan::Buffer* held = buffer(gradient)) held->upper = steps + 1;
    }
    const std::int64_t at = step_of[static_cast<std::size_t>(optimizer.node)];
    problem.buffers.push_back({.id = {}, .lower = at, .upper = at + 1, .size_bytes = updated});
  }
  if (graph.loss != kNoValue && graph.value(graph.loss).producer != kNoNode) {
    const NodeId loss = graph.value(graph.loss).producer;
    const Node& node = graph.node(loss);
    std::int64_t last = -1;
    for (ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      for (const Use& use : graph.value(output).uses) {
        last = std::max(last, step_of[static_cast<std::size_t>(use.node)]);
      }
    }
    if (node.op->name == "CrossEntropy" && last >= 0) {
      problem.buffers.push_back({.id = {},
                                 .lower = step_of[static_cast<std::size_t>(loss)],
                                 .upper = last + 1,
                                 .size_bytes = bytes_of(graph, node.inputs[0])});
    }
  }
  return memplan::lower_bound_bytes(problem);
}

}  // namespace trainscope
