// inspect: models, runs, their stages, nodes and memory.
#include "cli/command.h"
#include "cli/flags/training_flags.h"
#include "cli/print/inspect.h"
#include "cli/source.h"
#include "cli/stages.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/record.h"
#include "engine/record_plan.h"
#include "profiler/analysis/measured_memory.h"
#include "profiler/store/event_file.h"

namespace trainscope {
namespace {

constexpr Flag kInspectFlags[] = {
    {.name = "stages", .type = FlagType::kSwitch, .help = "The stages of the graph"},
    {.name = "explain",
     .type = FlagType::kSwitch,
     .help = "With --stages: what each pass nearly rewrote, and why it did not"},
    {.name = "stage",
     .value = "NAME|N",
     .help = "The graph after a pass, by name or number; default with --node: the last"},
    {.name = "node", .value = "N|NAME", .help = "One node of the stage in detail"},
    {.name = "fate",
     .value = "NAME|all",
     .help = "What became of a node or value of the model in each stage, and why; or of every one"},
    {.name = "memory", .type = FlagType::kSwitch, .help = "The buffers that are alive"},
    {.name = "calls",
     .type = FlagType::kSwitch,
     .help = "The kernel of each call of the step, and why no other one computes it"},
    {.name = "at",
     .value = "CALL|NODE",
     .help = "When, for --memory (default: where most bytes are alive); of --calls those of the "
             "node alone"},
    {.name = "session",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Of a run that was resumed: the plan, stages and fates of its Nth session; "
             "default: the newest",
     .minimum = 1},
};

std::vector<StageRecord> records_of(const Stages& stages) {
  std::vector<StageRecord> records;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    records.push_back(stage_record(stages[i], i == 0 ? nullptr : &stages[i - 1]));
    records.back().file = stages[i].label + ".onnx";
  }
  return records;
}

// --session; without it the newest.
std::int64_t session_of(const Invocation& settled) {
  return settled.settings().find_integer("session").value_or(kNewestSession);
}

Graph recorded_stage(const RunReader& run, const std::string& name, std::int64_t session) {
  const StageRecord stage = find_stage(run.stages(session), name);
  return import_graph(OnnxModel::read(run.open_stage(stage, session)), {});
}

Graph computed_stage(const Source& source, const Invocation& settled, const std::string& name) {
  const Stages stages = compiled_stages(source, settled);
  const std::vector<StageRecord> records = records_of(stages);
  const StageRecord found = find_stage(records, name);
  for (const Stage& stage : stages) {
    if (stage.label + ".onnx" == found.file) return stage.graph;
  }
  return stages.back().graph;
}

Outcome inspect_stage(const Source& source, const Invocation& settled) {
  const Settings& settings = settled.settings();
  const std::string name = settings.text_or_empty("stage");
  const Graph graph = source.is_run() ? recorded_stage(source.run(), name, session_of(settled))
                                      : computed_stage(source, settled, name);
  return settings.has("node") ? describe_node(graph, settings.text("node")) : describe_graph(graph);
}

// None where the session was not profiled; a profile that cannot be read is a warning.
std::optional<profiler::MeasuredMemory> measured_of(const RunReader& run, const PlanView& plan,
                                                    const Invocation& settled) {
  const std::optional<MappedFile> file = run.events(session_of(settled));
  if (!file) return std::nullopt;
  const profiler::EventReading reading = profiler::read_events(file->bytes());
  if (reading.fault == profiler::ReadFault::kNone) {
    return profiler::measured_memory(reading.view, plan);
  }
  settled.log().warning("what was measured is left out: {}", reading.message);
  return std::nullopt;
}

// --memory or --calls.
Outcome inspect_plan(const Source& source, const Invocation& settled) {
  const bool memory = settled.settings().on("memory");
  const std::string at = settled.settings().text_or_empty("at");
  if (source.is_run()) {
    const std::optional<StoredPlan> plan = source.run().plan(session_of(settled));
    require(plan.has_value(), ErrorCode::kBadInput, "the run has no plan yet");
    if (!memory) return describe_calls(plan->view(), at);
    const auto measured = measured_of(source.run(), plan->view(), settled);
    return describe_memory(plan->view(), at, measured ? &*measured : nullptr);
  }
  const OnnxModel model = source.original_model();
  const Sizes sizes = resolve_sizes(model, size_request(settled.settings()));
  CompileOptions options = compile_options(settled, model, sizes);
  options.passes.keep = KeepGraphs::kLast;
  const auto compiled = compile(model, options);
  const PlanRecord plan = plan_record(*compiled);
  return memory ? describe_memory(view_of(plan), at, nullptr) : describe_calls(view_of(plan), at);
}

std::vector<StageRecord> stages_of(const Source& source, const Invocation& settled) {
  if (source.is_run()) return source.run().stages(session_of(settled));
  return records_of(compiled_stages(source, settled));
}

Outcome inspect_stages(const Source& source, const Invocation& settled) {
  const std::vector<StageRecord> stages = stages_of(source, settled);
  return settled.settings().on("explain") ? explain_stages(stages) : describe_stages(stages);
}

Outcome inspect_fate(const Source& source, const Invocation& settled) {
  const std::string& name = settled.settings().text("fate");
  const StageHistory stages = source.is_run() ? StageHistory::of(source.run(), session_of(settled))
                                              : stage_history(source, settled);
  return name == "all" ? describe_fates(stages) : describe_fate(stages, name);
}

Outcome run_inspect(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const bool of_plan = settings.on("memory") || settings.on("calls");
  require(!settings.has("at") || of_plan, ErrorCode::kUsage,
          "--at belongs to --memory and --calls");
  require(!settings.on("memory") || !settings.on("calls"), ErrorCode::kUsage,
          "--memory and --calls are two views of the plan: leave out one");
  require(!settings.on("explain") || settings.on("stages"), ErrorCode::kUsage,
          "--explain belongs to --stages");
  const bool of_stage = settings.on("stages") || settings.has("stage") || settings.has("node");
  require(!settings.has("fate") || !(of_stage || of_plan), ErrorCode::kUsage,
          "--fate is of all stages: leave out --stages, --stage, --node, --memory and --calls");
  require(!of_plan || !of_stage, ErrorCode::kUsage,
          "{} is of the plan, which belongs to no stage: leave out --stages, --stage and --node",
          settings.on("memory") ? "--memory" : "--calls");
  const Source source = Source::open(invocation.argument(0));
  const bool of_session = of_stage || settings.has("fate") || of_plan;
  require(!settings.has("session") || (source.is_run() && of_session), ErrorCode::kUsage,
          "--session is of a run, with --memory, --calls, --stages, --stage, --node or --fate");
  const Invocation settled = source.settle(invocation);
  if (settings.has("fate")) return inspect_fate(source, settled);
  if (of_plan) return inspect_plan(source, settled);
  if (settings.has("stage") || settings.has("node")) return inspect_stage(source, settled);
  if (settings.on("stages")) return inspect_stages(source, settled);
  return source.is_run() ? describe_run(source.run()) : describe_model(source.original_model());
}

}  // namespace

Command inspect_command() {
  return {.name = "inspect",
          .summary = "Show a model or run: stages, graphs, nodes, fates, memory, kernels.",
          .arguments = {{.name = "RUN|MODEL.onnx",
                         .help = "a run's folder, or a model (compiled as `train` would)"}},
          .flags = join_flags({kInspectFlags, compile_flags()}),
          .examples = {"trainscope inspect runs/mlp-1 --stage differentiate",
                       "trainscope inspect model.onnx --fate /4/Gemm"},
          .run = run_inspect};
}

}  // namespace trainscope
