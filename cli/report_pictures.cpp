// Pictures go through a folder of their own, which is gone afterwards.
#include "cli/report_pictures.h"

#include <cstdint>
#include <string>
#include <vector>

#include "cli/window_program.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/system/scratch_folder.h"

namespace trainscope {
namespace {

constexpr int kMostSeconds = 20;  // of a picture, which takes a fraction of one
constexpr std::uint64_t kMostPictureBytes = 2 << 20;

std::vector<std::string> panels_of(const profiler::ReportInput& input) {
  std::vector<std::string> panels;
  if (input.times) panels.emplace_back("timeline");
  if (input.plan) panels.emplace_back("memory");
  if (!input.stages.empty()) panels.emplace_back("graph");
  const auto session = static_cast<std::size_t>(input.session - 1);
  const bool has_machine = !input.manifest.sessions.at(session).machine.is_null();
  if (input.times && has_machine) panels.emplace_back("roofline");
  return panels;
}

}  // namespace

void add_pictures(profiler::ReportInput& input, const std::filesystem::path& run) {
  if (!has_window_program()) {
    input.no_pictures = "Pictures of the window are left out: this build has no trainscope-window.";
    return;
  }
  if (input.session != std::ssize(input.manifest.sessions)) {
    input.no_pictures = "Pictures of the window are of a run's newest session, which this is not.";
    return;
  }
  try {
    const ScratchFolder folder;
    for (const std::string& panel : panels_of(input)) {
      const std::filesystem::path file = folder.path() / (panel + ".svg");
      run_window_program({"shot", run.string(), "--panel", panel, "--theme", "light", "--size",
                          "1100x520", "--out", file.string()},
                         kMostSeconds);
      input.pictures.push_back({.name = panel, .svg = read_file(file, kMostPictureBytes)});
    }
  } catch (const Error& error) {
    input.pictures.clear();
    input.no_pictures =
        std::string("Pictures of the window could not be made: ") + error.what() + ".";
  }
}

}  // namespace trainscope
