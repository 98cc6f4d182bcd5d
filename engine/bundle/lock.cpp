// The lock on a run's folder.
#include "engine/bundle/lock.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {

namespace fs = std::filesystem;

RunLock::RunLock(Folder folder) : folder_(std::move(folder)), lock_(folder_.open_self()) {
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
  // Some network file systems have no locks: then nobody is kept out.
  if (errno != EWOULDBLOCK) return;
  throw Error(ErrorCode::kUsage, fmt::format("another process is writing the run '{}'",
                                             printable(folder_.path().string())))
      .hint("wait for it, or choose another --run-dir");
}

RunLock RunLock::take(const fs::path& folder) { return RunLock(Folder::open(folder)); }

RunLock RunLock::make(const fs::path& folder) {
  require(!path_exists(folder) || folder_exists(folder), ErrorCode::kUsage,
          "the run folder '{}' is a file", printable(folder.string()));
  make_directories(folder);
  return take(folder);
}

}  // namespace trainscope
