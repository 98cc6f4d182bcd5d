// Writing of checkpoints so that a crash at any moment leaves a whole one, and choosing which stay.
#include "engine/train/checkpoint.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"
#include "engine/train/checkpoint_manifest.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// Folders whose names begin with a dot are no checkpoints: work in progress, or what a crash left.
constexpr std::string_view kSavingPrefix = ".saving-";
constexpr std::string_view kReplacedPrefix = ".replaced-";
constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kBestFile = "best.json";
constexpr std::uint64_t kMaxBestBytes = 1 << 16;

// Removes a folder unless it was kept: a failed save leaves nothing behind.
class TemporaryFolder {
 public:
  TemporaryFolder(const Folder& root, std::string name, const FileCalls& calls)
      : root_(root), name_(std::move(name)), folder_(root.make(name_, calls)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    if (kept_) return;
    try {
      root_.remove(name_);
    } catch (const Error&) {
      // The failure that brought us here is the one to report.
    }
  }
  const Folder& folder() const { return folder_; }
  const std::string& name() const { return name_; }
  void keep() { kept_ = true; }

 private:
  const Folder& root_;
  std::string name_;
  Folder folder_;
  bool kept_ = false;
};

bool is_leftover(std::string_view name) {
  return name.starts_with(kSavingPrefix) || name.starts_with(kReplacedPrefix) ||
         is_temporary_name(name);
}

// What an earlier process left when it was killed. Only one process writes a run.
void remove_leftovers(const Folder& root) {
  for (const std::string& name : root.list()) {
    if (is_leftover(name)) root.remove(name);
  }
}

// Undoes a renaming where the next one failed, whose error is the one to report.
void put_back(const Folder& root, const std::string& from, const std::string& to) {
  try {
    root.rename(from, to);
  } catch (const Error&) {
    // It stays under the other name then.
  }
}

// Puts the folder `from` in the place of `to`, which may be there already.
void replace_folder(const Folder& root, const std::string& from, const std::string& to,
                    const FileCalls& calls) {
  if (!root.has(to)) {
    root.rename(from, to, calls);
    return;
  }
  if (root.exchange(from, to, calls)) {
    root.sync(calls);
    root.remove(from);
    return;
  }
  const std::string old = std::string(kReplacedPrefix) + to;
  root.rename(to, old, calls);
  try {
    root.rename(from, to, calls);
  } catch (const Error&) {
    put_back(root, old, to);
    throw;
  }
  root.remove(old);
}

std::vector<FileRecord> write_files(const Folder& folder, std::span<const CheckpointFile> files,
                                    const FileCalls& calls) {
  std::vector<FileRecord> records;
  for (const CheckpointFile& file : files) {
    CHECK_INVARIANT(is_checkpoint_file_name(file.name));
    const WrittenSafetensors written = write_safetensors(
        folder / (file.name + std::string(kTensorFileEnding)), file.tensors, {}, calls);
    records.push_back({.name = file.name,
                       .size_bytes = written.size_bytes,
                       .content_hash = written.content_hash});
  }
  return records;
}

std::string difference(const SafetensorsFile& file, const NamedTensor& wanted) {
  if (!file.contains(wanted.name)) return fmt::format("'{}' is missing", printable(wanted.name));
  const TensorType stored = file.type(wanted.name);
  if (stored == wanted.tensor.type) return {};
  return fmt::format("'{}' is {}, the model has {}", printable(wanted.name), type_text(stored),
                     type_text(wanted.tensor.type));
}

}  // namespace

std::vector<std::int64_t> find_checkpoints(const Folder& root) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : root.list()) {
    if (!name.starts_with(kStepPrefix)) continue;
    const auto step = parse_int(std::string_view(name).substr(kStepPrefix.size()));
    // Only names of ours: "step-7" or "step-00000007.bak" is somebody else's.
    if (step && *step >= 0 && name == checkpoint_name(*step)) steps.push_back(*step);
  }
  std::ranges::sort(steps, std::ranges::greater());
  return steps;
}

const SafetensorsFile& Checkpoint::file(std::string_view name) const {
  const auto found = files.find(name);
  require(found != files.end(), ErrorCode::kBadInput, "the checkpoint '{}' has no file {}{}",
          printable(folder.string()), name, kTensorFileEnding);
  return found->second;
}

