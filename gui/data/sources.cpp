// Looks at a path without throwing: what cannot be looked at is nothing.
#include "gui/data/sources.h"

#include <algorithm>
#include <system_error>

#include "engine/bundle/reader.h"
#include "engine/core/any_error.h"
#include "engine/core/text.h"

namespace trainscope::gui {
namespace {

namespace fs = std::filesystem;

bool has_manifest(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kRunManifestFile, ignored);
}

std::vector<fs::path> run_folders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (has_manifest(entry->path())) found.push_back(entry->path());
    if (found.size() == kMostListedRuns) break;
  }
  std::ranges::sort(found);
  return found;
}

RunListing listing_of(const fs::path& path) {
  RunListing listing{.path = path, .name = path.filename().string()};
  try {
    const RunReader reader = RunReader::open(path);
    const RunManifest& manifest = reader.manifest();
    listing.model = fs::path(manifest.model.get_or<std::string>("file", "")).filename().string();
    listing.sessions = static_cast<std::int64_t>(manifest.sessions.size());
    const RunSession& last = manifest.sessions.back();
    listing.start_time = last.start_time;
    listing.status = last.status;
    listing.last_step = last.last_step;
  } catch (const std::exception& exception) {
    listing.fault = error_of(exception).message();
  }
  return listing;
}

}  // namespace

SourceKind kind_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return SourceKind::kModel;
  if (!fs::is_directory(path, ignored)) return SourceKind::kNothing;
  if (has_manifest(path)) return SourceKind::kRun;
  return run_folders(path).empty() ? SourceKind::kNothing : SourceKind::kFolder;
}

std::vector<RunListing> runs_in(const fs::path& folder) {
  std::vector<RunListing> runs;
  for (const fs::path& path : run_folders(folder)) runs.push_back(listing_of(path));
  return runs;
}

}  // namespace trainscope::gui
