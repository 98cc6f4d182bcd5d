// check: whether a model can be trained, with everything that is missing in one report.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/flags/training_flags.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/model_warnings.h"

namespace trainscope {
namespace {

// Compiling for another mode finds what a missing gradient hid: kernels of the forward graph.
std::vector<std::string> kernels_missing_forward(const OnnxModel& model, CompileOptions options) {
  options.training.mode = GraphMode::kEvaluate;
  try {
    compile(model, options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kBadInput) return error.context();
    throw;
  }
  return {};
}

std::unique_ptr<const Compiled> compile_or_report(const OnnxModel& model,
                                                  const CompileOptions& options) {
  try {
    return compile(model, options);
  } catch (Error& error) {
    if (error.code() != ErrorCode::kBadInput || !missing_ops(model, op_table()).empty()) throw;
    const std::vector<std::string> known = error.context();
    for (const std::string& more : kernels_missing_forward(model, options)) {
      if (std::ranges::find(known, more) == known.end()) error.at(more);
    }
    throw;
  }
}

Json tensors(const Graph& graph, ValueKind kind) {
  Json list = Json::array();
  for (ValueId id : graph.values_of(kind)) {
    const Value& value = graph.value(id);
    list.push_back(Json::object({{"name", value.name},
                                 {"dtype", name_of(value.type.dtype)},
                                 {"shape", Json::list(value.type.shape.span())}}));
  }
  return list;
}

std::int64_t parameter_elements(const Graph& graph) {
  std::int64_t count = 0;
  for (ValueId id : graph.values_of(ValueKind::kParameter)) {
    count += graph.value(id).type.elements();
  }
  return count;
}

Outcome run_check(const Invocation& invocation) {
  const OnnxModel model = OnnxModel::read(invocation.argument(0));
  warn_of(model, invocation.log());
  const Sizes sizes = resolve_sizes(model, size_request(invocation.settings()));
  CompileOptions options = compile_options(invocation, model, sizes);
  options.passes.keep = KeepGraphs::kLast;
  const std::unique_ptr<const Compiled> compiled = compile_or_report(model, options);
  const Program& program = compiled->program;
  Outcome outcome;
  outcome.facts = Json::object({{"model", model.path().string()},
                                {"trainable", true},
                                {"nodes", model.node_count()},
                                {"calls", program.calls.size()},
                                {"parameter_elements", parameter_elements(program.graph)},
                                {"parameters", tensors(program.graph, ValueKind::kParameter)},
                                {"states", tensors(program.graph, ValueKind::kState)},
                                {"inputs", tensors(program.graph, ValueKind::kInput)}});
  outcome.text =
      fmt::format("{} can be trained: {} nodes become {} calls a step\n",
                  printable(model.path().string()), model.node_count(), program.calls.size());
  for (ValueId id : program.graph.values_of(ValueKind::kParameter)) {
    const Value& value = program.graph.value(id);
    outcome.text += fmt::format("  trains {} {}\n", printable(value.name), type_text(value.type));
  }
  outcome.text += fmt::format("{} parameters with {} numbers\n",
                              program.graph.values_of(ValueKind::kParameter).size(),
                              parameter_elements(program.graph));
  return outcome;
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .summary = "Tell whether a model can be trained, and everything that is missing.",
          .arguments = {{.name = "MODEL.onnx", .help = "the forward graph"}},
          .flags = compile_flags(),
          .examples = {"trainscope check model.onnx",
                       "trainscope check model.onnx --loss mse:output=y --json"},
          .run = run_check};
}

}  // namespace trainscope
