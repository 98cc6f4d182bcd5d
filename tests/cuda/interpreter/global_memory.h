// Memory of the host that kernels may use as a GPU's, in ranges that were given to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace trainscope::ptx {

class GlobalMemory {
 public:
  void allow(const void* begin, std::size_t bytes) {
    if (bytes == 0) return;
    std::size_t& size = ranges_[reinterpret_cast<std::uintptr_t>(begin)];
    if (bytes > size) size = bytes;
    last_ = {};
  }
  void forbid_all() {
    ranges_.clear();
    last_ = {};
  }

  bool allows(std::uint64_t address, std::size_t bytes) {
    if (address >= last_.begin && address + bytes <= last_.end) return true;
    // Ranges may lie within others: the nearest ones that begin before are asked.
    for (auto range = ranges_.upper_bound(address); range != ranges_.begin();) {
      --range;
      const Range found{.begin = range->first, .end = range->first + range->second};
      if (address + bytes > found.end) continue;
      last_ = found;
      return true;
    }
    return false;
  }

 private:
  struct Range {
    std::uint64_t begin = 1;
    std::uint64_t end = 0;
  };

  std::map<std::uint64_t, std::size_t> ranges_;  // bytes behind each beginning
  Range last_;
};

}  // namespace trainscope::ptx
