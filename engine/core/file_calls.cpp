// The system's own calls.
#include "engine/core/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace trainscope {

int FileCalls::open(const char* path, int flags, mode_t mode) const {
  return ::open(path, flags, mode);
}

ssize_t FileCalls::write(int fd, const void* data, std::size_t size) const {
  return ::write(fd, data, size);
}

int FileCalls::sync(int fd) const { return ::fsync(fd); }

int FileCalls::rename(const char* from, const char* to) const { return ::rename(from, to); }

int FileCalls::exchange(const char* a, const char* b) const {
  return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

int FileCalls::make_folder(const char* path) const { return ::mkdir(path, 0777); }

const FileCalls& system_calls() {
  static const FileCalls calls;
  return calls;
}

}  // namespace trainscope
