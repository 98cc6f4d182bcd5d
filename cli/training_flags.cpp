// Flags of loss, optimizer and graph, and their conversion.
#include "cli/training_flags.h"

#include <fmt/format.h>

#include <array>

#include "cli/loss_spec.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr Flag kLossFlags[] = {
    {.name = "loss",
     .value = "SPEC",
     .fallback = "cross_entropy",
     .help = "cross_entropy|nll:output=logits,labels=labels,ignore_index=-100,class_axis=-1 or "
             "mse|bce_with_logits:output=..,labels=.."},
};

constexpr Flag kOptimizerFlags[] = {
    {.name = "optimizer",
     .type = FlagType::kChoice,
     .value = "sgd|adamw",
     .fallback = "adamw",
     .help = "Update rule"},
    {.name = "lr",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "1e-3",
     .help = "Learning rate",
     .minimum = 0},
    {.name = "momentum",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0",
     .help = "Of sgd",
     .minimum = 0,
     .maximum = 1},
    {.name = "betas", .value = "A,B", .fallback = "0.9,0.999", .help = "Of adamw"},
    {.name = "eps",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "1e-8",
     .help = "Of adamw",
     .minimum = 0},
    {.name = "weight-decay",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0",
     .help = "Pulls parameters to zero",
     .minimum = 0},
    {.name = "decay",
     .type = FlagType::kChoice,
     .value = "all|matrices",
     .fallback = "all",
     .help = "Which parameters decay; matrices: those of two or more dimensions"},
    {.name = "group",
     .type = FlagType::kTexts,
     .value = "'PATTERN:weight_decay=0,lr_scale=1'",
     .help = "Own numbers for parameters by name; the last that matches wins"},
    {.name = "schedule",
     .type = FlagType::kChoice,
     .value = "constant|cosine",
     .fallback = "constant",
     .help = "Learning rate after the warm-up; cosine falls to --min-lr at the last step"},
    {.name = "warmup",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "0",
     .help = "Steps in which the learning rate rises linearly",
     .minimum = 0},
    {.name = "min-lr",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0",
     .help = "Of the cosine schedule",
     .minimum = 0},
    {.name = "clip",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0",
     .help = "Largest norm of all gradients together; 0: no clipping",
     .minimum = 0},
    {.name = "accumulate",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "1",
     .help = "Batches whose gradients are averaged for one step",
     .minimum = 1,
     .maximum = 1 << 20},
};

constexpr Flag kGraphFlags[] = {
    {.name = "train",
     .type = FlagType::kTexts,
     .value = "PATTERN",
     .help = "Train only initializers whose name matches; * stands for any text"},
    {.name = "freeze",
     .type = FlagType::kTexts,
     .value = "PATTERN",
     .help = "Do not train initializers whose name matches"},
    {.name = "disable", .type = FlagType::kTexts, .value = "PASS", .help = "Leave out a pass"},
    {.name = "stop-after", .value = "PASS", .help = "The last pass to run"},
    {.name = "kernels",
     .type = FlagType::kChoice,
     .value = "fastest|reference",
     .fallback = "fastest",
     .help = "reference: the plain kernels that the others are tested against"},
};

double number_of(std::string_view flag, std::string_view text) {
  const std::optional<double> number = parse_number(text);
  require(number.has_value(), ErrorCode::kUsage, "--{}: '{}' is no number", flag, printable(text));
  return *number;
}

// A number of a group; negative ones would push parameters away from where they should go.
double group_number(std::string_view key, std::string_view text) {
  const double number = number_of("group", text);
  require(number >= 0.0, ErrorCode::kUsage, "--group: {} is '{}': expected 0 or more", key,
          printable(text));
  return number;
}

