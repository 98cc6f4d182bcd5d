// Stages in memory or in a run's folder -> a history.
#include "engine/stage_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"

namespace trainscope {
namespace {

// A stage that changed nothing may have the file of the one before it.
HistoryStage history_stage(const RunReader& run, const StageRecord& record, std::size_t index) {
  HistoryStage stage{.label = fmt::format("{:02}-{}", index, record.name), .rewrites = {}};
  const bool is_first = index == 0;
  if (!record.changed && !is_first) return stage;
  const std::string text = run.stage_rewrites(record);
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

Graph recorded_graph(const RunReader& run, const StageRecord& record) {
  const Evaluate evaluate = evaluator(op_table(), cpu_kernels(), {.limit = kKnownValuesLimit});
  return to_graph(OnnxModel::read(run.open_stage(record)), op_table(), {.evaluate = &evaluate});
}

}  // namespace

StageHistory StageHistory::of(Stages stages) {
  StageHistory result;
  for (Stage& stage : stages) {
    result.history_.push_back({.label = stage.label, .rewrites = std::move(stage.rewrites)});
  }
  const auto kept = std::make_shared<const Stages>(std::move(stages));
  result.graph_ = [kept](std::size_t stage) { return (*kept)[stage].graph; };
  return result;
}

StageHistory StageHistory::of(const RunReader& run) {
  const auto records = std::make_shared<const std::vector<StageRecord>>(run.stages());
  if (records->empty()) {
    throw Error(ErrorCode::kBadInput, "the run has no stages")
        .hint("stages are written when training starts");
  }
  StageHistory result;
  for (const StageRecord& record : *records) {
    result.history_.push_back(history_stage(run, record, result.history_.size()));
  }
  result.graph_ = [&run, records](std::size_t stage) {
    return recorded_graph(run, (*records)[stage]);
  };
  return result;
}

std::size_t StageHistory::find(std::string_view stage) const {
  if (stage.empty()) return history_.size() - 1;
  const std::string present = present_pass_name(stage, default_passes());
  std::vector<std::string> labels;
  for (std::size_t i = history_.size(); i-- > 0;) {
    const std::string& label = history_[i].label;
    const std::string pass = label.substr(std::min(label.find('-') + 1, label.size()));
    const bool named = label == stage || label + ".onnx" == stage ||
                       present_pass_name(pass, default_passes()) == present;
    if (named) return i;
    labels.insert(labels.begin(), label);
  }
  throw Error(ErrorCode::kUsage, fmt::format("there is no stage '{}'", printable(stage)))
      .hint(fmt::format("the stages are {}", printable(join(labels, ", "), 400)));
}

std::vector<Fate> imported_fates(const StageHistory& stages, std::string_view name) {
  const History& history = stages.history();
  const Graph end = stages.graph(history.size() - 1);
  const Fates fates(history, Fates::kModel, history.size() - 1, end);
  std::vector<Fate> found;
  std::vector<std::string> names;
  for (const NamedThing& thing : imported_things(history, stages.graph(0))) {
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
