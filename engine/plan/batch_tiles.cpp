// Launches as batch tiles run them, in a program that is built anew.
#include "engine/plan/batch_tiles.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/plan/kernel_call.h"
#include "engine/plan/program_builder.h"
#include "engine/plan/tile_search.h"

namespace trainscope {
namespace {

// The launch as batch tiles run it.
void tile_launch(const Program& program, const TiledCall& call, Launch& launch) {
  const Graph& graph = program.graph;
  const Node& node = graph.node(launch.node);
  const TileNode tile(graph, node, call, program.threads);
  const std::vector<TensorView> inputs = tile.inputs();
  const std::vector<TensorView> outputs = tile.outputs();
  Tiling tiling{.kernel = call.kernel,
                .others = call.others,
                .params = call.params,
                .inputs = call.inputs,
                .outputs = call.outputs};
  for (int p = 0; p < program.threads; ++p) {
    Prepared prepared = at_node(node, [&] {
      return prepared_for(
          *call.kernel,
          {.params = tiling.params, .inputs = inputs, .outputs = outputs, .threads = 1});
    });
    tiling.workspace_bytes =
        std::max(tiling.workspace_bytes,
                 padded_to_line(static_cast<std::int64_t>(prepared.workspace_bytes)));
    if (!program.runs) prepared.state.reset();
    tiling.prepared.push_back(std::move(prepared));
  }
  std::int64_t partial_bytes = 0;
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    if (tiling.outputs[k] != TileSlice::kPartial || node.outputs[k] == kNoValue) continue;
    partial_bytes += padded_to_line(static_cast<std::int64_t>(outputs[k].type.bytes()));
  }
  launch.workspace_bytes =
      program.threads * tiling.workspace_bytes + (program.threads - 1) * partial_bytes;
  launch.tiling = std::move(tiling);
}

}  // namespace

std::int64_t padded_to_line(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

const Kernel* add_partials_kernel(const Device& device) {
  const std::vector<const Kernel*> kernels = device.kernels().find("AddPartials", DType::kF32);
  return kernels.empty() ? nullptr : kernels.front();
}

bool add_batch_tiles(Program& program, const BatchTileOptions& options) {
  if (program.threads < 2 || program.device->fork() == nullptr) return false;
  std::vector<TiledCall> calls;
  const std::vector<TimeSection> sections = find_tiled_sections(program, options, calls);
  std::int64_t tiled_calls = 0;
  for (const TimeSection& section : sections) tiled_calls += section.end - section.begin;
  const double share = static_cast<double>(tiled_calls) / static_cast<double>(program.update_time);
  if (sections.empty() || share < options.least_share) return false;
  ProgramBuilder builder(program);
  for (const TimeSection& section : sections) {
    for (std::int64_t time = section.begin; time < section.end; ++time) {
      const auto i = static_cast<std::size_t>(time);
      tile_launch(program, calls[i], builder.launches()[i]);
    }
  }
  builder.tile(sections);
  std::optional<Program> tiled = builder.try_build();
  if (!tiled) return false;
  const std::int64_t growth = tiled->arena().bytes - program.arena().bytes;
  const double grown = static_cast<double>(growth) / static_cast<double>(program.arena().bytes);
  if (growth > options.most_bytes && grown > options.most_growth) return false;
  program = *std::move(tiled);
  return true;
}

}  // namespace trainscope