ParameterGroup parse_group(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  require(colon != std::string::npos && colon > 0, ErrorCode::kUsage,
          "--group is '{}': expected PATTERN:weight_decay=X,lr_scale=X", printable(text));
  ParameterGroup group{.pattern = text.substr(0, colon)};
  for (std::string_view part : split(std::string_view(text).substr(colon + 1), ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    static constexpr std::array<std::string_view, 2> kKeys = {"weight_decay", "lr_scale"};
    if (key == kKeys[0]) {
      group.weight_decay = group_number(key, value);
    } else if (key == kKeys[1]) {
      group.learning_rate_scale = group_number(key, value);
    } else {
      throw Error(ErrorCode::kUsage, fmt::format("--group has no key '{}'", printable(key)))
          .hint(nearest_hint(key, kKeys))
          .hint("its keys are weight_decay and lr_scale");
    }
  }
  return group;
}

// A flag that would do nothing is a mistake.
void refuse_others(const Settings& settings, std::string_view choice, std::string_view of,
                   std::span<const std::string_view> flags) {
  for (std::string_view flag : flags) {
    require(!settings.given(flag), ErrorCode::kUsage, "--{} means nothing with --{} {}", flag,
            choice, of);
  }
}

void parse_betas(const Settings& settings, OptimizerOptions& optimizer) {
  const std::string& text = settings.text("betas");
  const std::vector<std::string_view> parts = split(text, ',');
  require(parts.size() == 2, ErrorCode::kUsage, "--betas is '{}': expected two numbers A,B",
          printable(text));
  optimizer.beta1 = number_of("betas", parts[0]);
  optimizer.beta2 = number_of("betas", parts[1]);
  for (double beta : {optimizer.beta1, optimizer.beta2}) {
    require(beta >= 0.0 && beta < 1.0, ErrorCode::kUsage,
            "--betas is '{}': each must be at least 0 and below 1", printable(text));
  }
}

OptimizerOptions optimizer_options(const Settings& settings) {
  OptimizerOptions optimizer;
  if (settings.text("optimizer") == "sgd") {
    static constexpr std::string_view kOfAdam[] = {"betas", "eps"};
    refuse_others(settings, "optimizer", "sgd", kOfAdam);
    optimizer.kind = OptimizerKind::kSgd;
    optimizer.momentum = settings.number("momentum");
    require(optimizer.momentum < 1.0, ErrorCode::kUsage,
            "--momentum is '{}': expected a number of 0 or more, below 1",
            settings.text("momentum"));
  } else {
    static constexpr std::string_view kOfSgd[] = {"momentum"};
    refuse_others(settings, "optimizer", "adamw", kOfSgd);
    optimizer.kind = OptimizerKind::kAdamW;
    optimizer.epsilon = settings.number("eps");
    parse_betas(settings, optimizer);
  }
  optimizer.weight_decay = settings.number("weight-decay");
  optimizer.decay_matrices_only = settings.text("decay") == "matrices";
  optimizer.clip_norm = settings.number("clip");
  for (const std::string& text : settings.texts("group")) {
    optimizer.groups.push_back(parse_group(text));
  }
  return optimizer;
}

}  // namespace

std::span<const Flag> loss_flags() { return kLossFlags; }
std::span<const Flag> optimizer_flags() { return kOptimizerFlags; }
std::span<const Flag> graph_flags() { return kGraphFlags; }

std::vector<Flag> compile_flags() {
  return join_flags({loss_flags(), size_flags(), optimizer_flags(), graph_flags()});
}

CompileOptions forward_options(const Invocation& invocation, const Sizes& sizes) {
  CompileOptions options;
  options.import.dims = sizes.dims;
  options.import.shapes = sizes.shapes;
  options.training.mode = GraphMode::kInference;
  options.training.seed = invocation.seed();
  options.lower.threads = invocation.threads();
  return options;
}

CompileOptions compile_options(const Invocation& invocation, const OnnxModel& model,
                               const Sizes& sizes) {
  const Settings& settings = invocation.settings();
  CompileOptions options = forward_options(invocation, sizes);
  options.import.trainable = settings.texts("train");
  options.import.frozen = settings.texts("freeze");
  options.training.mode = GraphMode::kTrain;
  options.training.loss = parse_loss(settings.text("loss"));
  resolve_loss_output(model, options.training.loss);
  options.training.optimizer = optimizer_options(settings);
  options.training.micro_batches = settings.integer("accumulate");
  options.passes.disabled = settings.texts("disable");
  options.passes.stop_after = settings.text_or_empty("stop-after");
  if (settings.text("kernels") == "reference") options.lower.kernels = KernelChoice::kReference;
  return options;
}

Schedule training_schedule(const Settings& settings, std::int64_t steps) {
  Schedule schedule{.kind = parse_schedule_kind(settings.text("schedule")),
                    .learning_rate = settings.number("lr"),
                    .min_learning_rate = settings.number("min-lr"),
                    .warmup_steps = settings.integer("warmup"),
                    .total_steps = steps};
  if (schedule.kind == ScheduleKind::kConstant) {
    static constexpr std::string_view kOfCosine[] = {"min-lr"};
    refuse_others(settings, "schedule", "constant", kOfCosine);
  }
  check_schedule(schedule);
  return schedule;
}

Json optimizer_json(const OptimizerOptions& optimizer) {
  Json json = Json::object({{"kind", name_of(optimizer.kind)},
                            {"weight_decay", optimizer.weight_decay},
                            {"decay_matrices_only", optimizer.decay_matrices_only},
                            {"clip_norm", optimizer.clip_norm}});
  if (optimizer.kind == OptimizerKind::kSgd) {
    json.set("momentum", optimizer.momentum);
  } else {
    json.set("beta1", optimizer.beta1);
    json.set("beta2", optimizer.beta2);
    json.set("epsilon", optimizer.epsilon);
  }
  Json groups = Json::array();
  for (const ParameterGroup& group : optimizer.groups) {
    groups.push_back(
        Json::object({{"pattern", group.pattern},
                      {"weight_decay", group.weight_decay ? Json(*group.weight_decay) : Json()},
                      {"learning_rate_scale", group.learning_rate_scale}}));
  }
  json.set("groups", std::move(groups));
  return json;
}

}  // namespace trainscope
