// File calls that fail on request.
#include "tests/engine/train/faults.h"

#include <cerrno>

namespace trainscope {

bool TestCalls::fails(std::string_view call) const {
  calls_.emplace_back(call);
  if (!armed_ || (!fault_.call.empty() && fault_.call != call)) return false;
  ++counted_;
  const bool hit = fault_.all_after ? counted_ >= fault_.first : counted_ == fault_.first;
  if (!hit) return false;
  ++failures_;
  errno = fault_.error_number;
  return true;
}

int TestCalls::open(int folder, const char* name, int flags, mode_t mode) const {
  return fails("open") ? -1 : FileCalls::open(folder, name, flags, mode);
}

ssize_t TestCalls::write(int fd, const void* data, std::size_t size) const {
  return fails("write") ? -1 : FileCalls::write(fd, data, size);
}

int TestCalls::sync(int) const { return fails("sync") ? -1 : 0; }

int TestCalls::rename(int folder, const char* from, const char* to) const {
  return fails("rename") ? -1 : FileCalls::rename(folder, from, to);
}

int TestCalls::exchange(int folder, const char* a, const char* b) const {
  return fails("exchange") ? -1 : FileCalls::exchange(folder, a, b);
}

int TestCalls::make_folder(int folder, const char* name) const {
  return fails("mkdir") ? -1 : FileCalls::make_folder(folder, name);
}

}  // namespace trainscope
