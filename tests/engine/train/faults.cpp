// Stands in front of the C library: the linker prefers a program's own functions.
#include "tests/engine/train/faults.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace trainscope {
namespace {

// The functions below have the signatures of the C library: what they do has to be a global.
struct State {
  bool armed = false;
  Fault fault = Fault::kWrite;
  int calls_left = 0;
  int error_number = 0;
  bool happened = false;
};
State state;

bool fails(Fault fault) {
  if (!state.armed || state.fault != fault || --state.calls_left > 0) return false;
  state.happened = true;
  errno = state.error_number;
  return true;
}

}  // namespace

FailingCalls::FailingCalls(Fault fault, int nth, int error_number) {
  state = {.armed = true, .fault = fault, .calls_left = nth, .error_number = error_number};
}

FailingCalls::~FailingCalls() { state.armed = false; }

bool FailingCalls::happened() const { return state.happened; }

}  // namespace trainscope

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  if (trainscope::fails(trainscope::Fault::kWrite)) return -1;
  return syscall(SYS_write, fd, data, size);
}

// Nothing here loses its power: what is not waited for makes the tests ten times as fast.
int fsync(int) { return trainscope::fails(trainscope::Fault::kSync) ? -1 : 0; }

int rename(const char* from, const char* to) noexcept {
  if (trainscope::fails(trainscope::Fault::kRename)) return -1;
  return static_cast<int>(syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  if (trainscope::fails(trainscope::Fault::kExchange)) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (trainscope::fails(trainscope::Fault::kMakeFolder)) return -1;
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

}  // extern "C"
