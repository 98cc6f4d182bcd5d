// bench: how long a training step of a standard workload takes.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <string>

#include "cli/advise/node_bench.h"
#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/flags/training_flags.h"
#include "cli/machine.h"
#include "engine/bundle/plan_json.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/record_plan.h"
#include "engine/run/bench/bench_run.h"
#include "engine/run/bench/bench_workloads.h"

namespace trainscope {
namespace {

constexpr double kMebi = 1024.0 * 1024.0;

constexpr Flag kBenchFlags[] = {
    {.name = "batch",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Examples of a step instead of the workload's own number",
     .minimum = 1,
     .maximum = 1 << 24},
    {.name = "seq",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Tokens of an example instead of the workload's own number",
     .minimum = 2,
     .maximum = 1 << 20},
    {.name = "steps",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "20",
     .help = "Timed steps; 3 more come before them",
     .minimum = 1,
     .maximum = 1 << 24},
    {.name = "dtype",
     .type = FlagType::kChoice,
     .value = "f32|tf32|bf16|f16",
     .fallback = "f32",
     .help = "What activations are stored and matmuls computed in; parameters stay f32. tf32: f32 "
             "whose matmuls round their factors to TF32, with --device cuda"},
    {.name = "disable", .type = FlagType::kTexts, .value = "PASS", .help = "Leave out a pass"},
    {.name = "op-times",
     .value = "TIMES.csv",
     .help =
         "Measure each op in 7 more steps: a file for --costs; --json tells FLOPs and bytes too"},
    {.name = "paired",
     .type = FlagType::kSwitch,
     .help = "The step without recomputation too, in turn with the other: losses must be equal"},
    {.name = "node",
     .value = "NAME",
     .help = "Instead of a workload: one node of a MODEL.onnx or RUN by itself, by every kernel "
             "that takes it; `bench --node x --help` has the flags"},
};

// The most memory this process ever had, in MiB; 0 when the system does not say.
double peak_rss_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    std::string_view number = trim(std::string_view(line).substr(6));
    number = number.substr(0, number.find(' '));
    return static_cast<double>(parse_int(number).value_or(0)) / 1024.0;
  }
  return 0.0;
}

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

// The time without recomputation beside the other, and the median of the pairs' ratios less one.
void add_pairs(const BenchResult& result, Json& facts) {
  std::vector<double> more;
  for (std::size_t i = 0; i < result.step_ms.size(); ++i) {
    more.push_back(result.step_ms[i] / result.plain_step_ms[i] - 1.0);
  }
  facts.set("plain_step_ms", rounded(spread_of(result.plain_step_ms).median, 1e4));
  facts.set("measured_overhead", rounded(spread_of(more).median, 1e6));
}

// What each op took, as medians; and of the median step its ops and its gaps, which add up to it.
void add_ops(const BenchResult& result, Json& facts) {
  Json ops = Json::array();
  for (const OpTime& each : result.ops) {
    ops.push_back(Json::object(
        {{"value", each.value},
         {"op", each.op},
         {"kernel", each.kernel},
         {"phase", std::string(name_of(each.phase))},
         {"flops", each.flops},
         {"bytes", each.bytes},
         {"kernel_flops", each.done.flops},
         {"kernel_bytes", saturating_add(each.done.bytes_read, each.done.bytes_written)},
         {"ms", rounded(each.seconds * 1e3, 1e6)}}));
  }
  const StepSplit& step = result.measured_step;
  facts.set("measured_step_ms", rounded(step.total() * 1e3, 1e4));
  facts.set("ops_ms", rounded(step.kernels * 1e3, 1e4));
  facts.set("gaps_ms", Json::object({{"before_first_op", rounded(step.before * 1e3, 1e4)},
                                     {"between_ops", rounded(step.between * 1e3, 1e4)},
                                     {"after_last_op", rounded(step.after * 1e3, 1e4)}}));
  facts.set("ops", std::move(ops));
}

