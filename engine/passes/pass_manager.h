// Runs passes and keeps a record of each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/passes/pass.h"
#include "engine/passes/stage.h"

namespace trainscope {

struct PassOptions {
  std::vector<std::string> disabled = {};  // names of passes to leave out
  std::string stop_after = {};             // name of the last pass to run; empty: run all
};

// Runs the passes in order on the graph. Names in the options that no pass has are kUsage errors
// with the nearest name. Every stage is verified; a violation is our own mistake, printed
// with the pass's name. Errors of a pass carry its name.
Stages run_passes(Graph graph, std::span<const Pass> passes, PassContext context,
                  const PassOptions& options);

// The record of a graph that something else than a pass made; `index` is its place in the run.
Stage stage_of(std::string_view name, Graph graph, std::size_t index);

}  // namespace trainscope
