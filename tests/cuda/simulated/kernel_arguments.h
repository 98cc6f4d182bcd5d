// What a kernel is given, kept until it runs.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace trainscope::simulated {

// Arguments as they were when the kernel was launched.
class Arguments {
 public:
  Arguments(std::span<const std::size_t> bytes, void** values) {
    std::size_t total = 0;
    for (const std::size_t size : bytes) total += padded(size);
    bytes_.resize(total);
    std::size_t at = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::memcpy(bytes_.data() + at, values[i], bytes[i]);
      offsets_.push_back(at);
      at += padded(bytes[i]);
    }
  }
  std::vector<void*> addresses() {
    std::vector<void*> found;
    for (const std::size_t offset : offsets_) found.push_back(bytes_.data() + offset);
    found.push_back(nullptr);
    return found;
  }

 private:
  static std::size_t padded(std::size_t size) { return (size + 15) / 16 * 16; }

  std::vector<std::byte> bytes_;
  std::vector<std::size_t> offsets_;
};

}  // namespace trainscope::simulated
