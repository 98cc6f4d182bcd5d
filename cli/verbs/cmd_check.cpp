// check: whether a model can be trained, with everything that is missing in one report.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/flags/training_flags.h"
#include "cli/verbs/check_expectation.h"
#include "engine/core/error.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"
#include "engine/model_warnings.h"

namespace trainscope {
namespace {

constexpr Flag kCheckFlags[] = {
    {.name = "expect",
     .value = "FILE.safetensors",
     .help = "One batch with PyTorch's loss and names of parameters: exit 9 unless they are equal"},
};

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

// What training does with each initializer; integers that shapes are made of are left out.
Json choices_facts(const ParameterChoices& choices, InitializerRole role) {
  Json list = Json::array();
  for (const InitializerChoice& choice : choices.initializers) {
    if (choice.role != role || !is_float(choice.type.dtype)) continue;
    list.push_back(Json::object({{"name", choice.name},
                                 {"dtype", name_of(choice.type.dtype)},
                                 {"shape", Json::list(choice.type.shape.span())},
                                 {"reason", choice.reason}}));
  }
  return list;
}

std::string choice_lines(const ParameterChoices& choices) {
  std::string text;
  for (InitializerRole role :
       {InitializerRole::kTrained, InitializerRole::kFrozen, InitializerRole::kState,
        InitializerRole::kBuffer, InitializerRole::kConstant}) {
    const std::string word =
        role == InitializerRole::kTrained ? "trains" : std::string(name_of(role));
    for (const InitializerChoice& choice : choices.initializers) {
      if (choice.role != role || !is_float(choice.type.dtype)) continue;
      text += fmt::format("  {:<8} {} {}: {}\n", word, printable(choice.name),
                          type_text(choice.type), choice.reason);
    }
  }
  return text;
}

void add_notes(const OnnxModel& model, const ParameterChoices& choices, Outcome& outcome) {
  Json notes = Json::array();
  const auto note = [&](const std::string& text) {
    notes.push_back(text);
    outcome.text += fmt::format("note: {}\n", text);
  };
  for (const std::string& sentence : untold(choices)) note(sentence);
  for (const ParameterFault& each : choices.notes) note(each.text());
  for (const std::string& each : choices.remarks) note(each);
  Json restored = Json::array();
  for (const RestoredInitializer& each : restored_initializers(model)) {
    restored.push_back(Json::object({{"name", each.name}, {"from", each.from}, {"how", each.how}}));
    outcome.text += fmt::format("restored {}: {}\n", printable(each.name), each.how);
  }
  outcome.facts.set("notes", std::move(notes));
  outcome.facts.set("restored", std::move(restored));
}

Outcome describe(const OnnxModel& model, const Compiled& compiled,
                 const ParameterChoices& choices) {
  const Program& program = compiled.program;
  const std::size_t trained = program.graph.values_of(ValueKind::kParameter).size();
  Outcome outcome;
  outcome.facts = Json::object({{"model", model.path().string()},
                                {"trainable", true},
                                {"nodes", model.node_count()},
                                {"calls", program.calls.size()},
                                {"parameter_elements", parameter_elements(program.graph)},
                                {"parameters", choices_facts(choices, InitializerRole::kTrained)},
                                {"frozen", choices_facts(choices, InitializerRole::kFrozen)},
                                {"buffers", choices_facts(choices, InitializerRole::kBuffer)},
                                {"constants", choices_facts(choices, InitializerRole::kConstant)},
                                {"statistics", choices_facts(choices, InitializerRole::kState)},
                                {"states", tensors(program.graph, ValueKind::kState)},
                                {"inputs", tensors(program.graph, ValueKind::kInput)}});
  outcome.text =
      fmt::format("{} can be trained: {} nodes become {} calls a step\n",
                  printable(model.path().string()), model.node_count(), program.calls.size());
  outcome.text += choice_lines(choices);
  outcome.text +=
      fmt::format("{} parameters with {} numbers\n", trained, parameter_elements(program.graph));
  add_notes(model, choices, outcome);
  return outcome;
}

Outcome run_check(const Invocation& invocation) {
  const OnnxModel model = OnnxModel::read(invocation.argument(0));
  warn_of(model, invocation.log());
  const Settings& settings = invocation.settings();
  const Sizes sizes = resolve_sizes(model, size_request(settings));
  CompileOptions options = compile_options(invocation, model, sizes);
  options.passes.keep = KeepGraphs::kLast;
  const std::unique_ptr<const Compiled> compiled = compile_or_report(model, options);
  Outcome outcome = describe(model, *compiled, choose_parameters(model, options.import));
  if (settings.has("expect")) {
    const SafetensorsFile expected = SafetensorsFile::open(settings.text("expect"));
    add_expectation(compare_with(expected, model, options), outcome);
  }
  return outcome;
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .summary = "Tell whether a model can be trained, and everything that is missing.",
          .arguments = {{.name = "MODEL.onnx", .help = "the forward graph"}},
          .flags = join_flags({compile_flags(), kCheckFlags}),
          .examples = {"trainscope check model.onnx",
                       "trainscope check model.onnx --loss mse --expect expected.safetensors"},
          .run = run_check};
}

}  // namespace trainscope
