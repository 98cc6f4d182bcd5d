// Settings with their resolved values.
#include "cli/flags/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "cli/flags/toml_file.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/run/run_settings.h"

namespace trainscope {
namespace {

// Flags that say how to talk, or of which session, not what to train.
constexpr std::array<std::string_view, 16> kNotRecorded = {
    "json",       "quiet",         "verbose",   "color",   "progress", "log-level",
    "log-format", "set",           "config",    "dry-run", "resume",   "run-dir",
    "export",     "session-steps", "worker-fd", "ranks-fd"};

}  // namespace

bool is_recorded(std::string_view flag) {
  return std::ranges::find(kNotRecorded, flag) == kNotRecorded.end();
}

Json resolved_options(const Invocation& invocation, const CompileOptions& compile,
                      const Sizes& sizes) {
  std::map<std::string, Json> resolved;  // by name, so that a run from the file writes the same one
  for (const auto& [name, setting] : invocation.settings().all()) {
    if (!is_recorded(name)) continue;
    if (!setting.texts.empty()) resolved[name] = json_of(setting);
  }
  const Settings& settings = invocation.settings();
  const bool is_lion = settings.has("optimizer") && settings.text("optimizer") == "lion";
  if (is_lion && settings.all().at("betas").origin == Origin::kDefault) {
    resolved["betas"] = "0.9,0.99";
  }
  resolved["loss"] = loss_text(compile.training.loss);
  if (compile.import.max_trips) resolved["max-trips"] = *compile.import.max_trips;
  resolved["threads"] = invocation.threads();
  if (sizes.batch > 0) resolved["batch"] = sizes.batch;
  if (sizes.sequence > 0) resolved["seq"] = sizes.sequence;
  // A run goes on from another folder, too.
  for (const std::string_view file : {"gradients", "parameters"}) {
    if (!settings.all().contains(file) || !settings.has(file)) continue;
    resolved[std::string(file)] = std::filesystem::absolute(settings.text(file)).string();
  }
  Json options = Json::object({{"model", invocation.argument(0)}});
  for (auto& [name, value] : resolved) options.set(name, std::move(value));
  return options;
}

std::string config_toml(const Json& options) {
  std::string text = "# The options of this run with their resolved values.\n";
  for (const JsonMember& option : options.as_object()) {
    text += fmt::format("{} = {}\n", option.key, toml_value(option.value));
  }
  return text;
}

MetricsForms metrics_forms(const Settings& settings) {
  static constexpr std::array<std::string_view, 3> kForms = {"jsonl", "csv", "tensorboard"};
  MetricsForms forms;
  for (std::string_view word : split(settings.text("metrics"), ',')) {
    if (std::ranges::find(kForms, word) == kForms.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("--metrics has no form '{}'", printable(word)))
          .hint(nearest_hint(word, kForms))
          .hint("its forms are jsonl, csv and tensorboard, with commas between them");
    }
    forms.csv = forms.csv || word == "csv";
    forms.tensorboard = forms.tensorboard || word == "tensorboard";
  }
  return forms;
}

}  // namespace trainscope
