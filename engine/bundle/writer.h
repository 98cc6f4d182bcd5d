// Writes a run's folder. A reader, also on another machine, sees whole records at any moment.
// Everything is relative to the locked folder, and nothing is written through a link: the folder
// may be a stranger's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/bundle/format.h"
#include "engine/bundle/lock.h"
#include "engine/bundle/plan_record.h"
#include "engine/bundle/tensorboard.h"
#include "engine/core/file.h"

namespace trainscope {

// Creates and returns `runs`/NAME-N with the first N from 1 that is free, also when other processes
// do the same.
std::filesystem::path create_numbered_run_folder(const std::filesystem::path& runs,
                                                 std::string_view name);

// Forms of the metrics besides metrics.jsonl, which is always there.
struct MetricsForms {
  bool csv = false;          // metrics.csv
  bool tensorboard = false;  // events.out.tfevents.*, one for each session
};

// Larger plans are readable on demand: `export --format plan-json`.
inline constexpr std::size_t kMostReadableCalls = 20'000;

class RunWriter {
 public:
  // Begins a run. The folder must be empty (kUsage otherwise). The manifest brings one session; its
  // start time and status are filled in.
  static RunWriter create(RunLock lock, RunManifest manifest);
  // The same in a folder that is made where there is none.
  static RunWriter create(const std::filesystem::path& folder, RunManifest manifest) {
    return create(RunLock::make(folder), std::move(manifest));
  }
  // Continues a run after session.from_step; the plan and stages of the session before go to
  // sessions/K. Throws kBadInput when the folder holds no run, or when one of a run's files is no
  // regular file there; nothing is written then.
  static RunWriter resume(RunLock lock, RunSession session);

  const std::filesystem::path& folder() const { return lock_.folder().path(); }
  const RunManifest& manifest() const { return manifest_; }
  const Folder& checkpoints_folder() const { return checkpoints_folder_; }
  FolderEntry log_file() const { return lock_.folder() / kRunLogFile; }
  // Of this session: not there yet.
  FolderEntry events_file() const { return lock_.folder() / kRunEventsFile; }
  // ... and without a trace; made where there is none.
  Folder numerics_folder() const { return lock_.folder().make(kRunNumericsFolder); }
  // For the batch of a step that failed; made where there is none.
  Folder failure_folder() const { return lock_.folder().make(kRunFailureFolder); }
  FolderEntry model_file() const { return lock_.folder() / kTrainedModelFile; }

  // Before the first step of the session. The table of a resumed run begins with the steps that
  // are kept.
  void also_write(const MetricsForms& forms);

  void write_config(std::string_view toml);
  // plan.bin, and up to kMostReadableCalls calls plan.json too.
  void write_plan(const PlanRecord& plan);
  // Where the next stage's model belongs: stages/NN-NAME.onnx, NN counting from 00. Write it, then
  // call add_stage with a record of that file, and with its rewrite log as text, which goes to
  // NN-NAME.rewrites.jsonl (empty: there is none). A stage that repeats the last one needs no file
  // and has no log.
  FolderEntry next_stage_file(std::string_view name) const;
  bool repeats_last_stage(const StageRecord& stage) const;
  void add_stage(StageRecord stage, std::string_view rewrites = {});

  void add_step(const StepRecord& step);
  void add_evaluation(const EvaluationRecord& evaluation);

  // Makes the metrics durable and notes how the session ended. A writer that is destroyed without
  // it leaves the status "running", as a crash does.
  void finish(RunStatus status, std::int64_t exit_code, std::string message = {});

 private:
  explicit RunWriter(RunLock lock);
  void begin_session(RunSession session);
  void note_failure(std::int64_t exit_code, const std::string& message);
  void write_manifest() const;
  RunSession& session() { return manifest_.sessions.back(); }

  RunLock lock_;
  Folder stages_folder_;
  Folder checkpoints_folder_;
  RunManifest manifest_;
  std::vector<StageRecord> stages_;
  std::optional<AppendFile> metrics_;
  std::optional<AppendFile> table_;
  std::optional<EventWriter> events_;
};

}  // namespace trainscope
