// export: the trained model, a stage of the graph, parameters, metrics, the plan or the profile.
#include <fmt/format.h>

#include <chrono>
#include <deque>

#include "cli/command.h"
#include "cli/export/profile_export.h"
#include "cli/export/state_dict_export.h"
#include "cli/flags/training_flags.h"
#include "cli/source.h"
#include "cli/stages.h"
#include "engine/bundle/metrics_csv.h"
#include "engine/bundle/plan_json.h"
#include "engine/bundle/tensorboard.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/core/timestamp.h"
#include "engine/graph_dot.h"
#include "engine/model_warnings.h"
#include "engine/record_plan.h"
#include "profiler/formats/formats.h"

namespace trainscope {
namespace {

#define FORMAT(function, name, help) "|" name
constexpr std::string_view kFormats = "onnx|safetensors|csv|tensorboard|plan-json|dot"
#include "profiler/formats/formats.def"
    ;
#undef FORMAT

#define FORMAT(function, name, help) "; " name ": " help
constexpr std::string_view kFormatHelp =
    "onnx: a model; safetensors: parameters and states; csv, tensorboard: a run's metrics; "
    "plan-json: its plan, or the plan of a model, as plan.json; dot: a stage for Graphviz"
#include "profiler/formats/formats.def"
    "; plan and profile are those of a run's newest session, compressed where FILE ends with .gz";
#undef FORMAT

constexpr Flag kExportFlags[] = {
    {.name = "format",
     .type = FlagType::kChoice,
     .value = kFormats,
     .fallback = "onnx",
     .help = kFormatHelp},
    {.name = "as-device",
     .type = FlagType::kSwitch,
     .help = "Of chrome: calls of the CPU also as kernels of a device, which the trace says, "
             "because HTA looks at nothing else"},
    {.name = "rank",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "0",
     .help = "Of chrome: which of several processes that trained together this is, from 0",
     .minimum = 0},
    {.name = "ranks",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "1",
     .help = "Of chrome: how many these are",
     .minimum = 1,
     .maximum = profiler::kMostRanks},
    {.name = "names",
     .type = FlagType::kChoice,
     .value = "model|torch",
     .fallback = "model",
     .help =
         "Of safetensors. model: names and layouts of the model; torch: those of the state_dict "
         "of the PyTorch module that it was exported from, for load_state_dict"},
    {.name = "out", .value = "FILE", .help = "Where it goes", .letter = 'o'},
    {.name = "stage", .value = "NAME", .help = "The graph after a pass instead of the model"},
    {.name = "outputs",
     .value = "NAME,..",
     .help = "Of the trained model only these outputs and what they need: without a loss that is "
             "part of it, and the targets that only the loss reads"},
};

TensorByName trained_tensors(const Source::Trained& trained) {
  if (trained.checkpoint) return tensors_of(trained.checkpoint);
  return [model = trained.model](std::string_view name) -> SharedTensor {
    for (const ModelInitializer& initializer : model.initializers()) {
      if (initializer.name == name) return model.initializer(name);
    }
    return nullptr;
  };
}

// Optimizer states of a run lie in its newest checkpoint; without one they start at zero.
TensorByName stage_tensors(const Source::Trained& trained,
                           const std::shared_ptr<const Checkpoint>& checkpoint) {
  const TensorByName model = trained_tensors(trained);
  return [model, checkpoint](std::string_view name) -> SharedTensor {
    if (!checkpoint) return model(name);
    for (const auto& [file_name, file] : checkpoint->files) {
      if (file.contains(name)) return std::make_shared<const Tensor>(file.tensor(name));
    }
    return model(name);
  };
}

// Of a run, or what `train` would make of a model. Empty: the last one.
Graph stage_of_run(const Source& source, const std::string& name) {
  const StageRecord stage = find_stage(source.run().stages(), name);
  return import_graph(OnnxModel::read(source.run().open_stage(stage)), {});
}

Graph stage_of_model(const Source& source, const Invocation& settled, const std::string& name) {
  const Stages stages = compiled_stages(source, settled);
  std::vector<std::string> names;
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    if (name.empty() || stage->name == name || stage->label == name) return stage->graph;
    names.insert(names.begin(), stage->label);
  }
  throw Error(ErrorCode::kUsage, fmt::format("there is no stage '{}'", printable(name)))
      .hint(fmt::format("the stages are {}", printable(join(names, ", "), 400)));
}

void export_stage(const Source& source, const Invocation& settled, const std::string& out) {
  const std::string& name = settled.settings().text("stage");
  if (!source.is_run()) return write_onnx(stage_of_model(source, settled, name), out);
  const Source::Trained trained = source.trained_model(settled.log());
  const std::shared_ptr<const Checkpoint> checkpoint = source.newest_checkpoint(settled.log());
  write_onnx(stage_of_run(source, name), out, {.tensor = stage_tensors(trained, checkpoint)});
}

void export_dot(const Source& source, const Invocation& settled, const std::string& out) {
  const std::string name = settled.settings().text_or_empty("stage");
  write_file_atomic(out, dot_text(source.is_run() ? stage_of_run(source, name)
                                                  : stage_of_model(source, settled, name)));
}

// The model's outputs that are not in a list of names with commas between.
std::vector<std::string> outputs_but(const OnnxModel& model, std::string_view kept) {
  std::vector<std::string> others;
  for (const ModelTensor& output : model.outputs()) others.push_back(output.name);
  const std::string all = join(others, ", ");
  for (std::string_view name : split(kept, ',')) {
    if (std::erase(others, trim(name)) > 0) continue;
    throw Error(ErrorCode::kUsage, fmt::format("--outputs: the model has no output '{}', or it is "
                                               "named twice",
                                               printable(name)))
        .hint(fmt::format("its outputs are {}", printable(all, 400)));
  }
  return others;
}

void export_model(const Source& source, const Invocation& settled, const std::string& out) {
  const Source::Trained trained = source.trained_model(settled);
  warn_of(trained.model, settled.log());
  InferenceOptions options;
  if (trained.checkpoint) options.tensor = tensors_of(trained.checkpoint);
  if (settled.settings().has("outputs")) {
    options.drop_outputs = outputs_but(trained.model, settled.settings().text("outputs"));
  }
  export_inference(trained.model, out, options);
}

bool is_float_tensor(const ModelInitializer& initializer) {
  return is_float(initializer.type.dtype);
}

// Of a run: what its newest checkpoint holds. Of a model: its float initializers.
void export_parameters(const Source& source, const Invocation& settled, const std::string& out) {
  std::shared_ptr<const Checkpoint> checkpoint;
  if (settled.settings().on("best")) {
    checkpoint = source.best_model().checkpoint;
  } else if (source.is_run()) {
    checkpoint = source.newest_checkpoint(settled.log());
  }
  std::deque<Tensor> elements;  // does not move what is in it
  std::vector<NamedTensor> tensors;
  if (checkpoint) {
    const SafetensorsFile& file = checkpoint->file("model");
    for (const SafetensorsEntry& entry : file.entries()) {
      elements.push_back(trained_tensor(*checkpoint, entry.name));
      tensors.push_back({.name = entry.name, .tensor = elements.back().view()});
    }
    write_safetensors(out, tensors);
    return;
  }
  const Source::Trained trained = source.trained_model(settled.log());
  for (const ModelInitializer& initializer : trained.model.initializers()) {
    if (!is_float_tensor(initializer)) continue;
    elements.push_back(*trained.model.initializer(initializer.name));
    tensors.push_back({.name = initializer.name, .tensor = elements.back().view()});
  }
  write_safetensors(out, tensors);
}

// Losses, rates and times of a run.
void export_metrics(const Source& source, const std::string& format, const std::string& out) {
  require(source.is_run(), ErrorCode::kUsage, "--format {} needs the folder of a run", format);
  const Metrics metrics = source.run().metrics();
  if (format == "csv") return write_file_atomic(out, metrics_csv(metrics));
  const std::string& text = source.run().manifest().sessions.front().start_time;
  const auto start = parse_timestamp(text);
  require(start.has_value(), ErrorCode::kBadInput, "the run's start_time is '{}': no time",
          printable(text));
  const std::chrono::duration<double> since_1970 = start->time_since_epoch();
  write_file_atomic(out, event_file(metrics, since_1970.count()));
}

// A run's own plan, or what `train` would make of a model.
void export_plan(const Source& source, const Invocation& settled, const std::string& out) {
  if (source.is_run()) {
    const std::optional<StoredPlan> plan = source.run().plan();
    require(plan.has_value(), ErrorCode::kBadInput, "the run has no plan yet");
    return write_file_atomic(out, plan_json(plan->view()));
  }
  const OnnxModel model = source.original_model();
  const Sizes sizes = resolve_sizes(model, size_request(settled.settings()));
  CompileOptions options = compile_options(settled, model, sizes);
  options.passes.keep = KeepGraphs::kLast;
  const PlanRecord plan = plan_record(*compile(model, options));
  write_file_atomic(out, plan_json(view_of(plan)));
}

void check_flags(const Settings& settings) {
  const std::string& format = settings.text("format");
  require(settings.has("out"), ErrorCode::kUsage, "export needs -o FILE");
  require(format == "safetensors" || settings.text("names") != "torch", ErrorCode::kUsage,
          "--names torch needs --format safetensors");
  const bool may_be_a_stage = format == "onnx" || format == "dot";
  require(may_be_a_stage || !settings.has("stage"), ErrorCode::kUsage,
          "--stage means nothing with --format {}", format);
  require(!settings.has("outputs") || (format == "onnx" && !settings.has("stage")),
          ErrorCode::kUsage,
          "--outputs is about the trained model alone: not with --stage or "
          "another --format");
  require(!settings.on("best") || !settings.has("stage"), ErrorCode::kUsage,
          "--stage means nothing with --best");
  for (const std::string_view flag : {"as-device", "rank", "ranks"}) {
    require(format == "chrome" || !settings.given(flag), ErrorCode::kUsage,
            "--{} means nothing with --format {}", flag, format);
  }
}

Outcome run_export(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  check_flags(settings);
  const std::string& format = settings.text("format");
  const bool parameters = format == "safetensors";
  const Source source = Source::open(invocation.argument(0));
  const Invocation settled = source.settle(invocation);
  const std::string& out = settings.text("out");
  if (format == "csv" || format == "tensorboard") {
    export_metrics(source, format, out);
  } else if (const auto* of_profile = profiler::format_named(format)) {
    export_profile(source, settled, *of_profile, out);
  } else if (format == "dot") {
    export_dot(source, settled, out);
  } else if (format == "plan-json") {
    export_plan(source, settled, out);
  } else if (parameters && settings.text("names") == "torch") {
    return export_state_dict(source, settled, out);
  } else if (parameters) {
    export_parameters(source, settled, out);
  } else if (settings.has("stage")) {
    export_stage(source, settled, out);
  } else {
    export_model(source, settled, out);
  }
  return {.facts = Json::object({{"file", out}, {"format", format}}),
          .text = fmt::format("wrote {}\n", printable(out))};
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .summary =
              "Write the trained model, a stage, parameters, metrics, the plan or the profile as a "
              "file.",
          .arguments = {{.name = "RUN|MODEL.onnx", .help = "a run's folder, or a model"}},
          .flags = join_flags({kExportFlags, source_flags(), compile_flags()}),
          .examples = {"trainscope export runs/mlp-1 --format onnx -o trained.onnx",
                       "trainscope export runs/mlp-1 --format safetensors --names torch -o "
                       "state.safetensors"},
          .run = run_export};
}

}  // namespace trainscope
