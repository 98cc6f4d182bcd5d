// A library to preload: call number THROW_AT of fsync throws what is no Error of ours, as a mistake
// in our own code or in a library may anywhere.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>

extern "C" int fsync(int fd) {
  static std::atomic<int> calls = 0;
  const char* throw_at = std::getenv("THROW_AT");
  if (throw_at != nullptr && ++calls == std::atoi(throw_at)) {
    throw std::length_error("thrown by fsync");
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}
