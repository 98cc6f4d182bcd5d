// Kernels with a race each, and the same without it: what a check for races has to tell apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainscope::test {

struct KnownKernel {
  std::string name;
  bool races = false;
  void (*run)() = nullptr;  // one launch of the kernel, on memory of its own
};

std::vector<KnownKernel> known_kernels();

}  // namespace trainscope::test
