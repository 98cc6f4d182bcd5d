// at: a tensor of a past step again, bit for bit; or the first tensor that was no number.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/replay/replay_command.h"
#include "cli/replay/replayable.h"
#include "cli/source.h"
#include "cli/verbs/first_nan.h"
#include "engine/bundle/format.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/safetensors.h"
#include "engine/core/system/scratch_folder.h"
#include "engine/core/text.h"
#include "engine/run/numerics/replay.h"
#include "profiler/numerics/tensor_summary.h"

namespace trainscope {

namespace {

namespace fs = std::filesystem;
using profiler::Trace;
using profiler::TraceRow;

constexpr Flag kAtFlags[] = {
    {.name = "step", .type = FlagType::kInteger, .value = "N", .help = "The step", .minimum = 1},
    {.name = "value",
     .value = "NAME",
     .help = "A value of the model, or KIND:NAME as `compare` has it (act, dact, grad, param, "
             "state, input, loss); of several micro-batches the first's"},
    {.name = "output",
     .value = "FILE",
     .help = "Write its elements there, a safetensors file",
     .letter = 'o'},
    {.name = "first-nan",
     .type = FlagType::kSwitch,
     .help = "Of a run that ended because its loss was no number: which call made the first NaN "
             "or infinity, and of what"},
    kNotBitwiseFlag,
};

bool is_named(const TraceRow& row, const std::string& value) {
  return row.value == value || row.key() == value;
}

// The row of the step that `value` means: by its key, or by a name that one row alone has, values
// before parameters.
std::optional<std::size_t> find_row(const Trace& trace, std::int64_t step,
                                    const std::string& value) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < trace.rows().size(); ++i) {
    const TraceRow& row = trace.rows()[i];
    if (row.step != step || !is_named(row, value)) continue;
    if (row.key() == value) return i;
    if (!found || row.kind < trace.rows()[*found].kind) found = i;
  }
  if (found) return found;
  for (const profiler::TraceName& name : trace.names()) {
    const bool same = name.value == value || name.value == "act:" + value;
    const bool leads_on = !name.row.empty() && name.row != value;
    if (same && leads_on) return find_row(trace, step, name.row);
  }
  return std::nullopt;
}

std::string without_kind(const std::string& value) {
  const std::size_t colon = value.find(':');
  const bool has_kind = colon != std::string::npos &&
                        profiler::trace_kind_named(std::string_view(value).substr(0, colon));
  return has_kind ? value.substr(colon + 1) : value;
}

Error no_value(const Trace& trace, const std::string& value) {
  std::vector<std::string> names;
  for (const TraceRow& row : trace.rows()) names.push_back(row.value);
  for (const profiler::TraceName& name : trace.names()) {
    if (name.value != "act:" + value && name.value != value) continue;
    return Error(ErrorCode::kUsage, fmt::format("'{}' has no elements of its own: {}",
                                                printable(value), printable(name.reason)));
  }
  return Error(ErrorCode::kUsage, fmt::format("the run has no value '{}'", printable(value)))
      .hint(nearest_hint(value, names));
}

Json statistics_json(const TraceRow& row) {
  const profiler::TensorStatistics& s = row.statistics;
  return Json::object({{"count", s.count},
                       {"nan", s.nan},
                       {"positive_infinite", s.positive_infinite},
                       {"negative_infinite", s.negative_infinite},
                       {"zeros", s.zeros},
                       {"mean", s.mean},
                       {"std", s.deviation},
                       {"min", s.least},
                       {"max", s.most},
                       {"l2", s.l2}});
}

struct Found {
  Trace trace;
  std::size_t row = 0;
  bool unfused = false;
  Tensor elements;
};

// In the step as it ran; a value that is inside a fused node there, or gone, from the step without
// fusions.
Found find_value(const Replayable& of, const std::string& value, const fs::path& scratch) {
  tell_cost(of);
  for (const bool unfused : {false, true}) {
    NumericsRequest numerics{.all_values = unfused, .oracle = false, .steps = {of.step}};
    numerics.full = {without_kind(value)};
    const Replayed again =
        replayed(of, std::move(numerics), scratch / (unfused ? "unfused" : "as-it-ran"));
    const Trace& trace = *again.trace;
    const auto row = find_row(trace, of.step, value);
    if (!row && unfused) throw again.failure ? *again.failure : no_value(trace, value);
    if (!row) continue;
    const auto file = SafetensorsFile::open(MappedFile::open(
        trace.folder().enter(profiler::kTraceFullFolder) / fmt::format("{}.safetensors", of.step)));
    return {.trace = trace,
            .row = *row,
            .unfused = unfused,
            .elements = file.tensor(trace.rows()[*row].key())};
  }
  CHECK_INVARIANT(false);
}

