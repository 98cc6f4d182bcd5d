// bisect: what is to blame where two runs part; or where one is not what its model says.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "cli/bisect/bisected_model.h"
#include "cli/bisect/verdict.h"
#include "cli/bisect/within_run.h"
#include "cli/command.h"
#include "cli/compare/find_trace.h"
#include "cli/replay/replay_command.h"
#include "engine/bisect/gradient_check.h"
#include "engine/core/error.h"
#include "engine/core/system/scratch_folder.h"
#include "engine/core/text.h"
#include "profiler/numerics/tensor_comparison.h"

namespace trainscope {

namespace {

namespace fs = std::filesystem;
using profiler::IndexedTrace;
using profiler::TensorComparison;
using profiler::Trace;
using profiler::TraceRow;

constexpr Flag kBisectFlags[] = {
    {.name = "between",
     .type = FlagType::kChoice,
     .value = "stages|devices|kernels|precisions",
     .help = "Of one run: which pass changes a result, or which call of the program an order, "
             "recomputation, batch tiles or threads do; which call a device computes otherwise; "
             "which call its kernel computes otherwise than the reference kernel; which op has no "
             "room in bf16 and fp16"},
    {.name = "step",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Of one run: the step that is looked at; default 1, or the first that was recorded",
     .minimum = 1},
    {.name = "model",
     .value = "FILE",
     .help = "The model that was trained, where both folders are traces without a run"},
    kNotBitwiseFlag,
};

Trace trace_of(const std::string& folder) {
  std::optional<Trace> trace = find_trace(folder);
  if (trace) return *std::move(trace);
  throw Error(ErrorCode::kUsage, fmt::format("'{}' has no trace of its numbers", printable(folder)))
      .hint("train with --record-numerics");
}

bool is_complete(const IndexedTrace& trace, const std::vector<std::int64_t>& steps) {
  return std::ranges::all_of(trace.trace().rows(), [&](const TraceRow& row) {
    const bool of_step = std::ranges::find(steps, row.step) != steps.end();
    return !of_step || row.kind == profiler::TraceKind::kOwn || trace.full(row).has_value();
  });
}

// A trace of a run of ours with all elements, if a replay gives its bits; else as it is.
void complete(BisectedRun& side, const std::vector<std::int64_t>& steps,
              const Invocation& invocation, const fs::path& scratch) {
  // With --record-values all rows are of the step computed once more, not of the one that was run.
  const bool as_it_ran = side.trace.trace().header().mode != "all";
  if (!knows_model(side.folder) || (as_it_ran && is_complete(side.trace, steps))) return;
  try {
    side.trace = IndexedTrace(
        with_elements(invocation, side.folder, steps, kBisectFlags, scratch / side.name));
    side.limits.clear();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    invocation.log().warning("{} is bisected by its sketches: {}", side.name, error.message());
  }
}

void note_limits(const TensorComparison& both, BisectedRun& a, BisectedRun& b) {
  for (const profiler::ComparedTensor& tensor : both.tensors) {
    if (!tensor.limit) continue;
    a.limits.insert_or_assign(tensor.row_a, *tensor.limit);
    b.limits.insert_or_assign(tensor.row_b, *tensor.limit);
  }
}

// What is said of a difference that no op makes by itself.
void add_difference(const TensorComparison& both, const Trace& a, Outcome& outcome) {
  outcome.facts.set("first", Json());
  if (!both.first) {
    outcome.text += "no tensor is beyond its limit of `compare`\n";
    return;
  }
  const profiler::ComparedTensor& tensor = both.tensors[*both.first];
  const TraceRow& row = a.rows()[tensor.row_a];
  std::int64_t flips = 0;
  for (const profiler::ComparedTensor& each : both.tensors) flips += each.kink_flips.value_or(0);
  outcome.facts.set("first", Json::object({{"step", row.step},
                                           {"phase", name_of(row.phase)},
                                           {"value", tensor.key},
                                           {"local", false},
                                           {"over_limit", tensor.over_limit()},
                                           {"kink_flips", flips}}));
  outcome.text += fmt::format("first beyond its limit: step {}, {}, {}: {:.3g} times", row.step,
                              name_of(row.phase), printable(tensor.key), tensor.over_limit());
  if (outcome.exit_code == 0) {
    outcome.text += ", propagated: errors of what it is made of, amplified";
    if (flips > 0) outcome.text += fmt::format("; {} elements on a kink went the other way", flips);
  }
  outcome.text += "\n";
}

std::vector<std::int64_t> steps_to_first(const TensorComparison& both, const Trace& a) {
  if (!both.first) return {both.steps.front()};
  const std::int64_t last =
      std::max(both.steps.front(), a.rows()[both.tensors[*both.first].row_a].step);
  std::vector<std::int64_t> steps;
  for (const std::int64_t step : both.steps) {
    if (step <= last) steps.push_back(step);
  }
  return steps;
}

Outcome bisect_pair(const Invocation& invocation) {
  const std::string& folder_a = invocation.argument(0);
  const std::string& folder_b = invocation.argument(1);
  BisectedRun a{.name = "A", .folder = folder_a, .trace = IndexedTrace(trace_of(folder_a))};
  BisectedRun b{.name = "B", .folder = folder_b, .trace = IndexedTrace(trace_of(folder_b))};
  const TensorComparison both = compare_tensors(a.trace.trace(), b.trace.trace());
  const std::vector<std::int64_t> steps = steps_to_first(both, a.trace.trace());
  const Trace first = a.trace.trace();
  note_limits(both, a, b);
  const bool by_b = !knows_model(folder_a) &&
                    (knows_model(folder_b) || a.trace.trace().header().producer != "trainscope");
  const BisectedRun& known = by_b ? b : a;
  const BisectedModel model = bisected_model(invocation, known.folder, known.trace.trace());
  const ScratchFolder scratch;
  for (BisectedRun* side : {&a, &b}) complete(*side, steps, invocation, scratch.path());
  const DefinedStep step(model.model, model.compile);
  const StartOf start = [&](std::int64_t at) {
    std::optional<StepStart> found = recorded_start(a.trace, at);
    return found ? found : recorded_start(b.trace, at);
  };
  for (BisectedRun* side : {&a, &b}) replay_side(*side, step, model, start, steps);
  Outcome outcome =
      verdict({&a, &b}, fmt::format("trainscope compare {} {} --only tensors", folder_a, folder_b));
  add_difference(both, first, outcome);
  return outcome;
}

// A run by itself: against its own definition, and the definition's gradients against its nodes.
Outcome bisect_alone(const BisectedModel& model, BisectedRun& run, std::int64_t at) {
  const DefinedStep step(model.model, model.compile);
  const StartOf start = [&](std::int64_t number) { return recorded_start(run.trace, number); };
  replay_side(run, step, model, start, {at});
  const std::optional<StepStart> begun = start(at);
  if (begun) {
    const double rate = learning_rate_at(model.schedule, at);
    GradientCheck check = check_gradients(step.truth(), step.truth().graph(), op_table(),
                                          inputs_of(*begun, at, 0, rate));
    run.found.judged += check.nodes + check.sums;
    for (LocalFault& fault : check.faults) {
      fault.step = at;
      run.found.faults.push_back(std::move(fault));
    }
  }
  return verdict({&run}, fmt::format("trainscope inspect {} --stages", run.folder));
}

Outcome bisect_one(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const std::string& folder = invocation.argument(0);
  const std::optional<Trace> trace = find_trace(folder);
  const bool is_run = knows_model(folder);
  require(is_run || trace.has_value(), ErrorCode::kUsage, "'{}' is neither a run nor a trace",
          printable(folder));
  const std::int64_t first = trace && !trace->steps().empty() ? trace->steps().front() : 1;
  const std::int64_t at = settings.find_integer("step").value_or(first);
  const BisectedModel model = bisected_model(invocation, folder, trace);
  const ScratchFolder scratch;
  const auto recorded = [&] {
    if (!is_run) return IndexedTrace(*trace);
    return IndexedTrace(with_elements(invocation, folder, {at}, kBisectFlags, scratch.path()));
  };
  BisectedRun run{.name = "the run", .folder = folder, .trace = recorded()};
  if (!settings.has("between")) return bisect_alone(model, run, at);
  const std::optional<StepStart> begun = recorded_start(run.trace, at);
  require(begun.has_value(), ErrorCode::kUsage,
          "the trace has not all elements of the inputs of step {}", at);
  const auto inputs = inputs_of(*begun, at, 0, learning_rate_at(model.schedule, at));
  const std::string& between = settings.text("between");
  const bool is_compiled = between == "stages" || between == "devices";
  if (is_compiled && model.compile.training.precision == StepPrecision::kTf32) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("--between {} has limits of f32 alone, and this run is in TF32", between))
        .hint("bisect without --between holds the run against TF32's rounding");
  }
  if (between == "stages") return bisect_stages_of(model, folder, inputs);
  if (between == "devices") return bisect_devices_of(model, folder, inputs);
  if (between == "kernels") return bisect_kernels_of(model, folder, inputs);
  return bisect_precisions_of(model, folder, at, *begun);
}

Outcome run_bisect(const Invocation& invocation) {
  const bool pair = !invocation.argument(1).empty();
  require(!pair || !invocation.settings().has("between"), ErrorCode::kUsage,
          "--between looks at one run: give RUN_A alone");
  require(!pair || !invocation.settings().has("step"), ErrorCode::kUsage,
          "--step says which step of one run is looked at: give RUN_A alone");
  return unless_stopped([&] { return pair ? bisect_pair(invocation) : bisect_one(invocation); });
}

}  // namespace

Command bisect_command() {
  Command command = replay_command(kBisectFlags, run_bisect);
  command.name = "bisect";
  command.summary =
      "Name the op, pass, kernel or update to blame where two runs part, or one is wrong.";
  command.arguments = {{.name = "RUN_A", .help = "the folder of a run, or of a trace"},
                       {.name = "RUN_B",
                        .help = "another run of the same model on the same batches",
                        .required = false}};
  command.examples = {"trainscope bisect runs/ours runs/torch",
                      "trainscope bisect runs/ours --between stages"};
  command.essential = {"between", "step", "model", "not-bitwise"};
  return command;
}

}  // namespace trainscope
