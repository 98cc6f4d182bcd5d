// The one block of a memory space that a program's tensors live in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/api/device.h"

namespace trainscope {

// Zeroed memory of a device with guard bytes behind it.
class Arena {
 public:
  // Fails with kOutOfMemory.
  Arena(DeviceHandle device, Space space, std::int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The device's address: for kernels and copies.
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  // Whether nothing has written behind the arena's end. Waits for all work.
  bool guard_intact() const;

 private:
  DeviceHandle device_;
  Space space_;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace trainscope
