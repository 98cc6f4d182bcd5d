// One process at a time writes a run: it holds a lock on the folder.
#pragma once

#include <filesystem>

#include "engine/core/folder.h"

namespace trainscope {

// Held as long as it lives; the system frees it when the process ends in any way.
class RunLock {
 public:
  // Throws kIo when there is no such folder, kUsage when another process has locked it.
  static RunLock take(const std::filesystem::path& folder);
  // The same for a folder that is made, with those above it, where there is none.
  static RunLock make(const std::filesystem::path& folder);

  const Folder& folder() const { return folder_; }

 private:
  explicit RunLock(Folder folder);

  Folder folder_;
  FileDescriptor lock_;
};

}  // namespace trainscope
