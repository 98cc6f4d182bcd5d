// The folder where a window is started.
#pragma once

#include <filesystem>
#include <string_view>

#include "tests/cli/program_runner.h"

namespace trainscope::gui::test {

// An empty folder that the process is in while this lives.
class StartFolder {
 public:
  StartFolder() { std::filesystem::current_path(folder_.path()); }
  ~StartFolder() { std::filesystem::current_path(before_); }
  StartFolder(const StartFolder&) = delete;
  StartFolder& operator=(const StartFolder&) = delete;

  const std::filesystem::path& path() const { return folder_.path(); }

  // As ./demo.sh does, from a run that there is.
  void put_demo(std::string_view name, const std::filesystem::path& run) const {
    std::filesystem::create_directories(path() / "runs" / name);
    std::filesystem::copy(run, path() / "runs" / name / "run",
                          std::filesystem::copy_options::recursive);
  }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  trainscope::test::TemporaryFolder folder_;
};

}  // namespace trainscope::gui::test
