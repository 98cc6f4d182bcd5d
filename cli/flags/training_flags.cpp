// Flags of loss and graph, and the engine's options made of these and the others.
#include "cli/flags/training_flags.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/flags/loss_spec.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/functions/user_gradients.h"
#include "engine/run/planned_step.h"

namespace trainscope {
namespace {

constexpr Flag kLossFlags[] = {
    {.name = "loss",
     .value = "SPEC",
     .fallback = "cross_entropy",
     .help =
         "cross_entropy|nll:output=logits,labels=labels,ignore_index=-100,class_axis=-1 "
         "(cross_entropy also weights=A:B:..|FILE,label_smoothing=X), mse|l1|bce_with_logits|huber|"
         "focal:output=..,labels=.. (huber also delta=X, focal gamma=X,alpha=X), "
         "ctc:blank=0,most_labels=S or output:NAME, the model's own scalar; a weighted sum: "
         "'mse:output=y,labels=x + 0.5*output:kl', labels of which may be an input of the model"},
};

constexpr Flag kDeterminismFlags[] = {
    {.name = "deterministic",
     .type = FlagType::kChoice,
     .value = "threads|strict",
     .fallback = "threads",
     .help = "The same bits on every run with as many threads; strict: with any number of them"},
};

constexpr Flag kGraphFlags[] = {
    {.name = "train",
     .type = FlagType::kTexts,
     .value = "PATTERN",
     .help = "Train only parameters whose name matches (* stands for any text); an initializer "
             "that would not be trained otherwise is added"},
    {.name = "freeze",
     .type = FlagType::kTexts,
     .value = "PATTERN",
     .help = "Do not train initializers whose name matches"},
    {.name = "parameters",
     .value = "FILE",
     .help = "Train exactly the initializers that the file names, one a line"},
    {.name = "precision",
     .type = FlagType::kChoice,
     .value = "f32|tf32|bf16|fp16",
     .fallback = "f32",
     .help = "What activations are stored and matmuls computed in; parameters stay f32. tf32: f32 "
             "whose matmuls round their factors to TF32, with --device cuda"},
    {.name = "straight-through",
     .type = FlagType::kSwitch,
     .help =
         "Round, Floor, Ceil and Sign pass gradients on as if they were not there, so that what "
         "is before them is trained too"},
    {.name = "gradients",
     .value = "FILE",
     .help = "Gradients of ops, written with other ops, in place of those that they have: "
             "`Foo_grad (x, y, dy) => (dx) { ... }` each (docs/plugins.md)"},
    {.name = "batch-norm",
     .type = FlagType::kChoice,
     .value = "batch|running",
     .fallback = "batch",
     .help = "What batch norms normalize by in training: the batch's statistics, or their running "
             "ones, which stay as they are (PyTorch's eval())"},
    {.name = "disable",
     .type = FlagType::kTexts,
     .value = "PASS",
     .help = "Leave out a pass, or order, recompute or batch_tiles"},
    {.name = "stop-after", .value = "PASS", .help = "The last pass to run"},
};

constexpr Flag kKernelFlags[] = {
    {.name = "kernels",
     .type = FlagType::kChoice,
     .value = "fastest|direct|reference",
     .fallback = "fastest",
     .help =
         "direct: no Winograd, whose convolutions round more; reference: the plain kernels that "
         "the others are tested against"},
};

}  // namespace

std::span<const Flag> loss_flags() { return kLossFlags; }
std::span<const Flag> graph_flags() { return kGraphFlags; }

std::span<const Flag> kernel_flags() { return kKernelFlags; }
std::span<const Flag> determinism_flags() { return kDeterminismFlags; }

std::vector<Flag> compile_flags() {
  return join_flags({loss_flags(), size_flags(), optimizer_flags(), schedule_flags(), graph_flags(),
                     kernel_flags(), determinism_flags(), recompute_flags()});
}

SameBits same_bits(const Settings& settings) {
  return same_bits_of(settings.text("deterministic"));
}

KernelChoice kernel_choice(const Settings& settings) {
  return kernel_choice_of(settings.text("kernels"));
}

StepPrecision step_precision(std::string_view text) {
  for (const StepPrecision precision : kStepPrecisions) {
    if (name_of(precision) == text) return precision;
  }
  return StepPrecision::kF16;
}

std::vector<std::string> disabled_passes(const Settings& settings) {
  std::vector<std::string> names = settings.texts("disable");
  for (std::string& name : names) name = present_pass_name(name, default_passes());
  return names;
}

namespace {

constexpr std::uint64_t kMaxNamesBytes = std::uint64_t{1} << 26;

std::vector<std::string> names_in_file(const std::string& path) {
  const std::string text = read_file(path, kMaxNamesBytes);
  std::vector<std::string> names;
  for (std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) names.emplace_back(trim(line));
  }
  require(!names.empty(), ErrorCode::kBadInput, "'{}' names no parameter", printable(path));
  return names;
}

// Null without --gradients.
std::shared_ptr<const UserGradients> user_gradients(const Settings& settings) {
  if (!settings.has("gradients")) return nullptr;
  const std::string& file = settings.text("gradients");
  return std::make_shared<const UserGradients>(read_file(file, kMaxGradientsBytes), file,
                                               op_table());
}

}  // namespace

