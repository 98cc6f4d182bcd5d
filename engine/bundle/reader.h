// Reads a run's folder, also while it is being written and after a crash.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "engine/bundle/format.h"

namespace trainscope {

class RunReader {
 public:
  // Reads the manifest. Throws kIo when there is no such folder, kBadInput when it is not a run or
  // of a format that this program cannot read.
  static RunReader open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const RunManifest& manifest() const { return manifest_; }

  // The rows so far, in the order of steps. A last line without its line end is being written, or
  // was when the power went: it is left out. Rows that a resumed session did again count once.
  Metrics metrics() const;
  // Empty while there are none.
  std::vector<StageRecord> stages() const;
  std::optional<Json> plan() const;
  std::filesystem::path stage_file(const StageRecord& stage) const {
    return folder_ / kRunStagesFolder / stage.file;
  }
  std::filesystem::path checkpoints_folder() const { return folder_ / kRunCheckpointsFolder; }

 private:
  RunReader(std::filesystem::path folder, RunManifest manifest)
      : folder_(std::move(folder)), manifest_(std::move(manifest)) {}

  std::filesystem::path folder_;
  RunManifest manifest_;
};

}  // namespace trainscope
