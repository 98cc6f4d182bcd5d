// How much memory a process takes at once, as Linux counts it.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace trainscope::test {

// How much more memory than at its begin was resident at once while it lives.
class MemoryPeak {
 public:
  MemoryPeak() {
    std::ofstream reset("/proc/self/clear_refs");
    reset << "5" << std::flush;  // the peak begins anew
    REQUIRE_MESSAGE(reset.good(), "Linux does not let the peak of memory begin anew");
    begin_ = peak();
  }
  std::int64_t bytes() const { return peak() - begin_; }

 private:
  static std::int64_t peak() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
    }
    FAIL("/proc/self/status says nothing of the peak of memory");
    return 0;
  }
  std::int64_t begin_ = 0;
};

}  // namespace trainscope::test