Tensor trained_tensor(const Checkpoint& checkpoint, const std::string& name) {
  const std::string average = kAveragePrefix + name;
  const auto optimizer = checkpoint.files.find("optimizer");
  const bool averaged = optimizer != checkpoint.files.end() && optimizer->second.contains(average);
  return averaged ? optimizer->second.tensor(average) : checkpoint.file("model").tensor(name);
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

fs::path save_checkpoint(const Folder& root, const CheckpointState& state,
                         std::span<const CheckpointFile> files, const FileCalls& calls) {
  CHECK_INVARIANT(state.step >= 0 && state.samples_seen >= 0);
  remove_leftovers(root);
  const std::string name = checkpoint_name(state.step);
  TemporaryFolder temporary(root, std::string(kSavingPrefix) + name, calls);
  const Folder& folder = temporary.folder();
  const std::vector<FileRecord> records = write_files(folder, files, calls);
  write_file_atomic(folder / kManifestFile, manifest_text(state, records), calls);
  folder.sync(calls);
  replace_folder(root, temporary.name(), name, calls);
  temporary.keep();
  return root.path() / name;
}

void remove_old_checkpoints(const Folder& root, std::int64_t newest_step, int keep,
                            const FileCalls& calls) {
  CHECK_INVARIANT(keep >= 1);
  const std::optional<BestCheckpoint> best = find_best_checkpoint(root);
  int kept = 0;
  for (const std::int64_t step : find_checkpoints(root)) {
    if (step > newest_step || ++kept <= keep) continue;
    if (best && best->step == step) continue;
    // Out of the way in one step, so that a crash leaves no half-removed checkpoint.
    const std::string name = checkpoint_name(step);
    const std::string old = std::string(kReplacedPrefix) + name;
    root.rename(name, old, calls);
    root.remove(old);
  }
}

void note_best_checkpoint(const Folder& root, const BestCheckpoint& best, const FileCalls& calls) {
  const Json json = Json::object({{"step", best.step}, {"loss", best.loss}});
  write_file_atomic(root / kBestFile, json.dump() + "\n", calls);
}

std::optional<BestCheckpoint> find_best_checkpoint(const Folder& root) {
  if (!root.has_file(kBestFile)) return std::nullopt;
  const FolderEntry file = root / kBestFile;
  try {
    const Json json = Json::parse(read_file(file, kMaxBestBytes));
    return BestCheckpoint{.step = json.get<std::int64_t>("step"), .loss = json.get<double>("loss")};
  } catch (Error& error) {
    error.at(printable(file.path().string()))
        .hint("remove the file: the next better validation writes it");
    throw;
  }
}

std::optional<Checkpoint> load_latest_checkpoint(const Folder& root, Logger& log) {
  const std::vector<std::int64_t> found = find_checkpoints(root);
  for (const std::int64_t step : found) {
    const std::string name = checkpoint_name(step);
    try {
      return load_checkpoint(root, name);
    } catch (const Error& error) {
      // Damage is what older checkpoints are for; a disk that cannot be read is not.
      if (error.code() != ErrorCode::kBadInput) throw;
      log.warning("checkpoint {} is not usable: {}", name, error.message());
    }
  }
  if (found.empty()) return std::nullopt;
  throw Error(ErrorCode::kBadInput, fmt::format("none of the {} checkpoints in '{}' is usable",
                                                found.size(), printable(root.path().string())))
      .hint("start a new run in another folder, or restore a checkpoint from a copy");
}

void restore_tensors(
    const SafetensorsFile& file, std::span<const NamedTensor> wanted_tensors,
    const std::function<void(std::string_view name, const Tensor& elements)>& write) {
  std::vector<std::string> problems;
  std::vector<std::string_view> wanted_names;
  for (const NamedTensor& wanted : wanted_tensors) {
    wanted_names.push_back(wanted.name);
    std::string problem = difference(file, wanted);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  std::ranges::sort(wanted_names);
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!std::ranges::binary_search(wanted_names, std::string_view(entry.name))) {
      problems.push_back(fmt::format("'{}' is not in the model", printable(entry.name)));
    }
  }
  if (!problems.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("checkpoint file '{}' does not fit the model: {}",
                            printable(file.path().string()), join(problems, "; ")))
        .hint("resume with the model and optimizer that the run was started with");
  }
  for (const NamedTensor& wanted : wanted_tensors) write(wanted.name, file.tensor(wanted.name));
}

}  // namespace trainscope
