// `inspect` without a stage: models and runs.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "cli/print/inspect.h"
#include "engine/core/numbers.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string dims_text(const ModelTensor& tensor) {
  if (!tensor.dims) return "of unknown rank";
  std::vector<std::string> dims;
  for (const ModelDim& dim : *tensor.dims) {
    dims.push_back(dim.size ? std::to_string(*dim.size)
                            : (dim.symbol.empty() ? "?" : printable(dim.symbol)));
  }
  return fmt::format("{}[{}]", name_of(tensor.dtype), join(dims, ","));
}

Json tensor_facts(const ModelTensor& tensor) {
  Json json = Json::object({{"name", tensor.name}, {"dtype", name_of(tensor.dtype)}});
  if (!tensor.dims) return json;
  Json dims = Json::array();
  for (const ModelDim& dim : *tensor.dims) {
    dims.push_back(dim.size ? Json(*dim.size) : (dim.symbol.empty() ? Json() : Json(dim.symbol)));
  }
  json.set("shape", std::move(dims));
  return json;
}

Json tensors_facts(const std::vector<ModelTensor>& tensors) {
  Json list = Json::array();
  for (const ModelTensor& tensor : tensors) list.push_back(tensor_facts(tensor));
  return list;
}

// A stage that changed nothing has the file of the one before it, but a name of its own.
std::string stage_row(const StageRecord& stage, std::size_t index) {
  const std::string label = fmt::format("{:02}-{}", index, printable(stage.name, 28));
  std::string counters;
  for (const auto& [name, count] : stage.counters) {
    counters += fmt::format("{}{} {}", counters.empty() ? "" : ", ", count, printable(name));
  }
  return fmt::format("  {:<32} {:>6} {:>7} {:>9.2f} {:>14} {:>14}  {}\n", label, stage.nodes_after,
                     stage.changed ? "changed" : "same", stage.milliseconds, stage.flops_after,
                     stage.bytes_after, counters);
}

std::string session_row(const RunSession& session) {
  std::string text =
      fmt::format("  {}  {} after step {} (from {}), {} threads, {}", printable(session.start_time),
                  name_of(session.status), session.last_step, session.from_step, session.threads,
                  printable(session.isa));
  if (!session.message.empty()) text += fmt::format(": {}", printable(session.message, 400));
  return text + "\n";
}

// Wall time of a step, the median of those of the session but for its first, which warms up.
std::optional<double> warm_step_ms(const Metrics& metrics, const RunSession& session) {
  std::vector<double> times;
  for (const StepRecord& step : metrics.steps) {
    if (step.step > session.from_step + 1) times.push_back(step.step_ms);
  }
  if (times.empty()) return std::nullopt;
  return median(std::move(times));
}

}  // namespace

Outcome describe_model(const OnnxModel& model) {
  std::int64_t elements = 0;
  Json initializers = Json::array();
  for (const ModelInitializer& initializer : model.initializers()) {
    elements += initializer.type.elements();
    initializers.push_back(Json::object({{"name", initializer.name},
                                         {"dtype", name_of(initializer.type.dtype)},
                                         {"shape", Json::list(initializer.type.shape.span())}}));
  }
  Json ops = Json::object();
  std::string op_text;
  for (const auto& [op, count] : model.op_counts()) {
    ops.set(op, count);
    op_text += fmt::format("{}{} {}", op_text.empty() ? "" : ", ", count, printable(op));
  }
  Outcome outcome;
  outcome.facts = Json::object({{"model", model.path().string()},
                                {"producer", model.producer()},
                                {"ir_version", model.ir_version()},
                                {"opset", model.opset()},
                                {"node_count", model.node_count()},
                                {"inputs", tensors_facts(model.inputs())},
                                {"outputs", tensors_facts(model.outputs())},
                                {"initializer_elements", elements},
                                {"initializers", std::move(initializers)},
                                {"ops", std::move(ops)}});
  outcome.text =
      fmt::format("model         {} ({}, opset {}, IR {})\n", printable(model.path().string()),
                  printable(model.producer()), model.opset(), model.ir_version());
  for (const ModelTensor& input : model.inputs()) {
    outcome.text += fmt::format("input         {} {}\n", printable(input.name), dims_text(input));
  }
  for (const ModelTensor& output : model.outputs()) {
    outcome.text += fmt::format("output        {} {}\n", printable(output.name), dims_text(output));
  }
  outcome.text += fmt::format("initializers  {} with {} numbers\nnodes         {}: {}\n",
                              model.initializers().size(), elements, model.node_count(), op_text);
  return outcome;
}

Outcome describe_stages(std::span<const StageRecord> stages) {
  Outcome outcome;
  Json list = Json::array();
  outcome.text = fmt::format("  {:<32} {:>6} {:>7} {:>9} {:>14} {:>14}  {}\n", "stage", "nodes", "",
                             "ms", "FLOPs", "bytes", "counted");
  for (const StageRecord& stage : stages) {
    list.push_back(to_json(stage));
    outcome.text += stage_row(stage, list.as_array().size() - 1);
  }
  outcome.facts.set("stages", std::move(list));
  return outcome;
}

Outcome explain_stages(std::span<const StageRecord> stages) {
  Outcome outcome = describe_stages(stages);
  outcome.text += "near misses\n";
  bool any = false;
  for (const StageRecord& stage : stages) {
    for (const NearMissRecord& miss : stage.near_misses) {
      outcome.text += fmt::format("  {}  {}: {}\n", printable(stage.name), printable(miss.node()),
                                  printable(miss.reason, 400));
      for (const std::string& other : std::span(miss.nodes).subspan(1)) {
        outcome.text += fmt::format("    with {}\n", printable(other));
      }
      any = true;
    }
  }
  if (!any) outcome.text += "  none\n";
  return outcome;
}

Outcome describe_run(const RunReader& run) {
  const RunManifest& manifest = run.manifest();
  const Metrics metrics = run.metrics();
  Outcome outcome = describe_stages(run.stages());
  const Json stages = outcome.facts.at("stages");
  outcome.facts =
      Json::object({{"run", run.folder().path().string()}, {"manifest", to_json(manifest)}});
  std::string text =
      fmt::format("run    {}\nmodel  {}\ndata   {}\n", printable(run.folder().path().string()),
                  printable(manifest.model.get_or<std::string>("file", "?")),
                  printable(manifest.options.get_or<std::string>("data", "?")));
  if (!metrics.steps.empty()) {
    const StepRecord& last = metrics.steps.back();
    text += fmt::format("steps  {}, loss {:.6g} to {:.6g}, {:.4g} ms each (median)\n", last.step,
                        metrics.steps.front().loss, last.loss, metrics.median_step_ms());
    outcome.facts.set("last_step", to_json(last));
    outcome.facts.set("median_step_ms", metrics.median_step_ms());
    const std::optional<double> warm = warm_step_ms(metrics, manifest.sessions.back());
    if (warm) outcome.facts.set("warm_step_ms", *warm);
  }
  if (!metrics.evaluations.empty()) {
    const EvaluationRecord& last = metrics.evaluations.back();
    text += fmt::format("       validation loss {:.6g} after step {}\n", last.loss, last.step);
    outcome.facts.set("last_evaluation", to_json(last));
  }
  text += "sessions\n";
  for (const RunSession& session : manifest.sessions) text += session_row(session);
  outcome.text = text + "stages\n" + outcome.text;
  outcome.facts.set("stages", stages);
  return outcome;
}

}  // namespace trainscope
