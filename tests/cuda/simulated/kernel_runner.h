// What runs the kernels of a simulated CUDA runtime: the program that loads it has them.
#pragma once

#include <cstddef>
#include <span>

namespace trainscope::simulated {

struct LaunchSizes {
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads[3] = {1, 1, 1};
  std::size_t shared_bytes = 0;  // beyond what the kernel declares
};

// What a kernel may use.
struct MemoryRange {
  const void* begin = nullptr;
  std::size_t bytes = 0;
};

// One kernel, by the name that nvcc gave it.
class RunnableKernel {
 public:
  virtual ~RunnableKernel() = default;
  virtual std::span<const std::size_t> argument_bytes() const = 0;
  virtual void run(const LaunchSizes& sizes, void* const* arguments,
                   std::span<const MemoryRange> memory) const = 0;
};

}  // namespace trainscope::simulated

// Exported by the program. Null for a kernel that it does not have.
extern "C" const trainscope::simulated::RunnableKernel* trainscope_simulated_kernel(
    const char* name);
