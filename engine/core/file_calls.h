// The system calls that change files, in one place, so that a test can make any of them fail.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace trainscope {

// Each does what the system call of its name does: -1 and errno when it fails. This class makes the
// real calls; a test derives one that fails on request.
class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int open(const char* path, int flags, mode_t mode) const;
  virtual ssize_t write(int fd, const void* data, std::size_t size) const;
  virtual int sync(int fd) const;  // fsync: files and folders
  virtual int rename(const char* from, const char* to) const;
  // Two entries trade places in one step; EINVAL or ENOSYS where the file system cannot do that.
  virtual int exchange(const char* a, const char* b) const;
  virtual int make_folder(const char* path) const;
};

// The real calls: what every function takes that is not told otherwise.
const FileCalls& system_calls();

}  // namespace trainscope
