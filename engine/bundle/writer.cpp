// Writing of a run's folder: whole files are replaced in one step, lines are appended in one write.
#include "engine/bundle/writer.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "engine/bundle/metrics_csv.h"
#include "engine/bundle/plan_file.h"
#include "engine/bundle/plan_json.h"
#include "engine/bundle/reader.h"
#include "engine/bundle/session_folders.h"
#include "engine/core/error.h"
#include "engine/core/system/system_error.h"
#include "engine/core/text.h"
#include "engine/core/timestamp.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr int kIndent = 2;

// Files that are replaced, and those that lines are added to as they are.
constexpr std::array kReplacedFiles = {
    kRunManifestFile,     kRunConfigFile,    kRunPlanFile,         kRunReadablePlanFile,
    kRunMetricsTableFile, kTrainedModelFile, kTrainedModelDataFile};
constexpr std::array kGrowingFiles = {kRunMetricsFile, kRunLogFile, kRunEventsFile};

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

// Whether the folder may become a run: nothing is in it but what a process leaves that is killed
// before it has written the manifest.
bool is_unused(const Folder& folder) {
  return std::ranges::all_of(folder.list(), [&folder](const std::string& name) {
    if (is_temporary_name(name)) return true;
    const bool own = name == kRunStagesFolder || name == kRunCheckpointsFolder;
    return own && folder.has_folder(name) &&
           std::ranges::all_of(folder.enter(name).list(), is_temporary_name);
  });
}

// Refuses what would be refused later, when parts of a session are written already.
void check_entries(const Folder& folder) {
  for (std::string_view name : kReplacedFiles) folder.has_file(name);
  for (std::string_view name : kGrowingFiles) folder.has_file(name, HardLinks::kRefused);
  folder.has_folder(kRunCheckpointsFolder);
  if (!folder.has_folder(kRunStagesFolder)) return;
  const Folder stages = folder.enter(kRunStagesFolder);
  for (const std::string& name : stages.list()) stages.has_file(name);
}

}  // namespace

fs::path create_numbered_run_folder(const fs::path& runs, std::string_view name) {
  make_directories(runs);
  const std::string stem(name.empty() ? "run" : name);
  for (std::int64_t number = 1;; ++number) {
    fs::path folder = runs / fmt::format("{}-{}", stem, number);
    // A link that leads nowhere is taken too.
    std::error_code error;
    if (fs::exists(fs::symlink_status(folder, error))) continue;
    // False when another process was faster: then the next number.
    if (fs::create_directory(folder, error)) return folder;
    if (error) fail_system(error.value(), "create the folder", folder);
  }
}

RunWriter::RunWriter(RunLock lock)
    : lock_(std::move(lock)),
      stages_folder_(lock_.folder().make(kRunStagesFolder)),
      checkpoints_folder_(lock_.folder().make(kRunCheckpointsFolder)) {
  for (const Folder& folder : {lock_.folder(), stages_folder_, checkpoints_folder_}) {
    remove_temporary_files(folder);
  }
}

RunWriter RunWriter::create(RunLock lock, RunManifest manifest) {
  CHECK_INVARIANT(manifest.sessions.size() == 1);
  if (!is_unused(lock.folder())) {
    throw Error(ErrorCode::kUsage, fmt::format("the run folder '{}' is not empty",
                                               printable(lock.folder().path().string())))
        .hint("continue that run with --resume auto, or choose another --run-dir");
  }
  RunWriter writer(std::move(lock));
  writer.manifest_ = std::move(manifest);
  RunSession session = std::move(writer.manifest_.sessions.back());
  writer.manifest_.sessions.clear();
  writer.begin_session(std::move(session));
  return writer;
}

RunWriter RunWriter::resume(RunLock lock, RunSession session) {
  const RunReader reader = RunReader::open(lock.folder());
  check_entries(lock.folder());
  move_to_session(lock.folder(), static_cast<std::int64_t>(reader.manifest().sessions.size()));
  RunWriter writer(std::move(lock));
  writer.manifest_ = reader.manifest();
  writer.manifest_.format = kRunFormat;
  writer.begin_session(std::move(session));
  return writer;
}

