// System calls that fail on request: this program's write, fsync, rename, renameat2, mkdir.
#pragma once

#include <cstdint>

namespace trainscope {

enum class Fault : std::uint8_t { kWrite, kSync, kRename, kExchange, kMakeFolder };

// While it lives, the nth call (from 1) of a kind and all after it fail with `error_number`.
class FailingCalls {
 public:
  FailingCalls(Fault fault, int nth, int error_number);
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;
  ~FailingCalls();
  // Whether any call was made to fail.
  bool happened() const;
};

}  // namespace trainscope
