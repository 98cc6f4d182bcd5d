// The system's own calls.
#include "engine/core/system/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace trainscope {

int FileCalls::open(int folder, const char* name, int flags, mode_t mode) const {
  return ::openat(folder, name, flags, mode);
}

ssize_t FileCalls::write(int fd, const void* data, std::size_t size) const {
  return ::write(fd, data, size);
}

int FileCalls::sync(int fd) const { return ::fsync(fd); }

int FileCalls::rename(int folder, const char* from, const char* to) const {
  return ::renameat(folder, from, folder, to);
}

int FileCalls::exchange(int folder, const char* a, const char* b) const {
  return ::renameat2(folder, a, folder, b, RENAME_EXCHANGE);
}

int FileCalls::make_folder(int folder, const char* name) const {
  return ::mkdirat(folder, name, 0777);
}

const FileCalls& system_calls() {
  static const FileCalls calls;
  return calls;
}

}  // namespace trainscope
