// Reads and computes what the first selection asks for, without the window.
#include "gui/data/read_ahead.h"

#include <utility>

#include "engine/core/error.h"

namespace trainscope::gui {

LogEntries log_entries(const History& history) {
  LogEntries entries;
  for (std::size_t stage = 0; stage < history.size(); ++stage) {
    const std::vector<RewriteEntry>& log = history[stage].rewrites.entries;
    for (std::size_t i = 0; i < log.size(); ++i) {
      const LogEntry place{.stage = static_cast<std::uint32_t>(stage),
                           .entry = static_cast<std::uint32_t>(i)};
      const auto add = [&](const NamedThing& thing) {
        if (!thing.is_node) return;
        std::vector<LogEntry>& own = entries[static_cast<std::uint32_t>(thing.serial)];
        const bool is_there =
            !own.empty() && own.back().stage == place.stage && own.back().entry == place.entry;
        if (!is_there) own.push_back(place);
      };
      add(log[i].thing);
      for (const NamedThing& other : log[i].others) add(other);
    }
  }
  return entries;
}

FateTable FateTable::of(std::vector<Fate> fates) {
  FateTable table{.all = std::move(fates)};
  for (std::size_t i = 0; i < table.all.size(); ++i) {
    const NamedThing& thing = table.all[i].thing;
    if (!thing.is_node) continue;
    table.by_name.try_emplace(thing.name, i);
    table.by_serial.try_emplace(static_cast<std::uint32_t>(thing.serial), i);
  }
  return table;
}

CallTable CallTable::of(const profiler::StepTimes& times, const PlanView& plan,
                        profiler::GroupBy by, const Machine* machine) {
  CallTable calls;
  calls.table = profiler::breakdown(times, plan, by, {.machine = machine, .keeps_steps = false});
  profiler::sort_rows(calls.table, "ms");
  for (std::size_t i = 0; i < calls.table.rows.size(); ++i) {
    const profiler::BreakdownRow& row = calls.table.rows[i];
    if (row.is_call) calls.row_of.try_emplace(row.name, i);
  }
  return calls;
}

Graph stage_graph(const RunReader* run, std::int64_t session, const StageRecord& record,
                  const StageHistory* history, std::size_t stage) {
  if (run != nullptr) return read_stage_graph(*run, record, session);
  require(history != nullptr, ErrorCode::kBadInput, "the stages have no graphs");
  return history->graph(stage);
}

namespace {

// The history and both graphs, as far as they have not been read.
void read_what_is_missing(StagesToRead& what) {
  const RunReader* run = what.run ? &*what.run : nullptr;
  if (what.history == nullptr && run != nullptr) {
    what.history = std::make_shared<const StageHistory>(StageHistory::of(*run, what.session));
  }
  require(what.history != nullptr && what.history->history().size() == what.stages.size(),
          ErrorCode::kBadInput, "stages were written since they were read");
  for (const std::size_t stage : {what.with_graphs.first, what.with_graphs.second}) {
    std::shared_ptr<const Graph>& graph = what.graphs[stage];
    if (graph != nullptr) continue;
    graph = std::make_shared<const Graph>(
        stage_graph(run, what.session, what.stages[stage].record, what.history.get(), stage));
  }
}

}  // namespace

StagesAhead read_stages_ahead(StagesToRead what) {
  read_what_is_missing(what);
  const auto [first, last] = what.with_graphs;
  StagesAhead ahead{.history = std::move(what.history), .graphs = std::move(what.graphs)};
  ahead.fates = FateTable::of(
      imported_fates(ahead.history->shared_history(), *ahead.graphs[first], *ahead.graphs[last]));
  ahead.entries = log_entries(ahead.history->history());
  return ahead;
}

DiffAhead read_diff_ahead(StagesToRead what) {
  read_what_is_missing(what);
  const auto [earlier, later] = what.with_graphs;
  DiffAhead ahead{
      .history = std::move(what.history), .graphs = std::move(what.graphs), .pair = what.pair};
  ahead.diff = std::make_unique<const StageDiff>(diff_stages(
      ahead.history->shared_history(), {.stage = what.pair.first, .graph = *ahead.graphs[earlier]},
      {.stage = what.pair.second, .graph = *ahead.graphs[later]}));
  return ahead;
}

TimesAhead read_times_ahead(TimesToRead what) {
  TimesAhead ahead{.times = std::move(what.times)};
  if (ahead.times == nullptr) {
    ahead.times =
        std::make_shared<const profiler::StepTimes>(profiler::step_times(what.events, what.plan));
  }
  for (const profiler::GroupBy by : {profiler::GroupBy::kKernel, profiler::GroupBy::kCall}) {
    ahead.calls_by[by] = std::make_unique<const CallTable>(
        CallTable::of(*ahead.times, what.plan, by, what.machine ? &*what.machine : nullptr));
  }
  return ahead;
}

}  // namespace trainscope::gui
