// What a kernel takes for a call of a program by itself, on operands of its own.
#pragma once

#include <cstdint>

#include "engine/plan/program.h"

namespace trainscope {

struct TimingEffort {
  int rounds = 5;             // at least, after one that warms up
  double seconds = 0.02;      // at least
  int many_rounds = 2000;     // ... but after so many the median is known, however short they are
  double most_seconds = 1.0;  // ... and no round begins after it
  // Of calls that compute compacted rows alone (is_compacted); -1: all of them do.
  std::int64_t compacted_rows = -1;
};

struct CallTiming {
  double median_seconds = 0.0;
  double least_seconds = 0.0;
  int rounds = 0;
};

// Whether the call makes or computes compacted rows, as many as an operand or result of it says.
bool is_compacted(const Program& program, const Call& call);

// Whether the kernel takes the call at all, whatever the plan's options leave out.
Support supports_call(const Program& program, const Call& call, const Kernel& kernel);

// Floats are small numbers of both signs, integers zeros, which name a row of every table;
// constants are as the program has them. Memory is taken for operands and workspace, and given
// back. Throws kOutOfMemory, and what the kernel reports.
CallTiming time_alone(const Program& program, const Call& call, const Kernel& kernel,
                      const TimingEffort& effort = {});

}  // namespace trainscope
