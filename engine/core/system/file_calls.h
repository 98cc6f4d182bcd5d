// The system calls that change files, in one place, so that a test can make any of them fail.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace trainscope {

// Each does what the system call of its name does: -1 and errno when it fails. Names are relative
// to the descriptor `folder` (AT_FDCWD: paths). This class makes the real calls; a test derives one
// that fails on request.
class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int open(int folder, const char* name, int flags, mode_t mode) const;
  virtual ssize_t write(int fd, const void* data, std::size_t size) const;
  virtual int sync(int fd) const;  // fsync: files and folders
  virtual int rename(int folder, const char* from, const char* to) const;
  // Two entries trade places in one step; EINVAL or ENOSYS where the file system cannot do that.
  virtual int exchange(int folder, const char* a, const char* b) const;
  virtual int make_folder(int folder, const char* name) const;
};

// The real calls: what every function takes that is not told otherwise.
const FileCalls& system_calls();

}  // namespace trainscope
