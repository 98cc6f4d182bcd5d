// Flags of the optimizer, and its options made of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/flags/training_flags.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/plugin/plugin.h"

namespace trainscope {
namespace {

constexpr std::string_view kUsualBetas = "0.9,0.999";

constexpr Flag kFlags[] = {
    {.name = "optimizer",
     .type = FlagType::kChoice,
     .value = "sgd|adam|adamw|adamw_hf|lamb|rmsprop|lion",
     .fallback = "adamw",
     .help = "Update rule; adamw is PyTorch's form, adamw_hf that of Hugging Face; of a plugin "
             "DOMAIN.NAME",
     .open = true},
    {.name = "lr",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "1e-3",
     .help = "Learning rate",
     .minimum = 0,
     .also = "learning-rate"},
    {.name = "momentum",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0",
     .help = "Of sgd and rmsprop",
     .minimum = 0,
     .maximum = 1},
    {.name = "nesterov", .type = FlagType::kSwitch, .help = "Of sgd with a momentum"},
    {.name = "betas",
     .value = "A,B",
     .fallback = kUsualBetas,
     .help = "Of all optimizers but sgd and rmsprop: decay of the two moments; lion's default is "
             "0.9,0.99"},
    {.name = "alpha",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0.99",
     .help = "Of rmsprop: decay of the mean of squares",
     .minimum = 0},
    {.name = "centered",
     .type = FlagType::kSwitch,
     .help = "Of rmsprop: divide by the root of the variance, not of the mean of squares"},
    {.name = "eps",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "1e-8",
     .help = "Of all optimizers but sgd and lion",
     .minimum = 0,
     .also = "epsilon"},
    {.name = "bias-correction",
     .type = FlagType::kToggle,
     .fallback = "on",
     .help = "Of all optimizers but sgd: make up for moments that start at 0"},
    {.name = "ratio-limits",
     .value = "A,B",
     .help = "Of lamb: limits of norm of the parameter over norm of the update; default: none"},
    {.name = "weight-decay",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0",
     .help = "Pulls parameters to zero",
     .minimum = 0,
     .also = "wd"},
    {.name = "decay",
     .type = FlagType::kChoice,
     .value = "all|matrices",
     .fallback = "all",
     .help = "Which parameters decay; matrices: those of two or more dimensions"},
    {.name = "group",
     .type = FlagType::kTexts,
     .value = "'PATTERN:weight_decay=0,lr_scale=1'",
     .help = "Own numbers for parameters by name, lr=X for a rate of their own; the last that "
             "matches wins"},
    {.name = "alternate",
     .type = FlagType::kTexts,
     .value = "'OUTPUT=PATTERN[:optimizer=KIND,lr=X,..]'",
     .help = "Twice or more, of adversarial nets: in each step the model's scalar OUTPUT trains "
             "the parameters that match, then the next one its own on what that left; keys "
             "optimizer, lr, momentum, nesterov, beta1, beta2, alpha, eps, weight_decay"},
    {.name = "clip",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0",
     .help = "Largest norm of all gradients together; 0: no clipping",
     .minimum = 0,
     .also = "max-grad-norm|grad-clip"},
    {.name = "sparse-embeddings",
     .type = FlagType::kSwitch,
     .help =
         "Of an embedding only the rows that a batch names change: rows that it does not name "
         "keep their moments and do not decay (as with torch.optim.SparseAdam), and no gradient "
         "of all rows is made; plain sgd does so anyway, lamb, rmsprop and lion never"},
    {.name = "ema",
     .type = FlagType::kNumber,
     .value = "DECAY",
     .help = "Keep averages of the parameters over the steps, 0.999 for example; evaluations and "
             "the exported model use them",
     .minimum = 0},
    {.name = "accumulate",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "1",
     .help = "Batches whose gradients are averaged for one step",
     .minimum = 1,
     .maximum = 1 << 20,
     .also = "gradient-accumulation-steps|accumulation-steps"},
};

double number_of(std::string_view flag, std::string_view text) {
  const std::optional<double> number = parse_number(text);
  require(number.has_value(), ErrorCode::kUsage, "--{}: '{}' is no number", flag, printable(text));
  return *number;
}

// "A,B".
std::array<double, 2> two_numbers(const Settings& settings, std::string_view flag) {
  const std::string& text = settings.text(flag);
  const std::vector<std::string_view> pieces = split(text, ',');
  require(pieces.size() == 2, ErrorCode::kUsage, "--{} is '{}': expected two numbers A,B", flag,
          printable(text));
  return {number_of(flag, pieces[0]), number_of(flag, pieces[1])};
}

// A rate of its own is one that follows the schedule in proportion.
double own_rate(double rate, double learning_rate) {
  require(learning_rate > 0.0, ErrorCode::kUsage,
          "--group: lr={} needs a --lr above 0: use lr_scale", rate);
  return rate / learning_rate;
}

ParameterGroup parse_group(const std::string& text, const Settings& settings) {
  const std::size_t colon = text.rfind(':');
  require(colon != std::string::npos && colon > 0, ErrorCode::kUsage,
          "--group is '{}': expected PATTERN:weight_decay=X,lr_scale=X", printable(text));
  ParameterGroup group{.pattern = text.substr(0, colon)};
  for (std::string_view piece : split(std::string_view(text).substr(colon + 1), ',')) {
    const std::size_t equals = piece.find('=');
    const std::string_view key = piece.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : piece.substr(equals + 1);
    static constexpr std::array<std::string_view, 3> kKeys = {"weight_decay", "lr_scale", "lr"};
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("--group has no key '{}'", printable(key)))
          .hint(nearest_hint(key, kKeys))
          .hint("its keys are weight_decay, lr_scale and lr");
    }
    const double number = number_of("group", value);
    require(number >= 0.0, ErrorCode::kUsage, "--group: {} is '{}': expected a number of 0 or more",
            key, printable(value));
    if (key == kKeys[0]) group.weight_decay = number;
    if (key == kKeys[1]) group.learning_rate_scale = number;
    if (key == kKeys[2]) group.learning_rate_scale = own_rate(number, settings.number("lr"));
  }
  return group;
}

