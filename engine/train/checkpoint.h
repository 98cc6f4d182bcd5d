// Checkpoints: durable, verified folders that a run can be continued from, bit for bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/folder.h"
#include "engine/core/json.h"
#include "engine/core/log.h"
#include "engine/core/safetensors.h"

namespace trainscope {

inline constexpr std::int64_t kCheckpointFormat = 1;

// Where training stands. Batch order and dropout are functions of the seed and these numbers, so
// this and the tensors are all the state there is.
struct CheckpointState {
  std::int64_t step = 0;          // steps done
  std::int64_t samples_seen = 0;  // examples read for them
  std::uint64_t seed = 0;
  // What must be the same to continue bit for bit (model hash, micro-batches, schedule, optimizer)
  // and what is good to know (versions): an object, kept as it is.
  Json settings = Json::object();
  // How well the model does here (losses): an object, kept as it is.
  Json metrics = Json::object();
};

// One file of a checkpoint: "model" becomes model.safetensors.
struct CheckpointFile {
  std::string name;
  std::span<const NamedTensor> tensors;
};

// A loaded checkpoint. Tensors stay in the mapped files until they are copied, one at a time.
struct Checkpoint {
  std::filesystem::path folder;
  CheckpointState state;
  std::map<std::string, SafetensorsFile, std::less<>> files;  // by the name given when saving

  // Throws kBadInput when the checkpoint has no file of that name.
  const SafetensorsFile& file(std::string_view name) const;
};

// What a model takes from a checkpoint for one of the names in its file "model": the average of a
// parameter, where the run keeps averages, else the tensor itself.
Tensor trained_tensor(const Checkpoint& checkpoint, const std::string& name);

// "step-00000100".
std::string checkpoint_name(std::int64_t step);

// `root` is the folder of a run's checkpoints. It may be a stranger's: no function here follows a
// link in it.
//
// Writes `root`/step-NNNNNNNN: everything goes to a temporary folder and to the disk, the manifest
// last, then the folder gets its name. When anything fails (kIo), what was there before stays.
// A checkpoint of the same step is replaced. Returns the new folder.
std::filesystem::path save_checkpoint(const Folder& root, const CheckpointState& state,
                                      std::span<const CheckpointFile> files,
                                      const FileCalls& calls = system_calls());

// Removes all but the newest `keep` (at least 1) of the checkpoints up to `newest_step`; call it
// when that one is saved. Later ones, of a run that was set back, are left alone, and so is the one
// that best.json names.
void remove_old_checkpoints(const Folder& root, std::int64_t newest_step, int keep,
                            const FileCalls& calls = system_calls());

// The steps that there are checkpoints of, whole ones or not, the newest first.
std::vector<std::int64_t> find_checkpoints(const Folder& root);

// The checkpoint with the lowest validation loss so far.
struct BestCheckpoint {
  std::int64_t step = 0;
  double loss = 0.0;
};
// Writes best.json; the checkpoint of that step must be saved already.
void note_best_checkpoint(const Folder& root, const BestCheckpoint& best,
                          const FileCalls& calls = system_calls());
// None when none was noted. Throws kBadInput for a file that cannot be understood.
std::optional<BestCheckpoint> find_best_checkpoint(const Folder& root);

// Reads one checkpoint and checks the size and hash of every file, and that it is of the step of
// its name. Throws kBadInput naming file and reason.
Checkpoint load_checkpoint(const Folder& root, std::string_view name);
// The one that a path leads to, over links too: it is the user's word.
Checkpoint load_checkpoint(const std::filesystem::path& folder);

// The newest checkpoint that is complete and undamaged; newer ones that are not get a warning.
// None when there is no checkpoint at all. Throws kBadInput when there are some and none is usable.
std::optional<Checkpoint> load_latest_checkpoint(const Folder& root, Logger& log);

// Hands each of a file's tensors to `write`: the same names, types and shapes as `wanted`. Throws
// kBadInput that lists every difference; nothing is written then.
void restore_tensors(
    const SafetensorsFile& file, std::span<const NamedTensor> wanted,
    const std::function<void(std::string_view name, const Tensor& elements)>& write);

}  // namespace trainscope