void choose_what_to_train(const Settings& settings, ImportOptions& import) {
  import.trainable = settings.texts("train");
  import.frozen = settings.texts("freeze");
  if (!settings.has("parameters")) return;
  require(import.trainable.empty(), ErrorCode::kUsage,
          "--train and --parameters do not go together: give one of them");
  import.parameters = names_in_file(settings.text("parameters"));
}

CompileOptions forward_options(const Invocation& invocation, const Sizes& sizes) {
  CompileOptions options;
  options.import.dims = sizes.dims;
  options.import.shapes = sizes.shapes;
  options.import.max_trips = invocation.settings().find_integer("max-trips");
  options.training.mode = GraphMode::kInference;
  options.training.seed = invocation.seed();
  options.lower.threads = invocation.threads();
  options.device = device_of(invocation.settings().text("device"));
  return options;
}

namespace {

void set_plan_options(const Settings& settings, CompileOptions& options) {
  options.passes.disabled = disabled_passes(settings);
  options.passes.stop_after =
      present_pass_name(settings.text_or_empty("stop-after"), default_passes());
  options.lower.kernels = kernel_choice(settings);
  options.lower.same_bits = same_bits(settings);
  options.order = op_order(settings);
  options.batch_tiles = batch_tiles(settings);
  options.recompute = recompute_options(settings);
  options.costs = settings.text_or_empty("costs");
  options.machine = plan_machine(settings);
}

}  // namespace

CompileOptions plan_options(const Invocation& invocation) {
  CompileOptions options = forward_options(invocation, {});
  set_plan_options(invocation.settings(), options);
  for (const Pass& pass : default_passes()) options.passes.disabled.emplace_back(pass.name);
  return options;
}

bool changes_the_graph(const Settings& settings) {
  static constexpr std::array<std::string_view, 12> kOfThePlan = {
      "kernels", "deterministic", "memory-budget", "max-overhead", "recompute", "pins",
      "offload", "link-rate",     "op-order",      "batch-tiles",  "costs",     "machine"};
  return std::ranges::any_of(compile_flags(), [&settings](const Flag& flag) {
    return settings.given(flag.name) &&
           std::ranges::find(kOfThePlan, flag.name) == kOfThePlan.end();
  });
}

namespace {

double ema_decay(const Settings& settings) {
  if (!settings.has("ema")) return 0.0;
  const double decay = settings.number("ema");
  require(decay < 1.0, ErrorCode::kUsage, "--ema is '{}': expected a number of 0 or more, below 1",
          decay);
  return decay;
}

}  // namespace

CompileOptions compile_options(const Invocation& invocation, const OnnxModel& model,
                               const Sizes& sizes) {
  const Settings& settings = invocation.settings();
  CompileOptions options = forward_options(invocation, sizes);
  choose_what_to_train(settings, options.import);
  options.training.mode = GraphMode::kTrain;
  options.training.optimizer = optimizer_options(settings);
  options.training.alternation = alternation(settings, options.training.optimizer);
  options.training.loss = options.training.alternation.empty()
                              ? parse_loss(settings.text("loss"))
                              : sum_of_losses(options.training.alternation);
  resolve_loss_output(model, options.training.loss);
  options.training.loss_chunks = settings.integer("loss-chunks");
  options.training.skip_ignored = settings.on("skip-ignored");
  require(!options.training.skip_ignored || options.training.loss_chunks <= 1, ErrorCode::kUsage,
          "--skip-ignored and --loss-chunks do not go together: give one of them");
  options.training.skip_padding = settings.text_or_empty("skip-padding");
  options.training.precision = step_precision(settings.text("precision"));
  options.import.gradients = user_gradients(settings);
  options.training.straight_through = settings.on("straight-through");
  options.training.running_statistics = settings.text("batch-norm") == "running";
  options.training.optimizer.in_backward = settings.on("optimizer-in-backward");
  options.training.micro_batches = settings.integer("accumulate");
  options.training.ema_decay = ema_decay(settings);
  set_plan_options(settings, options);
  return options;
}

}  // namespace trainscope
