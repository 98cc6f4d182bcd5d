// The memory of a simulated GPU: pages of the process that the host cannot touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/cuda/simulated/kernel_runner.h"

namespace trainscope::simulated {

inline constexpr std::size_t kDeviceBytes = std::size_t{8} << 30;

enum class MemoryKind : std::uint8_t { kPageable, kPinned, kDevice };

// Device memory holds NaN in every float format until something writes it. The host's accesses end
// the process with a segmentation fault, as do those beyond the end of a block, rounded up to 256
// bytes, by anyone.
class Memory {
 public:
  // Null where there is not as much.
  void* allocate(MemoryKind kind, std::size_t bytes);
  // Whether it was allocated so.
  bool release(MemoryKind kind, void* block);

  MemoryKind kind_of(const void* address) const;
  // Whether so many bytes lie within one block; those of pageable memory are not known.
  bool holds(const void* address, std::size_t bytes) const;

  // All blocks: a kernel may use pinned memory, too.
  std::vector<MemoryRange> blocks() const;

  std::size_t most_device_bytes() const { return most_device_bytes_; }
  // Of the device's memory, by a driver, by the code of kernels and by blocks.
  std::size_t used_device_bytes() const;
  // As with a program's first kernel, whose code is loaded then.
  void load_code() { code_is_loaded_ = true; }

  // Work of the device runs between these two.
  void open();
  void close();

 private:
  struct Block {
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::kDevice;
    std::byte* mapped = nullptr;
    std::size_t mapped_bytes = 0;  // of which the last page is forbidden
  };
  using Blocks = std::map<std::uintptr_t, Block>;
  Blocks::const_iterator block_at(const void* address) const;
  void protect(const Block& block) const;

  Blocks blocks_;  // by address
  bool code_is_loaded_ = false;
  std::size_t device_bytes_ = 0;
  std::size_t most_device_bytes_ = 0;
  int open_ = 0;
};

}  // namespace trainscope::simulated
