// Manifest, config.toml and stages of a run.
#include "cli/run/run_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "cli/flags/loss_spec.h"
#include "cli/flags/toml_file.h"
#include "cli/machine.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/record.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// Flags that say how to talk, not what to train.
constexpr std::array<std::string_view, 13> kNotRecorded = {
    "json", "quiet",  "verbose", "color",  "progress", "log-level", "log-format",
    "set",  "config", "dry-run", "resume", "run-dir",  "export"};

}  // namespace

Json resolved_options(const Invocation& invocation, const LossOptions& loss, const Sizes& sizes) {
  std::map<std::string, Json> resolved;  // by name, so that a run from the file writes the same one
  for (const auto& [name, setting] : invocation.settings().all()) {
    if (std::ranges::find(kNotRecorded, name) != kNotRecorded.end()) continue;
    if (!setting.texts.empty()) resolved[name] = json_of(setting);
  }
  resolved["loss"] = loss_text(loss);
  resolved["threads"] = invocation.threads();
  if (sizes.batch > 0) resolved["batch"] = sizes.batch;
  if (sizes.sequence > 0) resolved["seq"] = sizes.sequence;
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

std::string run_name(const fs::path& model) {
  std::string name = model.stem().string();
  if (name == "model") {
    std::error_code error;
    const std::string folder = fs::absolute(model, error).parent_path().filename().string();
    if (!error && !folder.empty()) name = folder;
  }
  std::ranges::replace_if(
      name, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '/'; }, '_');
  return name;
}

RunSession run_session(const Invocation& invocation, std::int64_t from_step) {
  RunSession session{.command = {"trainscope"},
                     .program_version = std::string(program_version()),
                     .device = "cpu",
                     .threads = invocation.threads(),
                     .isa = vector_isa(),
                     .from_step = from_step};
  const std::vector<std::string>& words = invocation.words();
  session.command.insert(session.command.end(), words.begin(), words.end());
  return session;
}

Json model_facts(const OnnxModel& model) {
  std::error_code error;
  return Json::object({{"file", model.path().string()},
                       {"path", fs::absolute(model.path(), error).string()},
                       {"xxh3", hash_hex(model.hash())},
                       {"producer", model.producer()},
                       {"opset", model.opset()},
                       {"nodes", model.node_count()}});
}

void write_stages(RunWriter& writer, const Stages& stages, const std::function<bool()>& stop) {
  for (std::size_t i = 0; i < stages.size() && !stop(); ++i) {
    write_onnx(stages[i].graph, writer.next_stage_file(stages[i].name),
               {.weights = Weights::kOmit, .tensor = {}});
    writer.add_stage(stage_record(stages[i], i == 0 ? nullptr : &stages[i - 1]));
  }
}

}  // namespace trainscope