void RunWriter::begin_session(RunSession session) {
  const bool first = manifest_.sessions.empty();
  const std::int64_t from_step = session.from_step;
  session.start_time = utc_timestamp();
  session.end_time.clear();
  session.status = RunStatus::kRunning;
  session.last_step = session.from_step;
  manifest_.options = session.options;
  manifest_.machine = session.machine;
  manifest_.sessions.push_back(std::move(session));
  try {
    write_manifest();
    metrics_.emplace(lock_.folder() / kRunMetricsFile);
    // What the earlier session wrote beyond this step is done again.
    if (!first) {
      metrics_->write_line(Json::object({{"kind", "resume"}, {"step", from_step}}).dump());
    }
  } catch (const Error& error) {
    note_failure(static_cast<int>(error.code()), error.message());
    throw;
  } catch (const std::exception& error) {
    note_failure(static_cast<int>(ErrorCode::kRunFailed), error.what());
    throw;
  }
}

// A session that broke as it began, where the manifest has it already. The failure that is under
// way is the one to report.
void RunWriter::note_failure(std::int64_t exit_code, const std::string& message) {
  try {
    if (RunReader::open(lock_.folder()).manifest().sessions.size() < manifest_.sessions.size())
      return;
    finish(RunStatus::kFailed, exit_code, message);
  } catch (const std::exception&) {
  }
}

void RunWriter::write_manifest() const {
  write_file_atomic(lock_.folder() / kRunManifestFile, to_json(manifest_).dump(kIndent) + "\n");
}

void RunWriter::also_write(const MetricsForms& forms) {
  const Folder& folder = lock_.folder();
  // A table that an earlier session began would show steps that are done again.
  if (forms.csv || folder.has_file(kRunMetricsTableFile)) {
    const FolderEntry file = folder / kRunMetricsTableFile;
    write_file_atomic(file, metrics_csv(RunReader::open(folder).metrics()));
    table_.emplace(file);
  }
  if (forms.tensorboard) events_.emplace(folder, session().from_step);
}

void RunWriter::write_config(std::string_view toml) {
  write_file_atomic(lock_.folder() / kRunConfigFile, toml);
}

void RunWriter::write_plan(const PlanRecord& plan) {
  write_plan_file(plan, lock_.folder() / kRunPlanFile);
  if (plan.calls.size() > kMostReadableCalls) return;
  write_file_atomic(lock_.folder() / kRunReadablePlanFile, plan_json(view_of(plan)));
}

FolderEntry RunWriter::next_stage_file(std::string_view name) const {
  CHECK_INVARIANT(is_plain_name(name));
  return stages_folder_ / fmt::format("{:02}-{}.onnx", stages_.size(), name);
}

bool RunWriter::repeats_last_stage(const StageRecord& stage) const {
  return !stages_.empty() && !stage.changed && !stage.hash.empty() &&
         stage.hash == stages_.back().hash;
}

void RunWriter::add_stage(StageRecord stage, std::string_view rewrites) {
  const bool repeats = repeats_last_stage(stage);
  stage.file = repeats ? stages_.back().file : next_stage_file(stage.name).name;
  // The log beside a file that is repeated is that of the stage that made the file.
  if (!repeats && !rewrites.empty()) {
    write_file_atomic(stages_folder_ / rewrites_file(stage.file), rewrites);
  }
  stages_.push_back(std::move(stage));
  Json list = Json::array();
  for (const StageRecord& record : stages_) list.push_back(to_json(record));
  write_file_atomic(stages_folder_ / kRunStagesFile,
                    Json::object({{"stages", std::move(list)}}).dump(kIndent) + "\n");
}

void RunWriter::add_step(const StepRecord& step) {
  metrics_->write_line(to_json(step).dump());
  if (table_) table_->write_line(metrics_csv_row(step));
  if (events_) events_->add(step);
  session().last_step = step.step;
}

void RunWriter::add_evaluation(const EvaluationRecord& evaluation) {
  metrics_->write_line(to_json(evaluation).dump());
  if (table_) table_->write_line(metrics_csv_row(evaluation));
  if (events_) events_->add(evaluation);
}

void RunWriter::finish(RunStatus status, std::int64_t exit_code, std::string message) {
  CHECK_INVARIANT(status != RunStatus::kRunning);
  try {
    if (metrics_) metrics_->sync();
    if (table_) table_->sync();
    if (events_) events_->sync();
  } catch (const Error&) {
    // What has failed already is noted all the same.
    if (status != RunStatus::kFailed) throw;
  }
  session().status = status;
  session().exit_code = exit_code;
  session().message = std::move(message);
  session().end_time = utc_timestamp();
  write_manifest();
}

}  // namespace trainscope