void parse_betas(const Settings& settings, OptimizerOptions& optimizer) {
  const std::array<double, 2> betas = two_numbers(settings, "betas");
  for (double beta : betas) {
    require(beta >= 0.0 && beta < 1.0, ErrorCode::kUsage,
            "--betas is '{}': each must be at least 0 and below 1",
            printable(settings.text("betas")));
  }
  optimizer.beta1 = betas[0];
  optimizer.beta2 = betas[1];
}

void parse_ratio_limits(const Settings& settings, OptimizerOptions& optimizer) {
  if (!settings.has("ratio-limits")) return;
  const std::array<double, 2> limits = two_numbers(settings, "ratio-limits");
  require(limits[0] >= 0.0 && limits[0] <= limits[1], ErrorCode::kUsage,
          "--ratio-limits is '{}': expected 0 <= A <= B", printable(settings.text("ratio-limits")));
  optimizer.ratio_min = limits[0];
  optimizer.ratio_max = limits[1];
}

void choose_kind(const std::string& name, OptimizerOptions& optimizer) {
  for (OptimizerKind kind : kOptimizerKinds) {
    if (name != name_of(kind)) continue;
    optimizer.kind = kind;
    return;
  }
  const PluginOptimizer* own = find_plugin_optimizer(name);
  if (own == nullptr) {
    throw Error(ErrorCode::kUsage, fmt::format("there is no optimizer '{}'", printable(name)))
        .hint(nearest_hint(name, plugin_optimizer_names()))
        .hint("--plugin FILE.so brings optimizers of its own");
  }
  optimizer.kind = OptimizerKind::kPlugin;
  optimizer.step = {.name = own->name, .op = own->op, .domain = own->domain, .states = own->states};
}

