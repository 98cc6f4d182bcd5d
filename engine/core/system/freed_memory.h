// What becomes of memory that this process frees.
#pragma once

namespace trainscope {

// While one is there, the process keeps what it frees, so that work which allocates large blocks
// again and again gets them without page faults; behind it, all goes back to the system. By glibc's
// mallopt(3): elsewhere nothing changes.
class KeepsFreedMemory {
 public:
  KeepsFreedMemory();
  ~KeepsFreedMemory();
  KeepsFreedMemory(const KeepsFreedMemory&) = delete;
  KeepsFreedMemory& operator=(const KeepsFreedMemory&) = delete;
};

}  // namespace trainscope
