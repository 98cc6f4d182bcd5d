// Instructions as batch tiles run them, longer lifetimes for the buffers of sections, and a new
// placement.
#include "engine/plan/batch_tiles.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/plan/kernel_call.h"
#include "engine/plan/tile_search.h"
#include "memplan/validate.h"

namespace trainscope {
namespace {

std::int64_t padded(std::size_t bytes) { return (static_cast<std::int64_t>(bytes) + 63) / 64 * 64; }

// The instruction as batch tiles run it.
Instruction tiled(const Program& program, const Instruction& whole, const TiledCall& call) {
  const Graph& graph = program.graph;
  const Node& node = graph.node(whole.node);
  const TileNode tile(graph, node, call.inputs, call.outputs, program.threads);
  const std::vector<TensorView> inputs = tile.inputs();
  const std::vector<TensorView> outputs = tile.outputs();
  Instruction instruction;
  instruction.node = whole.node;
  instruction.kernel = call.kernel;
  instruction.params = call.params;
  Tiling& tiling = instruction.tiling;
  tiling.inputs = call.inputs;
  tiling.outputs = call.outputs;
  for (int p = 0; p < program.threads; ++p) {
    Prepared prepared = at_node(node, [&] {
      return prepared_for(
          *call.kernel,
          {.params = instruction.params, .inputs = inputs, .outputs = outputs, .threads = 1});
    });
    tiling.tile_workspace_bytes =
        std::max(tiling.tile_workspace_bytes, padded(prepared.workspace_bytes));
    tiling.prepared.push_back(std::move(prepared));
  }
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    if (tiling.outputs[k] != TileSlice::kPartial) continue;
    tiling.partial_bytes += padded(outputs[k].type.bytes());
  }
  const std::int64_t bytes =
      program.threads * tiling.tile_workspace_bytes + (program.threads - 1) * tiling.partial_bytes;
  instruction.prepared.workspace_bytes = static_cast<std::size_t>(bytes);
  return instruction;
}

// The problem's buffers: those of values as they were, then a workspace for each instruction that
// wants one. What touches a section lives as long as it does.
memplan::Problem problem_with(const Program& program, std::size_t values,
                              const std::vector<Instruction>& instructions,
                              const std::vector<TiledSection>& sections) {
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
    for (const TiledSection& section : sections) {
      const auto begin = static_cast<std::int64_t>(section.begin);
      const auto end = static_cast<std::int64_t>(section.end);
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

bool add_batch_tiles(Program& program, const BatchTileOptions& options) {
  if (program.threads < 2 || program.device->fork() == nullptr) return false;
  const KernelTable& kernels = program.device->kernels();
  std::vector<TiledCall> calls;
  std::vector<TiledSection> sections = find_tiled_sections(program, kernels, options, calls);
  std::size_t tiled_calls = 0;
  for (const TiledSection& section : sections) tiled_calls += section.end - section.begin;
  const double share = static_cast<double>(tiled_calls) / static_cast<double>(program.update_begin);
  if (sections.empty() || share < options.least_share) return false;
  std::vector<Instruction> instructions = program.instructions;
  const auto workspaces = std::ranges::count_if(instructions, [](const Instruction& instruction) {
    return instruction.prepared.workspace_bytes > 0;
  });
  const std::size_t values = program.problem.buffers.size() - static_cast<std::size_t>(workspaces);
  for (const TiledSection& section : sections) {
    for (std::size_t i = section.begin; i < section.end; ++i) {
      instructions[i] = tiled(program, instructions[i], calls[i]);
    }
  }
  memplan::Problem problem = problem_with(program, values, instructions, sections);
  memplan::Result placed = memplan::solve(problem, {.threads = program.threads});
  if (placed.status != memplan::Status::kPlaced) return false;
  const std::int64_t growth = placed.solution.height_bytes - program.arena_bytes;
  const double grown = static_cast<double>(growth) / static_cast<double>(program.arena_bytes);
  if (growth > options.most_bytes && grown > options.most_growth) return false;
  CHECK_INVARIANT(memplan::validate(problem, placed.solution).empty());
  take_over(program, values, std::move(instructions), std::move(problem),
            std::move(placed.solution));
  program.sections = std::move(sections);
  return true;
}

}  // namespace trainscope
