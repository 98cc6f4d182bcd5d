// What a path is that the window is asked to open, and the runs of a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/bundle/format.h"

namespace trainscope::gui {

enum class SourceKind : std::uint8_t {
  kNothing,  // not there, or none of the others
  kRun,      // a folder with a manifest
  kModel,    // a file
  kFolder,   // a folder that has runs in it
};

SourceKind kind_of(const std::filesystem::path& path);

// A run of a folder, as far as its manifest says.
struct RunListing {
  std::filesystem::path path = {};
  std::string name = {};
  std::string fault = {};  // why its manifest cannot be read; empty: it can
  std::string model = {};  // file name of its model
  std::string start_time = {};
  RunStatus status = RunStatus::kRunning;
  std::int64_t last_step = 0;
  std::int64_t sessions = 0;
};

// Those whose manifests are directly in its folders, by name. At most kMostListedRuns.
inline constexpr std::size_t kMostListedRuns = 1000;
std::vector<RunListing> runs_in(const std::filesystem::path& folder);

}  // namespace trainscope::gui
