// --alternate: OUTPUT=PATTERN[:optimizer=KIND,lr=X,...].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "cli/flags/training_flags.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/run/run_settings.h"

namespace trainscope {
namespace {

constexpr std::string_view kForm = "OUTPUT=PATTERN[:optimizer=KIND,lr=X,...]";

constexpr std::array<std::string_view, 9> kKeys = {
    "optimizer", "lr", "momentum", "nesterov", "beta1", "beta2", "alpha", "eps", "weight_decay"};

// Which keys mean something with an optimizer.
bool has_key(OptimizerKind kind, std::string_view key) {
  if (key == "lr" || key == "weight_decay") return true;
  if (kind == OptimizerKind::kSgd) return key == "momentum" || key == "nesterov";
  if (kind == OptimizerKind::kRmsProp) return key == "momentum" || key == "alpha" || key == "eps";
  if (kind == OptimizerKind::kLion) return key == "beta1" || key == "beta2";
  if (kind == OptimizerKind::kPlugin && key == "momentum") return true;
  return key == "beta1" || key == "beta2" || key == "eps";
}

double parse_own_number(std::string_view key, std::string_view value) {
  const std::optional<double> number = parse_number(value);
  const bool is_share = key == "momentum" || key == "beta1" || key == "beta2" || key == "alpha";
  const bool fits = number && *number >= 0.0 && (!is_share || *number < 1.0);
  require(fits, ErrorCode::kUsage, "--alternate: {} is '{}': expected a number {}", key,
          printable(value), is_share ? "of 0 or more, below 1" : "of 0 or more");
  return *number;
}

OptimizerKind parse_own_kind(std::string_view value) {
  std::vector<std::string_view> names;
  for (const OptimizerKind kind : kOptimizerKinds) {
    if (value == name_of(kind)) return kind;
    names.push_back(name_of(kind));
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("--alternate: there is no optimizer '{}'", printable(value)))
      .hint(nearest_hint(value, names))
      .hint(fmt::format("the optimizers are {}", join(names, ", ")));
}

struct OwnKey {
  std::string_view name;
  std::string_view value;
};

std::vector<OwnKey> parse_keys(std::string_view text) {
  std::vector<OwnKey> keys;
  for (const std::string_view piece : split(text, ',')) {
    const std::size_t equals = std::min(piece.find('='), piece.size());
    const std::string_view name = piece.substr(0, equals);
    if (std::ranges::find(kKeys, name) == kKeys.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("--alternate has no key '{}'", printable(name)))
          .hint(nearest_hint(name, kKeys))
          .hint(fmt::format("its keys are {}", join(kKeys, ", ")));
    }
    require(equals + 1 < piece.size(), ErrorCode::kUsage, "--alternate: {} has no value", name);
    keys.push_back({.name = name, .value = piece.substr(equals + 1)});
  }
  // The kind first: the others are its numbers.
  std::ranges::stable_partition(keys, [](const OwnKey& key) { return key.name == "optimizer"; });
  return keys;
}

// Another kind begins with its own usual numbers.
void take_kind(OptimizerKind kind, OptimizerOptions& optimizer) {
  if (kind == optimizer.kind) return;
  OptimizerOptions own{.kind = kind,
                       .weight_decay = optimizer.weight_decay,
                       .decay_matrices_only = optimizer.decay_matrices_only,
                       .groups = optimizer.groups};
  if (kind == OptimizerKind::kLion || kind == OptimizerKind::kRmsProp) own.beta2 = 0.99;
  optimizer = std::move(own);
}

// A rate of its own follows the schedule in proportion.
double rate_scale(double rate, double learning_rate) {
  require(learning_rate > 0.0, ErrorCode::kUsage, "--alternate: lr={} needs a --lr above 0", rate);
  return rate / learning_rate;
}

void take_key(const OwnKey& key, double learning_rate, OptimizerOptions& optimizer) {
  if (key.name == "optimizer") return take_kind(parse_own_kind(key.value), optimizer);
  require(has_key(optimizer.kind, key.name), ErrorCode::kUsage,
          "--alternate: {} means nothing with {}", key.name, name_of(optimizer.kind));
  const double number = parse_own_number(key.name, key.value);
  if (key.name == "lr") {
    for (const ParameterGroup& group : optimizer.groups) {
      require(group.learning_rate_scale != 1.0, ErrorCode::kUsage,
              "--group '{}' would take the lr of --alternate back: give it a rate (lr=X)",
              printable(group.pattern));
    }
    // Before the groups of --group, which have rates of their own.
    optimizer.groups.insert(
        optimizer.groups.begin(),
        {.pattern = "*", .learning_rate_scale = rate_scale(number, learning_rate)});
  }
  if (key.name == "momentum") optimizer.momentum = number;
  if (key.name == "nesterov") optimizer.nesterov = number != 0.0;
  if (key.name == "beta1") optimizer.beta1 = number;
  if (key.name == "beta2" || key.name == "alpha") optimizer.beta2 = number;
  if (key.name == "eps") optimizer.epsilon = number;
  if (key.name == "weight_decay") optimizer.weight_decay = number;
}

AlternatingLoss parse_alternating(std::string_view text, const Settings& settings,
                                  const OptimizerOptions& usual) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::size_t colon = std::min(text.find(':', equals), text.size());
  const bool is_whole = equals > 0 && equals + 1 < colon;
  require(is_whole, ErrorCode::kUsage, "--alternate is '{}': expected {}", printable(text), kForm);
  AlternatingLoss loss{.output = std::string(text.substr(0, equals)),
                       .pattern = std::string(text.substr(equals + 1, colon - equals - 1)),
                       .optimizer = usual};
  if (colon == text.size()) return loss;
  for (const OwnKey& key : parse_keys(text.substr(colon + 1))) {
    take_key(key, settings.number("lr"), loss.optimizer);
  }
  require(!loss.optimizer.nesterov || loss.optimizer.momentum > 0.0, ErrorCode::kUsage,
          "--alternate: nesterov needs a momentum above 0");
  return loss;
}

}  // namespace

std::vector<AlternatingLoss> alternation(const Settings& settings, const OptimizerOptions& usual) {
  std::vector<AlternatingLoss> losses;
  if (!settings.all().contains("alternate")) return losses;
  for (const std::string& text : settings.texts("alternate")) {
    losses.push_back(parse_alternating(text, settings, usual));
    const auto same = std::ranges::count(losses, losses.back().output, &AlternatingLoss::output);
    require(same == 1, ErrorCode::kUsage, "--alternate names the loss '{}' twice",
            printable(losses.back().output));
  }
  if (losses.size() == 1) {
    throw Error(ErrorCode::kUsage, "--alternate: one loss has nothing to alternate with")
        .hint("give it once for each loss, or --loss output:NAME");
  }
  if (losses.empty() || !settings.given("loss")) return losses;
  // A run's own file says what their sum is.
  require(settings.text("loss") == loss_text(sum_of_losses(losses)), ErrorCode::kUsage,
          "--alternate and --loss do not go together: give one of them");
  return losses;
}

LossOptions sum_of_losses(const std::vector<AlternatingLoss>& losses) {
  LossOptions sum{.kind = LossKind::kOutput, .output = losses.front().output};
  for (std::size_t i = 1; i < losses.size(); ++i) {
    sum.further.push_back({.kind = LossKind::kOutput, .output = losses[i].output});
  }
  return sum;
}

}  // namespace trainscope
