// gradients: one forward and backward pass on given tensors.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags/check_flags.h"
#include "cli/flags/invocation.h"
#include "engine/check/gradients.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/model_warnings.h"

namespace trainscope {
namespace {

constexpr Flag kGradientsFlags[] = {
    {.name = "meta", .value = "META.json", .help = "Loss, labels, trainable and frozen names"},
    {.name = "tensors",
     .value = "FILE.safetensors",
     .help = "Holds batch.N:INPUT and batch.N:labels"},
    {.name = "batch",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "0",
     .help = "Which batch of the file; its tensors say the sizes that the model leaves open",
     .minimum = 0,
     .maximum = 1 << 20},
    {.name = "dtype",
     .type = FlagType::kChoice,
     .value = "f32|f64|bf16",
     .fallback = "f32",
     .help = "Type of all floats of the model; bf16: of activations and matmuls"},
    {.name = "values",
     .value = "all|NAME,..",
     .help = "Values whose elements and gradients are wanted too"},
    {.name = "out",
     .value = "OUT.safetensors",
     .help = "Gets loss, grad:NAME, act:VALUE and dact:VALUE",
     .letter = 'o'},
};

GradientsOptions options_of(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  GradientsOptions options;
  if (settings.text("dtype") == "f64") options.float_type = DType::kF64;
  if (settings.text("dtype") == "bf16") options.precision = StepPrecision::kBF16;
  if (settings.has("values")) {
    for (std::string_view name : split(settings.text("values"), ',')) {
      options.values.emplace_back(name);
    }
  }
  options.lower = lower_options(invocation);
  options.passes = pass_options(invocation);
  options.device = device_of(settings.text("device"));
  return options;
}

GradientsResult gradients_of(const OnnxModel& model, const Settings& settings,
                             const GradientsOptions& options) {
  const ReferenceMeta meta = read_reference_meta(settings.text("meta"));
  const SafetensorsFile tensors = SafetensorsFile::open(settings.text("tensors"));
  const std::int64_t index = settings.integer("batch");
  const Batch batch = reference_batch(tensors, static_cast<int>(index), options.float_type);
  try {
    return compute_gradients(model, meta, batch, options);
  } catch (Error& error) {
    error.at(fmt::format("batch.{} of {}", index, printable(tensors.path().string())));
    throw;
  }
}

Outcome run_gradients(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  for (const char* flag : {"meta", "tensors", "out"}) {
    require(settings.has(flag), ErrorCode::kUsage, "gradients needs --{}", flag);
  }
  const GradientsOptions options = options_of(invocation);
  const OnnxModel model = OnnxModel::read(invocation.argument(0));
  warn_of(model, invocation.log());
  const GradientsResult result = gradients_of(model, settings, options);
  write_gradients(result, settings.text("out"));
  const double loss = convert(result.loss, DType::kF64).values<double>()[0];
  Outcome outcome;
  outcome.facts = Json::object({{"loss", loss},
                                {"gradient_count", result.gradients.size()},
                                {"activation_count", result.activations.size()},
                                {"predicted_bytes", result.arena_bytes},
                                {"used_bytes", result.used_bytes},
                                {"file", settings.text("out")}});
  outcome.text =
      fmt::format("loss {:.9g}; {} gradients and {} values in {}\n", loss, result.gradients.size(),
                  result.activations.size(), printable(settings.text("out")));
  return outcome;
}

}  // namespace

Command gradients_command() {
  return {.name = "gradients",
          .summary = "Compute loss and gradients of one batch.",
          .arguments = {{.name = "MODEL.onnx", .help = "the forward graph"}},
          .flags = join_flags({kGradientsFlags, check_flags()}),
          .examples = {"trainscope gradients model.onnx --meta meta.json --tensors "
                       "reference.safetensors --batch 0 --out gradients.safetensors",
                       "trainscope gradients model.onnx --meta meta.json --tensors "
                       "reference.safetensors --dtype f64 --values all --out all.safetensors"},
          .run = run_gradients};
}

}  // namespace trainscope