Json facts_of(const BenchWorkload& workload, const BenchOptions& options,
              const BenchResult& result) {
  const Spread spread = spread_of(result.step_ms);
  const double per_second = static_cast<double>(options.batch) / (spread.median * 1e-3);
  Json facts = Json::object({{"workload", workload.name},
                             {"step_ms", rounded(spread.median, 1e4)},
                             {"step_ms_min", rounded(spread.least, 1e4)},
                             {"step_ms_max", rounded(spread.most, 1e4)},
                             {"samples_per_s", rounded(per_second, 1e2)}});
  if (options.sequence > 0) {
    facts.set("tokens_per_s", rounded(per_second * static_cast<double>(options.sequence), 1e2));
    facts.set("seq", options.sequence);
  }
  const auto flops = static_cast<double>(result.flops_per_step);
  facts.set("batch", options.batch);
  facts.set("steps", options.steps);
  facts.set("threads", options.threads);
  facts.set("device", options.device->facts().name);
  facts.set("dtype", options.precision == StepPrecision::kF16 ? "f16" : name_of(options.precision));
  if (options.skip_ignored) facts.set("skip_ignored", true);
  if (!options.disabled.empty()) facts.set("disabled", Json::list(options.disabled));
  if (options.machine != default_machine()) facts.set("machine", options.machine.name);
  facts.set("gflop_per_step", rounded(flops * 1e-9, 1e4));
  facts.set("gflops", rounded(flops / spread.median * 1e-6, 1e2));
  facts.set("peak_rss_mb", rounded(peak_rss_mb(), 1e1));
  facts.set("arena_mb", rounded(static_cast<double>(result.arena_bytes) / kMebi, 1e1));
  facts.set("arena_bytes", result.arena_bytes);
  facts.set("used_bytes", result.used_bytes);
  facts.set("host_arena_bytes", result.host_arena_bytes);
  facts.set("used_host_bytes", result.used_host_bytes);
  facts.set("persistent_bytes", result.persistent_bytes);
  if (result.recompute) facts.set("recompute", recompute_json(recompute_record(*result.recompute)));
  if (options.paired) add_pairs(result, facts);
  if (!result.ops.empty()) add_ops(result, facts);
  facts.set("parameters", result.parameters);
  facts.set("loss_first", result.first_loss);
  facts.set("loss_last", result.last_loss);
  facts.set("version", program_version());
  return facts;
}

std::string text_of(const Json& facts) {
  std::string text = fmt::format(
      "{}: {:.3f} ms a step (median of {}, {:.3f} to {:.3f}), {:.1f} samples/s, {:.1f} GFLOP/s\n"
      "memory: arena {:.1f} MiB, process {:.1f} MiB at most; {} threads\n",
      facts.get<std::string>("workload"), facts.get<double>("step_ms"),
      facts.get<std::int64_t>("steps"), facts.get<double>("step_ms_min"),
      facts.get<double>("step_ms_max"), facts.get<double>("samples_per_s"),
      facts.get<double>("gflops"), facts.get<double>("arena_mb"), facts.get<double>("peak_rss_mb"),
      facts.get<std::int64_t>("threads"));
  if (const Json* more = facts.find("measured_overhead")) {
    text += fmt::format("recompute: {:.2f} % more time than the plain step's {:.3f} ms",
                        100.0 * more->as_number(), facts.get<double>("plain_step_ms"));
    if (const Json* plan = facts.find("recompute")) {
      text += fmt::format(", {:.2f} % predicted", 100.0 * plan->get<double>("overhead"));
    }
    text += '\n';
  }
  return text;
}

Outcome bench_verb(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const BenchWorkload& workload = find_workload(invocation.argument(0));
  const BenchOptions options{.batch = settings.find_integer("batch").value_or(workload.batch),
                             .sequence = settings.find_integer("seq").value_or(workload.sequence),
                             .steps = settings.integer("steps"),
                             .device = device_of(settings.text("device")),
                             .threads = invocation.threads(),
                             .seed = invocation.seed(),
                             .kernels = kernel_choice(settings),
                             .same_bits = same_bits(settings),
                             .optimizer_in_backward = settings.on("optimizer-in-backward"),
                             .loss_chunks = settings.integer("loss-chunks"),
                             .skip_ignored = settings.on("skip-ignored"),
                             .skip_padding = settings.text_or_empty("skip-padding"),
                             .precision = step_precision(settings.text("dtype")),
                             .disabled = disabled_passes(settings),
                             .order = op_order(settings),
                             .batch_tiles = batch_tiles(settings),
                             .recompute = recompute_options(settings),
                             .costs = settings.text_or_empty("costs"),
                             .machine = plan_machine(settings),
                             .op_times = settings.text_or_empty("op-times"),
                             .paired = settings.on("paired")};
  Outcome outcome{.facts = facts_of(workload, options, run_bench(workload, options))};
  outcome.facts.set("kernels", settings.text("kernels"));
  outcome.text = text_of(outcome.facts);
  return outcome;
}

// "w1-sgd, w1-adamw, w3": for help, which keeps no text of its own.
std::string_view workload_list() {
  static const std::string kList = [] {
    std::vector<std::string> pieces;
    for (const BenchWorkload& each : bench_workloads()) {
      pieces.push_back(fmt::format("{} ({})", each.name, each.about));
    }
    return join(pieces, "; ");
  }();
  return kList;
}

Command for_words(const Command& self, std::span<const std::string> words) {
  return asks_for_node(words) ? bench_node_command(self) : self;
}

}  // namespace

Command bench_command() {
  return {
      .name = "bench",
      .summary = "Time the training step of a standard workload.",
      .arguments = {{.name = "WORKLOAD", .help = workload_list()}},
      .flags = join_flags({kBenchFlags, kernel_flags(), determinism_flags(), recompute_flags()}),
      .examples = {"trainscope bench w1-sgd --threads 2 --json", "trainscope bench w3 --steps 5"},
      .run = bench_verb,
      .for_words = for_words};
}

}  // namespace trainscope
