// Stages in memory or in a run's folder -> a history.
#include "engine/stage_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"

namespace trainscope {
namespace {

// What follows the number of a label.
std::string pass_of(const std::string& label) {
  return label.substr(std::min(label.find('-') + 1, label.size()));
}

std::optional<std::int64_t> number_of(const std::string& label) {
  return parse_int(std::string_view(label).substr(0, label.find('-')));
}

// One session of a run.
struct RecordedStages {
  RunReader run;
  std::int64_t session;
  std::vector<StageRecord> records;

  HistoryStage history_stage(std::size_t index) const;
  Graph graph(std::size_t index) const { return read_stage_graph(run, records[index], session); }
};

// A stage that changed nothing may have the file of the one before it.
HistoryStage RecordedStages::history_stage(std::size_t index) const {
  const StageRecord& record = records[index];
  HistoryStage stage{.label = fmt::format("{:02}-{}", index, record.name), .rewrites = {}};
  const bool is_first = index == 0;
  if (!record.changed && !is_first) return stage;
  const std::string text = run.stage_rewrites(record, session);
  if (text.empty() && !is_first) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the run has no rewrite log of stage {}", printable(stage.label)))
        .hint("a program from before rewrite logs wrote it: ask for the fates of its model");
  }
  try {
    stage.rewrites = rewrite_log_from(text);
  } catch (Error& error) {
    error.at(fmt::format("rewrite log of stage {}", printable(stage.label)));
    throw;
  }
  return stage;
}

}  // namespace

Graph read_stage_graph(const RunReader& run, const StageRecord& stage, std::int64_t session) {
  const Evaluate evaluate = evaluator(op_table(), cpu_kernels(), {.limit = kKnownValuesLimit});
  return to_graph(OnnxModel::read(run.open_stage(stage, session)), op_table(),
                  {.evaluate = &evaluate});
}

StageHistory StageHistory::of(Stages stages) {
  History history;
  for (Stage& stage : stages) {
    history.push_back({.label = stage.label, .rewrites = std::move(stage.rewrites)});
  }
  StageHistory result;
  result.history_ = std::make_shared<const History>(std::move(history));
  const auto kept = std::make_shared<const Stages>(std::move(stages));
  result.graph_ = [kept](std::size_t stage) { return (*kept)[stage].graph; };
  return result;
}

StageHistory StageHistory::of(const RunReader& run, std::int64_t session) {
  const auto recorded = std::make_shared<const RecordedStages>(
      RecordedStages{.run = run, .session = session, .records = run.stages(session)});
  if (recorded->records.empty()) {
    throw Error(ErrorCode::kBadInput, "the run has no stages")
        .hint("stages are written when training starts");
  }
  History history;
  for (std::size_t i = 0; i < recorded->records.size(); ++i) {
    history.push_back(recorded->history_stage(i));
  }
  StageHistory result;
  result.history_ = std::make_shared<const History>(std::move(history));
  result.graph_ = [recorded](std::size_t stage) { return recorded->graph(stage); };
  return result;
}

std::size_t find_label(std::span<const std::string> labels, std::string_view stage) {
  if (stage.empty()) return labels.size() - 1;
  // A run's stages may have older names.
  const std::string present = present_pass_name(stage, default_passes());
  const std::optional<std::int64_t> number = parse_int(stage);
  std::vector<std::string> names;
  for (std::size_t i = labels.size(); i-- > 0;) {
    const std::string& label = labels[i];
    const std::string pass = pass_of(label);
    const bool named = label == stage || label + ".onnx" == stage ||
                       present_pass_name(pass, default_passes()) == present ||
                       (number.has_value() && number_of(label) == number);
    if (named) return i;
    names.push_back(pass);
  }
  names.insert(names.end(), labels.begin(), labels.end());
  const std::string near = nearest_hint(stage, names);
  throw Error(ErrorCode::kUsage, fmt::format("there is no stage '{}'", printable(stage)))
      .hint(!near.empty() ? near
                          : fmt::format("the stages are {} to {}: `trainscope inspect --stages` "
                                        "lists them",
                                        printable(labels.front()), printable(labels.back())));
}

std::size_t StageHistory::find(std::string_view stage) const {
  std::vector<std::string> labels;
  for (const HistoryStage& each : *history_) labels.push_back(each.label);
  return find_label(labels, stage);
}

std::vector<Fate> imported_fates(const StageHistory& stages, std::string_view name) {
  return imported_fates(stages.shared_history(), stages.graph(0),
                        stages.graph(stages.history().size() - 1), name);
}

std::vector<Fate> imported_fates(const std::shared_ptr<const History>& history,
                                 const Graph& imported, const Graph& last, std::string_view name) {
  const Fates fates(history, Fates::kModel, history->size() - 1, last);
  std::vector<Fate> found;
  std::vector<std::string> names;
  for (const NamedThing& thing : imported_things(*history, imported)) {
    if (name.empty() || thing.name == name) found.push_back(fates.of(thing));
    if (!name.empty()) names.push_back(thing.name);
  }
  if (!name.empty() && found.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the model has no node or value '{}'", printable(name)))
        .hint(nearest_hint(name, names));
  }
  return found;
}

}  // namespace trainscope
