// From the text of a kernel to its instructions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "tests/cuda/interpreter/instruction.h"

namespace trainscope::ptx {

struct KernelText {
  struct Part {
    std::string_view text;
    int line = 1;  // where it begins
  };
  std::string_view name;
  Part parameters;
  Part body;
  // Of the module: constants by name, declarations of shared memory that several kernels have, and
  // names of the shared memory that a launch asks for.
  const std::map<std::string_view, std::vector<std::uint8_t>>& variables;
  const std::map<std::string_view, std::string_view>& shared;
  const std::set<std::string_view>& launch_memory;
};

// Throws std::runtime_error(":<line>: <what>").
Kernel parse_kernel(const KernelText& text);

}  // namespace trainscope::ptx
