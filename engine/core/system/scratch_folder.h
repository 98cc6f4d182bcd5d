// A folder for files that nobody needs after the work that made them.
#pragma once

#include <filesystem>

namespace trainscope {

class ScratchFolder {
 public:
  // Below the system's folder for temporary files. Throws kIo where it cannot be made.
  ScratchFolder();
  // Removes it with all that is in it.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace trainscope
