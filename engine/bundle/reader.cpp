// Reading of a run's folder.
#include "engine/bundle/reader.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kFileLimits{.max_bytes = std::size_t{64} << 20, .max_depth = 32};
constexpr JsonLimits kLineLimits{.max_bytes = std::size_t{1} << 20, .max_depth = 8};
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

std::vector<StageRecord> RunReader::stages() const {
  std::vector<StageRecord> stages;
  if (!folder_.has_folder(kRunStagesFolder)) return stages;
  const FolderEntry file = folder_.enter(kRunStagesFolder) / kRunStagesFile;
  if (!file.folder.has_file(file.name)) return stages;
  about(file_text(file), [&] {
    const Json json = read_json(file);
    for (const Json& stage : json.array_at("stages")) stages.push_back(stage_from(stage));
  });
  return stages;
}

MappedFile RunReader::open_stage(const StageRecord& stage) const {
  return MappedFile::open(folder_.enter(kRunStagesFolder) / stage.file);
}

std::optional<Folder> RunReader::checkpoints_folder() const {
  if (!folder_.has_folder(kRunCheckpointsFolder)) return std::nullopt;
  return folder_.enter(kRunCheckpointsFolder);
}

std::optional<Json> RunReader::plan() const {
  if (!folder_.has_file(kRunPlanFile)) return std::nullopt;
  const FolderEntry file = folder_ / kRunPlanFile;
  return about(file_text(file), [&]() -> Json {
    Json plan = read_json(file);
    require(plan.is_object(), ErrorCode::kBadInput, "expected an object, found {}",
            name_of(plan.type()));
    return plan;
  });
}

}  // namespace trainscope
