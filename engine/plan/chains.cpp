// Instructions in parts, longer lives for the buffers of chains, and a new placement.
#include "engine/plan/chains.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/plan/chain_search.h"
#include "engine/plan/kernel_call.h"
#include "memplan/validate.h"

namespace trainscope {
namespace {

std::int64_t padded(std::size_t bytes) { return (static_cast<std::int64_t>(bytes) + 63) / 64 * 64; }

// The instruction as its parts run it.
Instruction in_parts(const Program& program, const Instruction& whole, const Link& link) {
  const Graph& graph = program.graph;
  const Node& node = graph.node(whole.node);
  const PartNode part(graph, node, link.inputs, link.outputs, program.threads);
  const std::vector<TensorView> inputs = part.inputs();
  const std::vector<TensorView> outputs = part.outputs();
  Instruction instruction;
  instruction.node = whole.node;
  instruction.kernel = link.kernel;
  instruction.params = link.params;
  InParts& parts = instruction.parts;
  parts.inputs = link.inputs;
  parts.outputs = link.outputs;
  for (int p = 0; p < program.threads; ++p) {
    Prepared prepared = at_node(node, [&] {
      return prepared_for(
          *link.kernel,
          {.params = instruction.params, .inputs = inputs, .outputs = outputs, .threads = 1});
    });
    parts.part_workspace_bytes =
        std::max(parts.part_workspace_bytes, padded(prepared.workspace_bytes));
    parts.prepared.push_back(std::move(prepared));
  }
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    if (parts.outputs[k] != PartOf::kSummand) continue;
    parts.summand_bytes += padded(outputs[k].type.bytes());
  }
  const std::int64_t bytes =
      program.threads * parts.part_workspace_bytes + (program.threads - 1) * parts.summand_bytes;
  instruction.prepared.workspace_bytes = static_cast<std::size_t>(bytes);
  return instruction;
}

// The problem's buffers: those of values as they were, then a workspace for each instruction that
// wants one. What touches a chain lives as long as it does.
memplan::Problem problem_with(const Program& program, std::size_t values,
                              const std::vector<Instruction>& instructions,
                              const std::vector<Chain>& chains) {
  memplan::Problem problem = program.problem;
  problem.buffers.resize(values);
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const auto bytes = static_cast<std::int64_t>(instructions[i].prepared.workspace_bytes);
    const auto step = static_cast<std::int64_t>(i);
    if (bytes == 0) continue;
    problem.buffers.push_back(
        {.id = "workspace of " + program.graph.node(instructions[i].node).name,
         .lower = step,
         .upper = step + 1,
         .size_bytes = bytes});
  }
  for (memplan::Buffer& buffer : problem.buffers) {
    for (const Chain& chain : chains) {
      const auto begin = static_cast<std::int64_t>(chain.begin);
      const auto end = static_cast<std::int64_t>(chain.end);
      if (buffer.upper <= begin || end <= buffer.lower) continue;
      buffer.lower = std::min(buffer.lower, begin);
      buffer.upper = std::max(buffer.upper, end);
    }
  }
  return problem;
}

void take_over(Program& program, std::size_t values, std::vector<Instruction> instructions,
               memplan::Problem problem, memplan::Solution solution) {
  for (Placement& placement : program.placements) {
    if (placement.buffer < 0 || placement.external || placement.host) continue;
    const auto buffer = static_cast<std::size_t>(placement.buffer);
    placement.offset += solution.offsets[buffer] - program.solution.offsets[buffer];
  }
  std::size_t workspace = values;
  program.workspace_bytes = 0;
  for (Instruction& instruction : instructions) {
    const auto bytes = static_cast<std::int64_t>(instruction.prepared.workspace_bytes);
    program.workspace_bytes = std::max(program.workspace_bytes, bytes);
    if (bytes > 0) instruction.workspace_offset = solution.offsets[workspace++];
  }
  program.instructions = std::move(instructions);
  program.problem = std::move(problem);
  program.solution = std::move(solution);
  program.arena_bytes = program.solution.height_bytes;
}

}  // namespace

bool add_chains(Program& program, const ChainOptions& options) {
  if (program.threads < 2 || program.device->fork() == nullptr) return false;
  const KernelTable& kernels = program.device->kernels();
  std::vector<Link> links;
  std::vector<Chain> chains = find_chains(program, kernels, options, links);
  std::size_t chained = 0;
  for (const Chain& chain : chains) chained += chain.end - chain.begin;
  const double share = static_cast<double>(chained) / static_cast<double>(program.update_begin);
  if (chains.empty() || share < options.least_share) return false;
  std::vector<Instruction> instructions = program.instructions;
  const auto workspaces = std::ranges::count_if(instructions, [](const Instruction& instruction) {
    return instruction.prepared.workspace_bytes > 0;
  });
  const std::size_t values = program.problem.buffers.size() - static_cast<std::size_t>(workspaces);
  for (const Chain& chain : chains) {
    for (std::size_t i = chain.begin; i < chain.end; ++i) {
      instructions[i] = in_parts(program, instructions[i], links[i]);
    }
  }
  memplan::Problem problem = problem_with(program, values, instructions, chains);
  memplan::Result placed = memplan::solve(problem, {.threads = program.threads});
  if (placed.status != memplan::Status::kPlaced) return false;
  const std::int64_t growth = placed.solution.height_bytes - program.arena_bytes;
  const double grown = static_cast<double>(growth) / static_cast<double>(program.arena_bytes);
  if (growth > options.most_bytes && grown > options.most_growth) return false;
  CHECK_INVARIANT(memplan::validate(problem, placed.solution).empty());
  take_over(program, values, std::move(instructions), std::move(problem),
            std::move(placed.solution));
  program.chains = std::move(chains);
  return true;
}

}  // namespace trainscope
