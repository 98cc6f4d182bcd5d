// Reading of a run's folder.
#include "engine/bundle/reader.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "engine/bundle/plan_json.h"
#include "engine/bundle/session_folders.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kFileLimits{.max_bytes = std::size_t{64} << 20, .max_depth = 32};
constexpr JsonLimits kLineLimits{.max_bytes = std::size_t{1} << 20, .max_depth = 8};
constexpr std::uint64_t kMaxRewritesBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxMetricsBytes = std::uint64_t{4} << 30;

// Runs `read` with the place in front of its errors.
template <typename F>
auto about(const std::string& where, F read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", where, error.message())).hint(error.hint());
  }
}

std::string file_text(const FolderEntry& file) {
  return fmt::format("'{}'", printable(file.path().string()));
}

Json read_json(const FolderEntry& file) {
  return Json::parse(read_file(file, kFileLimits.max_bytes), kFileLimits);
}

// Takes back the rows after a step: a resumed session does them again.
template <typename Row>
void forget_after(std::vector<Row>& rows, std::int64_t step) {
  while (!rows.empty() && rows.back().step > step) rows.pop_back();
}

template <typename Row>
void add_row(std::vector<Row>& rows, Row row) {
  require(rows.empty() || row.step > rows.back().step, ErrorCode::kBadInput,
          "step {} comes after step {}", row.step, rows.empty() ? 0 : rows.back().step);
  rows.push_back(std::move(row));
}

void add_line(std::string_view line, Metrics& metrics) {
  const Json json = Json::parse(line, kLineLimits);
  const auto kind = json.get<std::string>("kind");
  if (kind == "step") {
    add_row(metrics.steps, step_from(json));
  } else if (kind == "evaluation") {
    add_row(metrics.evaluations, evaluation_from(json));
  } else if (kind == "resume") {
    forget_after(metrics.steps, json.get<std::int64_t>("step"));
    forget_after(metrics.evaluations, json.get<std::int64_t>("step"));
  }
  // Kinds of later programs are skipped.
}

bool has_stages(const Folder& folder) {
  return folder.has_folder(kRunStagesFolder) &&
         folder.enter(kRunStagesFolder).has_file(kRunStagesFile);
}

bool has_events(const Folder& folder) { return folder.has_file(kRunEventsFile); }

bool has_numerics(const Folder& folder) { return folder.has_folder(kRunNumericsFolder); }

bool has_plan(const Folder& folder) {
  return folder.has_file(kRunPlanFile) || folder.has_file(kRunReadablePlanFile);
}

// Of format 1, which has plan.json alone.
StoredPlan old_plan(const Folder& folder) {
  const FolderEntry file = folder / kRunReadablePlanFile;
  return about(file_text(file), [&] {
    const Json plan = read_json(file);
    require(plan.is_object(), ErrorCode::kBadInput, "expected an object, found {}",
            name_of(plan.type()));
    if (plan.contains("calls")) {
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("'{}' is missing, of which this is only the readable form", kRunPlanFile))
          .hint(kPlanFileHint);
    }
    return StoredPlan(plan_of_format_1(plan));
  });
}

}  // namespace

RunReader RunReader::open(const fs::path& folder) {
  require(folder_exists(folder), ErrorCode::kIo, "there is no run folder '{}'",
          printable(folder.string()));
  return open(Folder::open(folder));
}

RunReader RunReader::open(const Folder& folder) {
  if (!folder.has_file(kRunManifestFile)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' is not a run: it has no {}", printable(folder.path().string()),
                            kRunManifestFile))
        .hint("a run's folder is what `trainscope train --run-dir` has written");
  }
  const FolderEntry file = folder / kRunManifestFile;
  return about(file_text(file), [&]() -> RunReader {
    return {folder, run_manifest_from(read_json(file))};
  });
}

Metrics RunReader::metrics() const {
  Metrics metrics;
  if (!folder_.has_file(kRunMetricsFile)) return metrics;
  const FolderEntry file = folder_ / kRunMetricsFile;
  const std::string text = read_file(file, kMaxMetricsBytes);
  std::string_view rest = text;
  for (std::size_t number = 1;; ++number) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return metrics;
    about(fmt::format("{}, line {}", file_text(file), number),
          [&] { add_line(rest.substr(0, end), metrics); });
    rest.remove_prefix(end + 1);
  }
}

std::optional<Folder> RunReader::folder_with(bool (*has)(const Folder&),
                                             std::int64_t session) const {
  const auto count = static_cast<std::int64_t>(manifest_.sessions.size());
  require(session >= 0 && session <= count, ErrorCode::kUsage,
          "the run has no session {}: it has {}", session, count);
  const bool is_newest = session == kNewestSession || session == count;
  if (is_newest && has(folder_)) return folder_;
  // The newest one's too: a process may have been killed that was about to begin the next.
  const std::optional<Folder> kept = session_folder(folder_, is_newest ? count : session);
  return kept && has(*kept) ? kept : std::nullopt;
}

std::vector<StageRecord> RunReader::stages(std::int64_t session) const {
  std::vector<StageRecord> stages;
  const std::optional<Folder> folder = folder_with(has_stages, session);
  if (!folder) return stages;
  const FolderEntry file = folder->enter(kRunStagesFolder) / kRunStagesFile;
  about(file_text(file), [&] {
    const Json json = read_json(file);
    for (const Json& stage : json.array_at("stages")) stages.push_back(stage_from(stage));
  });
  return stages;
}

MappedFile RunReader::open_stage(const StageRecord& stage, std::int64_t session) const {
  const std::optional<Folder> folder = folder_with(has_stages, session);
  require(folder.has_value(), ErrorCode::kIo, "the run '{}' has no stages",
          printable(folder_.path().string()));
  return MappedFile::open(folder->enter(kRunStagesFolder) / stage.file);
}

std::optional<StoredPlan> RunReader::plan(std::int64_t session) const {
  const std::optional<Folder> folder = folder_with(has_plan, session);
  if (!folder) return std::nullopt;
  const bool is_old = !folder->has_file(kRunPlanFile);
  return is_old ? old_plan(*folder) : StoredPlan::open(*folder / kRunPlanFile);
}

std::optional<MappedFile> RunReader::events(std::int64_t session) const {
  const std::optional<Folder> folder = folder_with(has_events, session);
  if (!folder) return std::nullopt;
  return MappedFile::open(*folder / kRunEventsFile);
}

std::optional<Folder> RunReader::numerics(std::int64_t session) const {
  const std::optional<Folder> folder = folder_with(has_numerics, session);
  if (!folder) return std::nullopt;
  return folder->enter(kRunNumericsFolder);
}

std::string RunReader::stage_rewrites(const StageRecord& stage, std::int64_t session) const {
  const std::optional<Folder> folder = folder_with(has_stages, session);
  if (!folder) return {};
  const Folder stages = folder->enter(kRunStagesFolder);
  const FolderEntry file = stages / rewrites_file(stage.file);
  return stages.has_file(file.name) ? read_file(file, kMaxRewritesBytes) : std::string();
}

std::optional<Folder> RunReader::checkpoints_folder() const {
  if (!folder_.has_folder(kRunCheckpointsFolder)) return std::nullopt;
  return folder_.enter(kRunCheckpointsFolder);
}

}  // namespace trainscope
