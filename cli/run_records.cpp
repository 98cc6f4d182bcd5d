// Manifest, config.toml and stages of a run.
#include "cli/run_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/loss_spec.h"
#include "cli/machine.h"
#include "engine/core/hash.h"
#include "engine/record.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// Flags that say how to talk, not what to train.
constexpr std::array<std::string_view, 8> kNotRecorded = {
    "json", "quiet", "verbose", "color", "progress", "resume", "run-dir", "export"};

}  // namespace

Json resolved_options(const Invocation& invocation, const LossOptions& loss, const Sizes& sizes) {
  Json options = Json::object({{"model", invocation.argument(0)}});
  for (const auto& [name, setting] : invocation.settings().all()) {
    if (std::ranges::find(kNotRecorded, name) != kNotRecorded.end()) continue;
    if (!setting.texts.empty()) options.set(name, json_of(setting));
  }
  options.set("loss", loss_text(loss));
  options.set("threads", invocation.threads());
  if (sizes.batch > 0) options.set("batch", sizes.batch);
  if (sizes.sequence > 0) options.set("seq", sizes.sequence);
  return options;
}

std::string config_toml(const Json& options) {
  std::string text = "# The options of this run with their resolved values.\n";
  // JSON strings, numbers and arrays of strings are TOML values too.
  for (const JsonMember& option : options.as_object()) {
    text += fmt::format("{} = {}\n", option.key, option.value.dump());
  }
  return text;
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

void write_stages(RunWriter& writer, const Stages& stages) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    write_onnx(stages[i].graph, writer.next_stage_file(stages[i].name),
               {.weights = Weights::kOmit, .tensor = {}});
    writer.add_stage(stage_record(stages[i], i == 0 ? nullptr : &stages[i - 1]));
  }
}

}  // namespace trainscope
