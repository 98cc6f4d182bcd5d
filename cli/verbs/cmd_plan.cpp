// plan: how much memory a training step needs, before it runs.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "cli/command.h"
#include "cli/flags/training_flags.h"
#include "cli/flags/world_flags.h"
#include "cli/print/plan_tables.h"
#include "cli/print/split_table.h"
#include "cli/source.h"
#include "engine/bundle/plan_json.h"
#include "engine/core/byte_count.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/model_warnings.h"
#include "engine/op_times.h"
#include "engine/record_plan.h"
#include "engine/run/batch/largest_batch.h"
#include "engine/run/batch/micro_batches.h"
#include "engine/run/batch/world_batch.h"
#include "engine/run/planned_step.h"

namespace trainscope {
namespace {

bool asks_for_another_plan(const Settings& settings) {
  if (settings.given("threads")) return true;
  for (const Flag& flag : compile_flags()) {
    if (settings.given(flag.name)) return true;
  }
  return false;
}

// A model or recorded stage, its sizes settled, and what to compile of it.
struct Step {
  OnnxModel model;
  CompileOptions options;
  Sizes sizes;
};

// `batch`: another than the one asked for; 0: that one.
Step step_of(const Source& source, const Invocation& invocation, std::int64_t batch = 0) {
  const Invocation settled = source.settle(invocation);
  OnnxModel model = source.original_model();
  warn_of(model, settled.log());
  SizeRequest request = size_request(settled.settings());
  if (batch > 0) request.batch = batch;
  const Sizes sizes = resolve_sizes(model, request);
  CompileOptions options = compile_options(settled, model, sizes);
  options.passes.keep = KeepGraphs::kLast;
  return {.model = std::move(model), .options = std::move(options), .sizes = sizes};
}

// A run's step is planned again from its recorded graph where only the plan is to be another: that
// needs no model, which may be gone.
Step step_to_plan(const Source& source, const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const bool may_be_recorded = source.is_run() && !changes_the_graph(settings);
  const auto stage = may_be_recorded ? planned_stage(source.run()) : std::nullopt;
  if (!stage) return step_of(source, invocation);
  CompileOptions options = plan_options(source.settle(invocation));
  options.passes.keep = KeepGraphs::kLast;
  return {.model = OnnxModel::read(source.run().open_stage(*stage)),
          .options = std::move(options),
          .sizes = {}};
}

// Of a step with this plan, by the costs given or else by the model of the machine.
double predicted_seconds(const Compiled& compiled, const CompileOptions& options) {
  if (compiled.recompute) return compiled.recompute->seconds;
  const std::vector<double> nodes = step_seconds(compiled.program, options.costs, options.machine);
  return std::accumulate(nodes.begin(), nodes.end(), 0.0);
}

Json planned(const Source& source, const Invocation& invocation) {
  const Step step = step_to_plan(source, invocation);
  const auto compiled = compile(step.model, step.options);
  Json facts = plan_sizes(view_of(plan_record(*compiled)));
  facts.set("step_seconds", predicted_seconds(*compiled, step.options));
  return facts;
}

Json plan_facts(const Source& source, const Invocation& invocation) {
  if (!source.is_run() || asks_for_another_plan(invocation.settings())) {
    return planned(source, invocation);
  }
  const std::optional<StoredPlan> recorded = source.run().plan();
  require(recorded.has_value(), ErrorCode::kBadInput, "the run '{}' has no plan yet",
          printable(source.run().folder().path().string()));
  return plan_sizes(recorded->view());
}

std::string plan_text(const Json& plan) {
  const auto bytes = [&plan](const char* key) {
    const auto value = plan.get<std::int64_t>(key);
    return fmt::format("{:>16} bytes  {}", value, bytes_text(value));
  };
  const auto bound = plan.get<double>("lower_bound_bytes");
  const double gap = bound > 0 ? 100.0 * plan.get<double>("gap_bytes") / bound : 0.0;
  std::string text = fmt::format(
      "peak         {}\nlower bound  {}\ngap          {}  {:.2f} %\npersistent   {}\n"
      "workspace    {}\nbuffers      {:>16} in {} calls\n",
      bytes("arena_bytes"), bytes("lower_bound_bytes"), bytes("gap_bytes"), gap,
      bytes("persistent_bytes"), bytes("workspace_bytes"), plan.get<std::int64_t>("buffer_count"),
      plan.get<std::int64_t>("call_count"));
  if (plan.get<std::int64_t>("host_arena_bytes") > 0) {
    text += fmt::format("host memory  {}\n", bytes("host_arena_bytes"));
  }
  if (const Json* recompute = plan.find("recompute")) text += recompute_text(*recompute);
  return text;
}

void add_largest_batch(const Source& source, const Invocation& invocation, Outcome& outcome) {
  const LargestBatch found = find_largest_batch([&](std::int64_t batch) -> StepToCompile {
    Step step = step_of(source, invocation, batch);
    return {.model = std::move(step.model), .options = std::move(step.options)};
  });
  outcome.facts.set("largest_batch", found.most);
  outcome.facts.set("largest_batch_plain", found.plain);
  outcome.facts.set("largest_batch_overhead", found.overhead);
  outcome.text += fmt::format(
      "\nlargest batch {:>15} within the budget, at {:.2f} % more time an example; {} without "
      "recomputation\n",
      found.most, 100.0 * found.overhead, found.plain);
}

Outcome planned_worlds(const Invocation& invocation) {
  require(!invocation.settings().has("skip-padding"), ErrorCode::kUsage,
          "--skip-padding is for this machine, not for --target: how many tokens are real, and so "
          "how long a device's share takes, is not known");
  const Source source = Source::open_or_build(invocation.argument(0));
  const CompileStep compile_step = [&](std::int64_t batch) -> SizedStep {
    const Step step = step_of(source, invocation, batch);
    return {.compiled = compile(step.model, step.options),
            .batch = step.sizes.batch,
            .sequence = step.sizes.sequence};
  };
  return plan_worlds(compile_step, source.settle(invocation));
}

Outcome planned_micro_batches(const Invocation& invocation) {
  for (const char* flag :
       {"front", "sweep", "compare", "opportunities", "largest-batch", "op-times"}) {
    require(!invocation.settings().given(flag), ErrorCode::kUsage,
            "--micro-batches compares splits of a step, --{} is of one: ask for it with the "
            "--batch and --accumulate of that one",
            flag);
  }
  require(!asks_for_world(invocation.settings()), ErrorCode::kUsage,
          "--micro-batches is for this machine, not for --target");
  require(!invocation.settings().has("costs"), ErrorCode::kUsage,
          "--costs are those of one batch size, --micro-batches compares several");
  const Source source = Source::open_or_build(invocation.argument(0));
  const Step asked = step_of(source, invocation);
  require_examples(asked.model, asked.sizes);
  const CompileSplit compile_split = [&](const BatchSplit& split) {
    Step step = step_of(source, invocation, split.batch);
    step.options.training.micro_batches = split.micro_batches;
    return compile(step.model, step.options);
  };
  return splits_outcome(plan_splits(
      compile_split,
      {.batch = asked.sizes.batch, .micro_batches = asked.options.training.micro_batches},
      asked.options.machine));
}

// Of the step without what is traded for memory, whose plans the times are for.
void write_op_times(Step step, const std::filesystem::path& file) {
  step.options.recompute = {};
  step.options.batch_tiles = {};
  const std::shared_ptr<const Compiled> compiled = compile(step.model, step.options);
  write_seconds_alone(file, {compiled, &compiled->program});
}

constexpr Flag kOpTimes[] = {
    {.name = "op-times",
     .value = "TIMES.csv",
     .help = "Run each op of the step by itself, on zeros, and write its time: a file for --costs"},
};

Outcome run_plan(const Invocation& invocation) {
  if (asks_for_world(invocation.settings())) return planned_worlds(invocation);
  if (invocation.settings().on("micro-batches")) return planned_micro_batches(invocation);
  if (invocation.settings().on("largest-batch")) {
    require(invocation.settings().has("memory-budget"), ErrorCode::kUsage,
            "--largest-batch needs --memory-budget");
  }
  const Source source = Source::open_or_build(invocation.argument(0));
  const std::string times = invocation.settings().text_or_empty("op-times");
  if (!times.empty()) write_op_times(step_to_plan(source, invocation), times);
  Outcome outcome{.facts = plan_facts(source, invocation)};
  outcome.text = plan_text(outcome.facts);
  const auto peak = outcome.facts.get<std::int64_t>("arena_bytes");
  outcome.facts.set("peak_bytes", peak);
  if (invocation.settings().on("largest-batch")) {
    add_largest_batch(source, invocation, outcome);
  }
  if (asks_for_table(invocation.settings())) {
    Step step = step_to_plan(source, invocation);
    add_plan_tables(step.model, std::move(step.options), invocation.settings(), outcome);
    const Json* front = outcome.facts.find("front");
    if (front != nullptr && source.is_run()) {
      write_file_atomic(source.run().folder() / "front.json",
                        Json::object({{"front", *front}}).dump() + "\n");
    }
  }
  return outcome;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .summary = "Predict the memory of a training step, to the byte.",
          .arguments = {{.name = "MODEL.onnx|RUN|BUILDER:SIZE",
                         .help = "a model, a run (its plan, or with flags another one: those of "
                                 "memory, order and kernels need the run alone, others its model "
                                 "too), or a builder's model without a file: gpt2:1558M, "
                                 "gpt2:355M,context=2048"}},
          .flags = join_flags({plan_table_flags(), kOpTimes, world_flags(), compile_flags()}),
          .examples = {"trainscope plan model.onnx --batch 32 --memory-budget 500MB",
                       "trainscope plan gpt2:1558M --target h200 --world 1,8,64 --zero 2"},
          .run = run_plan};
}

}  // namespace trainscope
