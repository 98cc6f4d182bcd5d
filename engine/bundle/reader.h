// Reads a run's folder, also while it is being written and after a crash. The folder may be a
// stranger's: what is no regular file in it is refused (kBadInput), links are not followed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "engine/bundle/format.h"
#include "engine/bundle/plan_file.h"
#include "engine/core/file.h"

namespace trainscope {

inline constexpr std::int64_t kNewestSession = 0;

class RunReader {
 public:
  // Reads the manifest. Throws kIo when there is no such folder, kBadInput when it is not a run or
  // of a format that this program cannot read.
  static RunReader open(const std::filesystem::path& folder);
  static RunReader open(const Folder& folder);

  const Folder& folder() const { return folder_; }
  const RunManifest& manifest() const { return manifest_; }

  // The rows so far, in the order of steps. A last line without its line end is being written, or
  // was when the power went: it is left out. Rows that a resumed session did again count once.
  Metrics metrics() const;
  // Of a session, from 1; each wrote its own. Throws kUsage for one that there was not.
  // Empty while there are none.
  std::vector<StageRecord> stages(std::int64_t session = kNewestSession) const;
  std::optional<StoredPlan> plan(std::int64_t session = kNewestSession) const;
  // What a profile of it has written so far; none where there is none.
  std::optional<MappedFile> events(std::int64_t session = kNewestSession) const;
  // The trace of its numbers; none where none was recorded.
  std::optional<Folder> numerics(std::int64_t session = kNewestSession) const;
  MappedFile open_stage(const StageRecord& stage, std::int64_t session = kNewestSession) const;
  // The text of its rewrite log; empty where there is none.
  std::string stage_rewrites(const StageRecord& stage, std::int64_t session = kNewestSession) const;
  std::optional<Folder> checkpoints_folder() const;  // none while there is none

 private:
  RunReader(Folder folder, RunManifest manifest)
      : folder_(std::move(folder)), manifest_(std::move(manifest)) {}
  // Where a session's plan or stages are: the run's folder, or sessions/K.
  std::optional<Folder> folder_with(bool (*has)(const Folder&), std::int64_t session) const;

  Folder folder_;
  RunManifest manifest_;
};

}  // namespace trainscope
