// Writing of a run's folder: whole files are replaced in one step, lines are appended in one write.
#include "engine/bundle/writer.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/bundle/metrics_csv.h"
#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/system_error.h"
#include "engine/core/text.h"
#include "engine/core/timestamp.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr int kIndent = 2;

// Held as long as the writer lives; the system frees it when the process ends in any way.
FileDescriptor lock_folder(const fs::path& folder) {
  FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) fail_system(errno, "open the folder", folder);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  // Some network file systems have no locks: then nobody is kept out.
  if (errno != EWOULDBLOCK) return fd;
  throw Error(ErrorCode::kUsage,
              fmt::format("another process is writing the run '{}'", printable(folder.string())))
      .hint("wait for it, or choose another --run-dir");
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

// Whether the folder may become a run: nothing is in it but what a process leaves that is killed
// before it has written the manifest.
bool is_unused(const fs::path& folder) {
  return std::ranges::all_of(list_directory(folder), [&folder](const std::string& name) {
    if (name.starts_with(".trainscope-") && name.ends_with(".tmp")) return true;
    const bool own = name == kRunStagesFolder || name == kRunCheckpointsFolder;
    return own && folder_exists(folder / name) && list_directory(folder / name).empty();
  });
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

RunWriter::RunWriter(fs::path folder, FileDescriptor lock)
    : folder_(std::move(folder)), lock_(std::move(lock)) {}

RunWriter RunWriter::create(const fs::path& folder, RunManifest manifest) {
  CHECK_INVARIANT(manifest.sessions.size() == 1);
  if (path_exists(folder) && !folder_exists(folder)) {
    fail(ErrorCode::kUsage, "the run folder '{}' is a file", printable(folder.string()));
  }
  make_directories(folder);
  RunWriter writer(folder, lock_folder(folder));
  if (!is_unused(folder)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("the run folder '{}' is not empty", printable(folder.string())))
        .hint("continue that run with --resume auto, or choose another --run-dir");
  }
  make_directories(folder / kRunStagesFolder);
  make_directories(folder / kRunCheckpointsFolder);
  writer.manifest_ = std::move(manifest);
  RunSession session = std::move(writer.manifest_.sessions.back());
  writer.manifest_.sessions.clear();
  writer.begin_session(std::move(session));
  return writer;
}

RunWriter RunWriter::resume(const fs::path& folder, RunSession session) {
  const RunReader reader = RunReader::open(folder);
  RunWriter writer(folder, lock_folder(folder));
  writer.manifest_ = reader.manifest();
  make_directories(folder / kRunStagesFolder);
  make_directories(folder / kRunCheckpointsFolder);
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
  manifest_.sessions.push_back(std::move(session));
  write_manifest();
  try {
    metrics_.emplace(folder_ / kRunMetricsFile);
    // What the earlier session wrote beyond this step is done again.
    if (!first) {
      metrics_->write_line(Json::object({{"kind", "resume"}, {"step", from_step}}).dump());
    }
  } catch (const Error& error) {
    finish(RunStatus::kFailed, static_cast<int>(error.code()), error.message());
    throw;
  }
}

void RunWriter::write_manifest() const {
  write_file_atomic(folder_ / kRunManifestFile, to_json(manifest_).dump(kIndent) + "\n");
}

void RunWriter::also_write(const MetricsForms& forms) {
  const fs::path path = folder_ / kRunMetricsTableFile;
  // A table that an earlier session began would show steps that are done again.
  if (forms.csv || path_exists(path)) {
    write_file_atomic(path, metrics_csv(RunReader::open(folder_).metrics()));
    table_.emplace(path);
  }
  if (forms.tensorboard) events_.emplace(folder_, session().from_step);
}

void RunWriter::write_config(std::string_view toml) {
  write_file_atomic(folder_ / kRunConfigFile, toml);
}

void RunWriter::write_plan(const Json& plan) {
  write_file_atomic(folder_ / kRunPlanFile, plan.dump(kIndent) + "\n");
}

fs::path RunWriter::next_stage_file(std::string_view name) const {
  CHECK_INVARIANT(is_plain_name(name));
  return folder_ / kRunStagesFolder / fmt::format("{:02}-{}.onnx", stages_.size(), name);
}

void RunWriter::add_stage(StageRecord stage) {
  stage.file = next_stage_file(stage.name).filename().string();
  stages_.push_back(std::move(stage));
  Json list = Json::array();
  for (const StageRecord& record : stages_) list.push_back(to_json(record));
  write_file_atomic(folder_ / kRunStagesFolder / kRunStagesFile,
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
  if (metrics_) metrics_->sync();
  if (table_) table_->sync();
  if (events_) events_->sync();
  session().status = status;
  session().exit_code = exit_code;
  session().message = std::move(message);
  session().end_time = utc_timestamp();
  write_manifest();
}

}  // namespace trainscope
