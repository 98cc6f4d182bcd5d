// Models and runs as arguments.
#include "cli/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "cli/flags/model_name.h"
#include "cli/flags/training_flags.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/plugin/plugin.h"
#include "engine/run/planned_step.h"
#include "engine/run/run_settings.h"
#include "engine/stage_history.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

fs::path model_path(const RunReader& run) {
  const Json& model = run.manifest().model;
  const fs::path absolute = model.get_or<std::string>("path", "");
  return path_exists(absolute) ? absolute : fs::path(model.get_or<std::string>("file", ""));
}

// By name; none where this is no folder.
std::vector<fs::path> runs_directly_in(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (path_exists(entry->path() / kRunManifestFile)) runs.push_back(entry->path());
  }
  std::ranges::sort(runs);
  return runs;
}

// The gradients that the run's user gave are to be those of then.
void check_gradients(const RunReader& run, const fs::path& path) {
  const std::string then = run.manifest().model.get_or<std::string>(kGradientsHash, "");
  if (then.empty()) return;
  const std::string file = run.manifest().options.get_or<std::string>("gradients", "");
  const std::uint64_t now = hash_text(read_file(file, kMaxGradientsBytes));
  require(hash_hex(now) == then, ErrorCode::kBadInput,
          "the gradients '{}' have changed since the run '{}'", printable(file),
          printable(path.string()));
}

}  // namespace

Source Source::open(const std::string& path) {
  Source source;
  source.path_ = path;
  require(path_exists(path), ErrorCode::kIo, "there is no model or run '{}'", printable(path));
  if (!folder_exists(path)) return source;
  source.run_ = RunReader::open(path);
  if (const Json* plugins = source.run_->manifest().model.find("plugins")) {
    load_recorded_plugins(*plugins, path);
  }
  return source;
}

Source Source::open_or_build(const std::string& word) {
  if (path_exists(word) || !is_model_name(word)) return open(word);
  Source source;
  source.path_ = word;
  source.built_ = true;
  return source;
}

fs::path Source::model_file() const {
  CHECK_INVARIANT(run_.has_value());
  return model_path(*run_);
}

void load_plugins_of(const std::string& path) {
  if (path_exists(fs::path(path) / kRunManifestFile)) {
    Source::open(path);
    return;
  }
  for (const fs::path& run : runs_directly_in(path)) {
    try {
      Source::open(run.string());
    } catch (const Error&) {
      // One run is no reason to show none: the window says what each lacks.
    }
  }
}

fs::path run_of(const fs::path& path) {
  const fs::path folder = fs::absolute(path).lexically_normal();
  const fs::path own = folder.filename().empty() ? folder.parent_path() : folder;
  const bool inside = own.parent_path().filename() == kRunCheckpointsFolder;
  return inside ? own.parent_path().parent_path() : path;
}

Invocation Source::settle(const Invocation& invocation) const {
  Json options = run_ ? run_->manifest().options : Json::object();
  const auto threads = run_ ? planned_threads(run_->manifest()) : std::nullopt;
  if (threads) options.set("threads", *threads);
  return invocation.with_run(without_replaced_plan(options, invocation.settings()));
}

OnnxModel Source::original_model() const {
  if (built_) return shapes_of(named_model(path_.string()));
  if (!run_) return OnnxModel::read(path_);
  const fs::path file = model_path(*run_);
  OnnxModel model = OnnxModel::read(file);
  const auto then = run_->manifest().model.get<std::string>("xxh3");
  require(hash_hex(model.hash()) == then, ErrorCode::kBadInput,
          "the model '{}' has changed since the run '{}'", printable(file.string()),
          printable(path_.string()));
  check_gradients(*run_, path_);
  return model;
}

Source::Trained Source::trained_model(Logger& log) const {
  if (!run_) return {.model = OnnxModel::read(path_), .checkpoint = nullptr};
  const bool ended = run_->manifest().sessions.back().status == RunStatus::kFinished ||
                     run_->manifest().sessions.back().status == RunStatus::kInterrupted;
  if (ended && run_->folder().has_file(kTrainedModelFile)) {
    const MappedFile file = MappedFile::open(run_->folder() / kTrainedModelFile);
    return {.model = OnnxModel::read(file), .checkpoint = nullptr};
  }
  std::shared_ptr<const Checkpoint> checkpoint = newest_checkpoint(log);
  require(checkpoint != nullptr, ErrorCode::kBadInput,
          "the run '{}' holds no trained parameters: it ended before its first checkpoint",
          printable(path_.string()));
  return {.model = original_model(), .checkpoint = std::move(checkpoint)};
}

std::shared_ptr<const Checkpoint> Source::newest_checkpoint(Logger& log) const {
  const std::optional<Folder> root = run_->checkpoints_folder();
  std::optional<Checkpoint> newest = root ? load_latest_checkpoint(*root, log) : std::nullopt;
  return newest ? std::make_shared<const Checkpoint>(std::move(*newest)) : nullptr;
}

Source::Trained Source::best_model() const {
  require(run_.has_value(), ErrorCode::kUsage, "--best needs the folder of a run");
  const std::optional<Folder> root = run_->checkpoints_folder();
  const std::optional<BestCheckpoint> best = root ? find_best_checkpoint(*root) : std::nullopt;
  if (!best) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the run '{}' has noted no best checkpoint", printable(path_.string())))
        .hint("train with --eval-every N");
  }
  return {.model = original_model(),
          .checkpoint = std::make_shared<const Checkpoint>(
              load_checkpoint(*root, checkpoint_name(best->step)))};
}

Source::Trained Source::trained_model(const Invocation& invocation) const {
  return invocation.settings().on("best") ? best_model() : trained_model(invocation.log());
}

std::span<const Flag> source_flags() {
  static constexpr Flag kSourceFlags[] = {
      {.name = "best",
       .type = FlagType::kSwitch,
       .help = "Of a run: the checkpoint with the lowest validation loss, not the newest"}};
  return kSourceFlags;
}

TensorByName tensors_of(std::shared_ptr<const Checkpoint> checkpoint) {
  return [checkpoint = std::move(checkpoint)](std::string_view name) -> SharedTensor {
    const SafetensorsFile& file = checkpoint->file("model");
    if (!file.contains(name)) return nullptr;
    return std::make_shared<const Tensor>(trained_tensor(*checkpoint, std::string(name)));
  };
}

Graph import_graph(const OnnxModel& model, const CompileOptions& options) {
  CompileOptions no_passes = options;
  no_passes.passes.stop_after.clear();
  for (const Pass& pass : default_passes()) no_passes.passes.disabled.emplace_back(pass.name);
  return build_stages(model, no_passes).front().graph;
}

StageRecord find_stage(const std::vector<StageRecord>& stages, const std::string& name) {
  if (stages.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the run has no stages: {}/{} is missing or lists none",
                            kRunStagesFolder, kRunStagesFile))
        .hint("stages are written when training starts");
  }
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    labels.push_back(fmt::format("{:02}-{}", i, stages[i].name));
  }
  return stages[find_label(labels, name)];
}

}  // namespace trainscope
