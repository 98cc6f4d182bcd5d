// Runs passes and keeps a record of each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/passes/pass.h"
#include "engine/passes/stage.h"

namespace trainscope {

// Of which stages the graphs stay in memory: of the others only the record is there, with an empty
// graph and rewrite log.
enum class KeepGraphs : std::uint8_t { kAll, kLast };

// The stages behind the passes, which make another program of one (engine/program_stages.h). These
// have names as passes do, to be left out by, or to be the last to run.
#define PASS(name)
#define PROGRAM_STAGE(name) std::string_view(#name),
inline constexpr std::array kProgramStages{
#include "engine/passes/passes.def"
};
#undef PASS
#undef PROGRAM_STAGE

struct PassOptions {
  std::vector<std::string> disabled = {};  // names of passes and program stages to leave out
  // Name of the last pass to run, behind which all program stages run, or of the last of these;
  // empty: run all.
  std::string stop_after = {};
  KeepGraphs keep = KeepGraphs::kAll;

  bool leaves_out(std::string_view name) const {
    return std::ranges::find(disabled, name) != disabled.end();
  }
};

// The name of the pass that is called `name`, or was before. A name that no pass has or had stays.
std::string present_pass_name(std::string_view name, std::span<const Pass> passes);

// Runs the passes in order on the graph. Names in the options may be those that passes had before;
// names that no pass has or had are kUsage errors with the nearest name. Every stage is verified; a
// violation is our own mistake, printed with the pass's name. Errors of a pass carry its name.
// context.watch learns of each pass before it runs; Stopped is thrown between two of them.
Stages run_passes(Graph graph, std::span<const Pass> passes, PassContext context,
                  const PassOptions& given);

// The record of a graph that something else than a pass made; `index` is its place in the run.
Stage stage_of(std::string_view name, Graph graph, std::size_t index);
// ... that is the one of the stage before.
Stage unchanged_stage(std::string_view name, const Stage& before, std::size_t index);
// Makes the rewrite log of a stage that changed the graph, by the notes in its graph, unless the
// stage before has given its graph away.
void log_rewrites(Stage& stage, const Stage& before, RewriteRule pass);
// The stage's graph: taken out of the stage unless all are kept.
Graph graph_for_next(Stage& stage, KeepGraphs keep);

}  // namespace trainscope