Outcome value_at(const Replayable& of, const std::string& value) {
  const ScratchFolder scratch;
  const Found found = find_value(of, value, scratch.path());
  const TraceRow& row = found.trace.rows()[found.row];
  const Settings& settings = of.invocation.settings();
  Outcome outcome;
  outcome.facts = Json::object({{"step", row.step},
                                {"value", row.key()},
                                {"phase", name_of(row.phase)},
                                {"op", row.op},
                                {"node", row.node},
                                {"kernel", row.kernel},
                                {"dtype", row.dtype},
                                {"shape", row.shape},
                                {"unfused", found.unfused},
                                {"bitwise", of.differences.empty()},
                                {"statistics", statistics_json(row)},
                                {"hash", hash_hex(row.hash)}});
  const profiler::TensorStatistics& s = row.statistics;
  outcome.text = fmt::format(
      "{} at step {}: {} {}{}\nmean {:.9g}, std {:.9g}, min {:.9g}, max {:.9g}, l2 {:.9g}\n{} "
      "elements, {} NaN, {} +inf, {} -inf, {} zeros; hash {}\n",
      printable(row.key()), row.step, row.dtype, row.shape,
      found.unfused ? " (from the step without fusions: the run's own has it inside another node)"
                    : "",
      s.mean, s.deviation, s.least, s.most, s.l2, s.count, s.nan, s.positive_infinite,
      s.negative_infinite, s.zeros, hash_hex(row.hash));
  if (settings.has("output")) {
    const std::string key = row.key();
    const NamedTensor named{.name = key, .tensor = found.elements.view()};
    write_safetensors(fs::path(settings.text("output")), std::span(&named, 1),
                      {{"step", std::to_string(of.step)}});
    outcome.text += fmt::format("written to {}\n", printable(settings.text("output")));
  }
  return outcome;
}

// Where the batch is that the step read, if the run has kept it.
void add_batch(const Replayable& of, Outcome& outcome) {
  const Folder& run = of.run().folder();
  const fs::path batch = run.path() / kRunFailureFolder / kFailureBatchFile;
  if (!path_exists(batch)) return;
  outcome.facts.set("batch", batch.string());
  outcome.text += fmt::format("the step's batch: {}\n", printable(batch.string()));
}

Outcome shown_at(const Invocation& given) {
  const Settings& settings = given.settings();
  const bool first_nan = settings.on("first-nan");
  require(first_nan || (settings.has("step") && settings.has("value")), ErrorCode::kUsage,
          "at needs --step and --value, or --first-nan");
  const Source source = run_named(given.argument(0));
  const std::vector<StepRecord> steps = source.run().metrics().steps;
  const std::int64_t done = steps.empty() ? 0 : steps.back().step;
  const RunSession& last = source.run().manifest().sessions.back();
  const bool failed = last.status == RunStatus::kFailed &&
                      last.exit_code == static_cast<std::int64_t>(ErrorCode::kNumeric);
  if (!first_nan) {
    const std::int64_t step = settings.integer("step");
    require(step <= done + (failed ? 1 : 0), ErrorCode::kUsage,
            "the run has {} steps: there is no step {}", done, step);
    return value_at(Replayable(given, source, step, step, kAtFlags), settings.text("value"));
  }
  require(failed, ErrorCode::kUsage, "the run did not end because its loss was no number: it {}",
          name_of(last.status));
  const Replayable of(given, source, std::max<std::int64_t>(1, done), done + 1, kAtFlags);
  tell_cost(of);
  NumericsRequest numerics{.all_values = false, .oracle = false, .steps = {of.step}};
  if (done > 0) numerics.steps.push_back(done);
  const ScratchFolder scratch;
  Outcome outcome = print(bad_origin(replayed(of, std::move(numerics), scratch.path()), of.step));
  add_batch(of, outcome);
  return outcome;
}

Outcome run_at(const Invocation& given) {
  return unless_stopped([&] { return shown_at(given); });
}

}  // namespace

Command at_command() {
  Command command = replay_command(kAtFlags, run_at);
  command.name = "at";
  command.summary = "Make a tensor of a past step of a run again, bit for bit.";
  command.arguments = {{.name = "RUN", .help = "the folder of a run"}};
  command.examples = {
      "trainscope at runs/book --step 37 --value /h.0/mlp/Gelu_output_0 -o gelu.safetensors",
      "trainscope at runs/book --first-nan"};
  command.essential = {"step", "value", "output", "first-nan", "not-bitwise"};
  return command;
}

}  // namespace trainscope
