// inspect: models, runs, their stages, nodes and memory.
#include "cli/command.h"
#include "cli/flags/training_flags.h"
#include "cli/print/inspect.h"
#include "cli/source.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/record.h"

namespace trainscope {
namespace {

constexpr Flag kInspectFlags[] = {
    {.name = "stages", .type = FlagType::kSwitch, .help = "The stages of the graph"},
    {.name = "explain",
     .type = FlagType::kSwitch,
     .help = "With --stages: what each pass nearly rewrote, and why it did not"},
    {.name = "stage",
     .value = "NAME",
     .help = "The graph after a pass; default with --node: the last"},
    {.name = "node", .value = "N|NAME", .help = "One node of the stage in detail"},
    {.name = "memory", .type = FlagType::kSwitch, .help = "The buffers that are alive"},
    {.name = "at",
     .value = "CALL|NODE",
     .help = "When, for --memory; default: where most bytes are alive"},
};

CompileOptions options_for(const Invocation& settled, const OnnxModel& model, KeepGraphs keep) {
  const Sizes sizes = resolve_sizes(model, size_request(settled.settings()));
  CompileOptions options = compile_options(settled, model, sizes);
  options.passes.keep = keep;
  return options;
}

std::vector<StageRecord> records_of(const Stages& stages) {
  std::vector<StageRecord> records;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    records.push_back(stage_record(stages[i], i == 0 ? nullptr : &stages[i - 1]));
    records.back().file = stages[i].label + ".onnx";
  }
  return records;
}

Graph recorded_stage(const RunReader& run, const std::string& name) {
  const StageRecord stage = find_stage(run.stages(), name);
  return import_graph(OnnxModel::read(run.open_stage(stage)), {});
}

Graph computed_stage(const Invocation& settled, const OnnxModel& model, const std::string& name) {
  const Stages stages = build_stages(model, options_for(settled, model, KeepGraphs::kAll));
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
  const Graph graph = source.is_run() ? recorded_stage(source.run(), name)
                                      : computed_stage(settled, source.original_model(), name);
  return settings.has("node") ? describe_node(graph, settings.text("node")) : describe_graph(graph);
}

Outcome inspect_memory(const Source& source, const Invocation& settled) {
  const std::string at = settled.settings().text_or_empty("at");
  if (source.is_run()) {
    const std::optional<Json> plan = source.run().plan();
    require(plan.has_value(), ErrorCode::kBadInput, "the run has no plan yet");
    return describe_memory(*plan, at);
  }
  const OnnxModel model = source.original_model();
  const auto compiled = compile(model, options_for(settled, model, KeepGraphs::kLast));
  return describe_memory(plan_record(compiled->program), at);
}

std::vector<StageRecord> stages_of(const Source& source, const Invocation& settled) {
  if (source.is_run()) return source.run().stages();
  const OnnxModel model = source.original_model();
  return records_of(build_stages(model, options_for(settled, model, KeepGraphs::kLast)));
}

Outcome inspect_stages(const Source& source, const Invocation& settled) {
  const std::vector<StageRecord> stages = stages_of(source, settled);
  return settled.settings().on("explain") ? explain_stages(stages) : describe_stages(stages);
}

Outcome run_inspect(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  require(!settings.has("at") || settings.on("memory"), ErrorCode::kUsage,
          "--at belongs to --memory");
  require(!settings.on("explain") || settings.on("stages"), ErrorCode::kUsage,
          "--explain belongs to --stages");
  const bool of_stage = settings.on("stages") || settings.has("stage") || settings.has("node");
  require(!settings.on("memory") || !of_stage, ErrorCode::kUsage,
          "--memory is of the plan, which belongs to no stage: leave out --stages, --stage and "
          "--node");
  const Source source = Source::open(invocation.argument(0));
  const Invocation settled = source.settle(invocation);
  if (settings.on("memory")) return inspect_memory(source, settled);
  if (settings.has("stage") || settings.has("node")) return inspect_stage(source, settled);
  if (settings.on("stages")) return inspect_stages(source, settled);
  return source.is_run() ? describe_run(source.run()) : describe_model(source.original_model());
}

}  // namespace

Command inspect_command() {
  return {.name = "inspect",
          .summary = "Show a model or run: stages, graphs, nodes, memory.",
          .arguments = {{.name = "RUN|MODEL.onnx",
                         .help = "a run's folder, or a model (compiled as `train` would)"}},
          .flags = join_flags({kInspectFlags, compile_flags()}),
          .examples = {"trainscope inspect runs/mlp-1 --stage differentiate",
                       "trainscope inspect model.onnx --memory --at /4/Gemm"},
          .run = run_inspect};
}

}  // namespace trainscope