// Which flags mean something with an optimizer.
std::vector<std::string_view> flags_of(OptimizerKind kind) {
  if (kind == OptimizerKind::kSgd) return {"momentum", "nesterov", "sparse-embeddings"};
  if (kind == OptimizerKind::kRmsProp) return {"momentum", "alpha", "centered", "eps"};
  if (kind == OptimizerKind::kLion) return {"betas"};
  if (kind == OptimizerKind::kPlugin) return {"momentum", "betas", "eps"};
  if (kind == OptimizerKind::kLamb) return {"betas", "eps", "bias-correction", "ratio-limits"};
  return {"betas", "eps", "bias-correction", "sparse-embeddings"};
}

void check_momentum(const OptimizerOptions& optimizer) {
  require(optimizer.momentum < 1.0, ErrorCode::kUsage,
          "--momentum is '{}': expected a number of 0 or more, below 1", optimizer.momentum);
  require(!optimizer.nesterov || optimizer.momentum > 0.0, ErrorCode::kUsage,
          "--nesterov needs a --momentum above 0");
}

void parse_rmsprop(const Settings& settings, OptimizerOptions& optimizer) {
  optimizer.momentum = settings.number("momentum");
  check_momentum(optimizer);
  optimizer.beta2 = settings.number("alpha");
  require(optimizer.beta2 < 1.0, ErrorCode::kUsage,
          "--alpha is '{}': expected a number of 0 or more, below 1", optimizer.beta2);
  optimizer.epsilon = settings.number("eps");
  optimizer.centered = settings.on("centered");
}

// The numbers of the kind alone.
void parse_own(const Settings& settings, OptimizerOptions& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      optimizer.momentum = settings.number("momentum");
      optimizer.nesterov = settings.on("nesterov");
      return check_momentum(optimizer);
    case OptimizerKind::kPlugin:
      optimizer.momentum = settings.number("momentum");
      optimizer.epsilon = settings.number("eps");
      return parse_betas(settings, optimizer);
    case OptimizerKind::kRmsProp:
      return parse_rmsprop(settings, optimizer);
    case OptimizerKind::kLion:
      optimizer.beta2 = 0.99;
      // What a run records is what it was trained with.
      if (settings.given("betas") || settings.all().at("betas").origin == Origin::kRun ||
          settings.text("betas") != kUsualBetas) {
        parse_betas(settings, optimizer);
      }
      return;
    default:
      optimizer.epsilon = settings.number("eps");
      optimizer.bias_correction = settings.on("bias-correction");
      parse_betas(settings, optimizer);
      if (optimizer.kind == OptimizerKind::kLamb) parse_ratio_limits(settings, optimizer);
  }
}

}  // namespace

std::span<const Flag> optimizer_flags() { return kFlags; }

void refuse_idle_flags(const Settings& settings, std::string_view choice,
                       std::span<const std::string_view> all,
                       std::span<const std::string_view> meaningful) {
  for (std::string_view flag : all) {
    const bool idle = std::ranges::find(meaningful, flag) == meaningful.end();
    require(!idle || !settings.given(flag), ErrorCode::kUsage, "--{} means nothing with --{} {}",
            flag, choice, settings.text(choice));
  }
}

OptimizerOptions optimizer_options(const Settings& settings) {
  OptimizerOptions optimizer;
  choose_kind(settings.text("optimizer"), optimizer);
  static constexpr std::string_view kAll[] = {
      "momentum",     "nesterov",         "betas", "alpha", "centered", "eps", "bias-correction",
      "ratio-limits", "sparse-embeddings"};
  refuse_idle_flags(settings, "optimizer", kAll, flags_of(optimizer.kind));
  parse_own(settings, optimizer);
  optimizer.weight_decay = settings.number("weight-decay");
  optimizer.decay_matrices_only = settings.text("decay") == "matrices";
  optimizer.clip_norm = settings.number("clip");
  optimizer.sparse_embeddings = settings.on("sparse-embeddings");
  for (const std::string& text : settings.texts("group")) {
    optimizer.groups.push_back(parse_group(text, settings));
  }
  return optimizer;
}

}  // namespace trainscope
