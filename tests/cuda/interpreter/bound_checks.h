// Bound checks of a kernel: comparisons by which threads are kept from memory that is not theirs.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/cuda/interpreter/code_paths.h"
#include "tests/cuda/interpreter/instruction.h"

namespace trainscope::ptx {

// The comparison at a place of the code lets a lane pass where its result is `passes`.
struct BoundCheck {
  std::size_t place = 0;
  bool passes = false;
};

// Comparisons of integers by order (setp.lt, .le, .gt, .ge) whose result, by itself or with others
// (and, or, not), decides whether global memory is used: as the guard of an instruction that uses
// it, of a branch or exit one way of which, and not the other, leads to such instructions alone, or
// as the size of an asynchronous copy. Left out are
// - the conditions that loops go back by, and comparisons of the same line with a constant: how
// many
//   rounds an unrolled loop has,
// - those that no thread of a block comes to, or that all of its threads pass, by their numbers
//   alone,
// - what numbers and arguments of the launch decide, alike for every thread and round,
// - comparisons that pass by one result here and by the other there: they choose between two paths.
std::vector<BoundCheck> bound_checks_of(const Kernel& kernel, const CodePaths& paths);

}  // namespace trainscope::ptx
