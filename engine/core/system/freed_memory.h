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

// What the allocator keeps of freed blocks goes back to the system; glibc keeps those of up to 32
// MiB. Elsewhere than with glibc nothing happens.
void give_back_freed_memory();

}  // namespace trainscope
