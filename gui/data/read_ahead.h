// What takes long to read and is asked for with the first selection: read on threads of their own
// behind the first picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/machine/machine.h"
#include "engine/stage_history.h"
#include "gui/data/stage_facts.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/step_times.h"
#include "profiler/store/event_file.h"

namespace trainscope::gui {

// Positions of a stage, and of an entry in its rewrite log.
struct LogEntry {
  std::uint32_t stage = 0;
  std::uint32_t entry = 0;
};

// By the serial of a node: the entries of all logs that are of it, or name it beside another one,
// stage by stage.
using LogEntries = std::unordered_map<std::uint32_t, std::vector<LogEntry>>;
LogEntries log_entries(const History& history);

// Of the ONNX model's nodes and values to the last stage.
struct FateTable {
  std::vector<Fate> all = {};
  std::unordered_map<std::string_view, std::size_t> by_name = {};  // positions, of nodes
  std::unordered_map<std::uint32_t, std::size_t> by_serial = {};   // the same

  static FateTable of(std::vector<Fate> fates);
};

// Calls of the profiled steps, put together, in the order in which `query --by` prints them.
struct CallTable {
  profiler::Breakdown table = {};
  std::unordered_map<std::string_view, std::size_t> row_of = {};  // of a name, of rows of calls

  static CallTable of(const profiler::StepTimes& times, const PlanView& plan, profiler::GroupBy by,
                      const Machine* machine);
  const profiler::BreakdownRow* find(std::string_view name) const {
    const auto found = row_of.find(name);
    return found == row_of.end() ? nullptr : &table.rows[found->second];
  }
};

// The graph of a stage: of a run from its file, of a model from its history.
Graph stage_graph(const RunReader* run, std::int64_t session, const StageRecord& record,
                  const StageHistory* history, std::size_t stage);

// By positions of stages that have graphs.
using StageGraphs = std::map<std::size_t, std::shared_ptr<const Graph>>;
using StagePair = std::pair<std::size_t, std::size_t>;  // the earlier first

// Of a source: what has been read of it already is not read again.
struct StagesToRead {
  std::optional<RunReader> run = {};  // none: a model, which has a history
  std::int64_t session = 0;
  std::vector<StageFacts> stages = {};  // all of the source
  StagePair pair = {};                  // the stages
  StagePair with_graphs = {};           // the positions that have theirs
  std::shared_ptr<const StageHistory> history = {};
  StageGraphs graphs = {};
};

// Of the imported stage and the last one.
struct StagesAhead {
  std::shared_ptr<const StageHistory> history = {};
  StageGraphs graphs = {};
  FateTable fates = {};
  LogEntries entries = {};
};
// Throws what reading throws.
StagesAhead read_stages_ahead(StagesToRead what);

// Of any two stages.
struct DiffAhead {
  std::shared_ptr<const StageHistory> history = {};
  StageGraphs graphs = {};
  StagePair pair = {};
  std::unique_ptr<const StageDiff> diff = {};
};
// Throws what reading throws.
DiffAhead read_diff_ahead(StagesToRead what);

struct TimesAhead {
  std::shared_ptr<const profiler::StepTimes> times = {};
  std::map<profiler::GroupBy, std::unique_ptr<const CallTable>> calls_by = {};
};
struct TimesToRead {
  profiler::EventView events;
  PlanView plan;
  std::optional<Machine> machine = {};
  std::shared_ptr<const profiler::StepTimes> times = {};
};
TimesAhead read_times_ahead(TimesToRead what);

}  // namespace trainscope::gui
