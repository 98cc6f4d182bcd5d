// Writing of checkpoints so that a crash at any moment leaves a whole one, and choosing which stay.
#include "engine/train/checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/system_error.h"
#include "engine/core/text.h"
#include "engine/train/checkpoint_manifest.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// Folders whose names begin with a dot are no checkpoints: work in progress, or what a crash left.
constexpr std::string_view kSavingPrefix = ".saving-";
constexpr std::string_view kReplacedPrefix = ".replaced-";
constexpr std::string_view kTemporaryPrefix = ".trainscope-";  // of AtomicFile
constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kBestFile = "best.json";
constexpr std::uint64_t kMaxBestBytes = 1 << 16;

// Removes a folder unless it was kept: a failed save leaves nothing behind.
class TemporaryFolder {
 public:
  TemporaryFolder(fs::path path, const FileCalls& calls) : path_(std::move(path)) {
    make_directories(path_, calls);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    if (kept_) return;
    std::error_code ignored;  // the failure that brought us here is the one to report
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  fs::path path_;
  bool kept_ = false;
};

bool is_leftover(std::string_view name) {
  return name.starts_with(kSavingPrefix) || name.starts_with(kReplacedPrefix) ||
         (name.starts_with(kTemporaryPrefix) && name.ends_with(".tmp"));
}

// What an earlier process left when it was killed. Only one process writes a run.
void remove_leftovers(const fs::path& root) {
  for (const std::string& name : list_directory(root)) {
    if (is_leftover(name)) remove_tree(root, root / name);
  }
}

// Exchanges two folders in one step. False where the file system cannot do that.
bool exchange_folders(const fs::path& a, const fs::path& b, const FileCalls& calls) {
  if (calls.exchange(a.c_str(), b.c_str()) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS) return false;
  fail_system(errno, "replace", b);
}

// Puts `from` in the place of `to`, which may be there already.
void replace_folder(const fs::path& from, const fs::path& to, const FileCalls& calls) {
  const fs::path root = to.parent_path();
  if (!path_exists(to)) {
    rename_directory(from, to, calls);
    return;
  }
  if (exchange_folders(from, to, calls)) {
    fsync_directory(root, calls);
    remove_tree(root, from);
    return;
  }
  const fs::path old = root / (std::string(kReplacedPrefix) + to.filename().string());
  rename_directory(to, old, calls);
  try {
    rename_directory(from, to, calls);
  } catch (const Error&) {
    std::error_code ignored;  // the first failure is the one to report
    fs::rename(old, to, ignored);
    throw;
  }
  remove_tree(root, old);
}

std::vector<FileRecord> write_files(const fs::path& folder, std::span<const CheckpointFile> files,
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

struct FoundCheckpoint {
  std::int64_t step = 0;
  fs::path folder;
};

// By step, the newest first.
std::vector<FoundCheckpoint> find_checkpoints(const fs::path& root) {
  std::vector<FoundCheckpoint> found;
  if (!folder_exists(root)) return found;
  for (const std::string& name : list_directory(root)) {
    if (!name.starts_with(kStepPrefix)) continue;
    const auto step = parse_int(std::string_view(name).substr(kStepPrefix.size()));
    // Only names of ours: "step-7" or "step-00000007.bak" is somebody else's.
    if (step && *step >= 0 && name == checkpoint_name(*step)) {
      found.push_back({.step = *step, .folder = root / name});
    }
  }
  std::ranges::sort(found, std::ranges::greater(), &FoundCheckpoint::step);
  return found;
}

std::string difference(const SafetensorsFile& file, const NamedTensor& wanted) {
  if (!file.contains(wanted.name)) return fmt::format("'{}' is missing", printable(wanted.name));
  const TensorType stored = file.type(wanted.name);
  if (stored == wanted.tensor.type) return {};
  return fmt::format("'{}' is {}, the model has {}", printable(wanted.name), type_text(stored),
                     type_text(wanted.tensor.type));
}

}  // namespace

const SafetensorsFile& Checkpoint::file(std::string_view name) const {
  const auto found = files.find(name);
  require(found != files.end(), ErrorCode::kBadInput, "the checkpoint '{}' has no file {}{}",
          printable(folder.string()), name, kTensorFileEnding);
  return found->second;
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

fs::path save_checkpoint(const fs::path& root, const CheckpointState& state,
                         std::span<const CheckpointFile> files, const FileCalls& calls) {
  CHECK_INVARIANT(state.step >= 0 && state.samples_seen >= 0);
  make_directories(root, calls);
  remove_leftovers(root);
  const std::string name = checkpoint_name(state.step);
  TemporaryFolder temporary(root / (std::string(kSavingPrefix) + name), calls);
  const std::vector<FileRecord> records = write_files(temporary.path(), files, calls);
  write_file_atomic(temporary.path() / kManifestFile, manifest_text(state, records), calls);
  fsync_directory(temporary.path(), calls);
  replace_folder(temporary.path(), root / name, calls);
  temporary.keep();
  return root / name;
}

void remove_old_checkpoints(const fs::path& root, std::int64_t newest_step, int keep,
                            const FileCalls& calls) {
  CHECK_INVARIANT(keep >= 1);
  const std::optional<BestCheckpoint> best = find_best_checkpoint(root);
  int kept = 0;
  for (const FoundCheckpoint& found : find_checkpoints(root)) {
    if (found.step > newest_step || ++kept <= keep) continue;
    if (best && best->step == found.step) continue;
    // Out of the way in one step, so that a crash leaves no half-removed checkpoint.
    const fs::path old = root / (std::string(kReplacedPrefix) + found.folder.filename().string());
    rename_directory(found.folder, old, calls);
    remove_tree(root, old);
  }
}

void note_best_checkpoint(const fs::path& root, const BestCheckpoint& best,
                          const FileCalls& calls) {
  const Json json = Json::object({{"step", best.step}, {"loss", best.loss}});
  write_file_atomic(root / kBestFile, json.dump() + "\n", calls);
}

std::optional<BestCheckpoint> find_best_checkpoint(const fs::path& root) {
  const fs::path file = root / kBestFile;
  if (!path_exists(file)) return std::nullopt;
  try {
    const Json json = Json::parse(read_file(file, kMaxBestBytes));
    return BestCheckpoint{.step = json.get<std::int64_t>("step"), .loss = json.get<double>("loss")};
  } catch (Error& error) {
    error.at(printable(file.string()))
        .hint("remove the file: the next better validation writes it");
    throw;
  }
}

std::optional<Checkpoint> load_latest_checkpoint(const fs::path& root, Logger& log) {
  const std::vector<FoundCheckpoint> found = find_checkpoints(root);
  for (const FoundCheckpoint& candidate : found) {
    try {
      return load_checkpoint(candidate.folder);
    } catch (const Error& error) {
      // Damage is what older checkpoints are for; a disk that cannot be read is not.
      if (error.code() != ErrorCode::kBadInput) throw;
      log.warning("checkpoint {} is not usable: {}", candidate.folder.filename().string(),
                  error.message());
    }
  }
  if (found.empty()) return std::nullopt;
  throw Error(ErrorCode::kBadInput, fmt::format("none of the {} checkpoints in '{}' is usable",
                                                found.size(), printable(root.string())))
      .hint("start a new run in another folder, or restore a checkpoint from a copy");
}

void restore_tensors(const SafetensorsFile& file, std::span<const NamedTensor> into) {
  std::vector<std::string> problems;
  std::vector<std::string_view> wanted_names;
  for (const NamedTensor& wanted : into) {
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
  for (const NamedTensor& wanted : into) {
    const Tensor stored = file.tensor(wanted.name);
    std::copy_n(stored.data(), stored.bytes(), static_cast<std::byte*>(wanted.tensor.data));
  }
}

}  // namespace trainscope
