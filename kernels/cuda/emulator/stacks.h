// The stacks of fibers.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "kernels/cuda/emulator/emulator.h"

namespace trainscope::cuda::emulator {

inline constexpr std::size_t kStackBytes = 64 * 1024;

// Each lies above a page that ends the program when it is touched.
class Stacks {
 public:
  explicit Stacks(std::size_t count) : count_(count) { map(); }
  ~Stacks() { munmap(memory_, count_ * kStep); }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  std::byte* stack(std::size_t i) const { return memory_ + i * kStep + kGuardBytes; }

 private:
  static constexpr std::size_t kGuardBytes = 4096;
  static constexpr std::size_t kStep = kStackBytes + kGuardBytes;

  void map() {
    void* memory = mmap(nullptr, count_ * kStep, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) die("no memory for stacks");
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < count_; ++i) {
      if (mprotect(memory_ + i * kStep, kGuardBytes, PROT_NONE) != 0) die("no guard of a stack");
    }
  }

  std::size_t count_;
  std::byte* memory_ = nullptr;
};

}  // namespace trainscope::cuda::emulator
