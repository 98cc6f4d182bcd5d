// The stages of a compilation, its program, the kernels of a graph, devices, a step in bf16 and
// fp16.
#include "cli/bisect/within_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/bisect/fault_text.h"
#include "cli/bisect/program_text.h"
#include "cli/bisect/verdict.h"
#include "engine/bisect/defined_step.h"
#include "engine/bisect/limits.h"
#include "engine/bisect/step_recording.h"
#include "engine/core/error.h"
#include "engine/core/system/scratch_folder.h"
#include "engine/session.h"

namespace trainscope {
namespace {

// In f64 with all that stages are compared by.
CompileOptions for_stages(const CompileOptions& given) {
  CompileOptions options = in_f64(given);
  options.training.keep_gradients = true;
  options.training.keep_outputs = true;
  options.training.optimizer.in_backward = false;
  options.passes.keep = KeepGraphs::kAll;
  return options;
}

CompileStep step_of(const OnnxModel& model) {
  return [&model](const CompileOptions& given) {
    CompileOptions options = given;
    options.passes.keep = KeepGraphs::kAll;
    return compile(model, options);
  };
}

std::vector<DeviceHandle> devices_here() {
  std::vector<DeviceHandle> devices;
  for (const std::string_view name : back_end_names()) {
    if (why_no_device(name).empty()) devices.push_back(device_of(name));
  }
  return devices;
}

// Why each back end that has none has no device.
std::string missing_devices() {
  std::string text;
  for (const std::string_view name : back_end_names()) {
    const std::string why = why_no_device(name);
    if (!why.empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, why);
  }
  return text;
}

// The step node by node in this precision, on its first micro-batch, into a trace.
void record_rounded(const BisectedModel& model, StepPrecision precision, std::int64_t at,
                    const StepStart& begun, const Folder& folder) {
  CompileOptions options = model.compile;
  options.training.precision = precision;
  const UnfusedStep rounded(model.model, options, UnfusedEnd::kUpdate);
  record_steps({.step = rounded,
                .graph = rounded.graph(),
                .evaluate = rounded.evaluate(),
                .schedule = model.schedule,
                .from = at,
                .first = at,
                .kept = begun.kept},
               {begun.batches.front()}, {.producer = "trainscope", .version = "", .mode = "all"},
               folder);
}

}  // namespace

Outcome bisect_stages_of(const BisectedModel& model, const std::string& folder,
                         const std::map<std::string, Tensor>& inputs) {
  const Stages stages = build_stages(model.model, for_stages(model.compile));
  const Evaluate evaluate =
      evaluator(op_table(), cpu_kernels(), {.threads = model.compile.lower.threads});
  Outcome outcome = print(bisect_stages(stages, inputs, evaluate), folder);
  if (outcome.exit_code != 0) return outcome;
  Outcome program = print(bisect_program(step_of(model.model), model.compile, inputs), folder);
  outcome.text += program.text;
  outcome.exit_code = program.exit_code;
  outcome.facts.set("culprit", program.facts.at("culprit"));
  outcome.facts.set("program", std::move(program.facts));
  return outcome;
}

Outcome bisect_devices_of(const BisectedModel& model, const std::string& folder,
                          const std::map<std::string, Tensor>& inputs) {
  const std::vector<DeviceHandle> devices = devices_here();
  if (devices.size() < 2) {
    throw Error(ErrorCode::kNoDevice, "there is no second device here to compare with")
        .at(missing_devices())
        .hint("--between kernels compares the kernels of one");
  }
  return print(check_devices(step_of(model.model), model.compile, devices, inputs), folder);
}

Outcome bisect_kernels_of(const BisectedModel& model, const std::string& folder,
                          const std::map<std::string, Tensor>& inputs) {
  CompileOptions options = model.compile;
  options.passes.keep = KeepGraphs::kAll;
  const Stages stages = build_stages(model.model, options);
  return print(bisect_kernels(stages.back().graph, inputs, cpu_kernels(), options.lower.kernels,
                              options.lower.threads),
               folder);
}

Outcome bisect_precisions_of(const BisectedModel& model, const std::string& folder, std::int64_t at,
                             const StepStart& begun) {
  std::vector<StepPrecision> precisions = {model.compile.training.precision};
  const bool is_full =
      precisions.front() == StepPrecision::kF32 || precisions.front() == StepPrecision::kTf32;
  if (is_full) {
    precisions = {StepPrecision::kBF16, StepPrecision::kF16};
  }
  CompileOptions plain = model.compile;
  plain.training.precision = StepPrecision::kF32;
  const DefinedStep step(model.model, plain);
  Json facts = Json::array();
  Outcome outcome;
  for (const StepPrecision precision : precisions) {
    const ScratchFolder scratch;
    record_rounded(model, precision, at, begun, Folder::open(scratch.path()));
    BisectedRun side{.name = std::string(name_of(precision)),
                     .folder = folder,
                     .trace = profiler::IndexedTrace(profiler::Trace::open(scratch.path()))};
    const DType dtype = precision == StepPrecision::kBF16 ? DType::kBF16 : DType::kF16;
    side.found = replay_run({.step = step,
                             .trace = side.trace,
                             .limit_of = [](std::size_t) { return 1.0; },
                             .schedule = model.schedule,
                             .start = nullptr,
                             .steps = {at},
                             .rounding = rounding_of(dtype)});
    Outcome one = verdict({&side}, fmt::format("trainscope compare {} RUN_IN_{} --only tensors",
                                               folder, name_of(precision)));
    outcome.text += fmt::format("{}: {}", name_of(precision), one.text);
    outcome.exit_code = std::max(outcome.exit_code, one.exit_code);
    facts.push_back(std::move(one.facts));
  }
  outcome.facts = Json::object({{"between", "precisions"}});
  outcome.facts.set("precisions", std::move(facts));
  return outcome;
}

}  // namespace trainscope
