// Program: a graph lowered to kernels and placed in one arena; all that execution needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "kernels/api/kernel.h"
#include "memplan/problem.h"
#include "memplan/solution.h"

namespace trainscope {

// One kernel call. Inputs and outputs as the node has them; kNoValue: left out.
struct Instruction {
  NodeId node = kNoNode;
  const Kernel* kernel = nullptr;
  Params params;
  Prepared prepared;
  std::int64_t workspace_offset = 0;  // bytes from the arena's start
};

// After the phase, the bytes of `from` go to the storage of `to`: updates that cannot be in place.
struct StateCopy {
  ValueId from;
  ValueId to;
  Phase phase;
};

// Where a value lives. `external`: in another program's arena (parameters of an evaluation).
struct Placement {
  std::int64_t offset = -1;  // bytes from its arena's start; -1: not placed (unused or external)
  std::int32_t buffer = -1;  // of its arena's problem; the value may be a part of it
  bool external = false;
  bool host = false;  // in host memory
};

// A second block of memory, for what is offloaded.
struct HostArena {
  memplan::Problem problem;
  memplan::Solution solution;
  std::int64_t bytes = 0;
};

// Invariants: instructions are in phase order; no two buffers alive at one step overlap (checked by
// memplan::validate); every value that an instruction touches is placed or external.
struct Program {
  Graph graph;
  std::vector<Instruction> instructions;
  std::vector<StateCopy> copies;
  std::vector<Placement> placements;  // by ValueId
  std::size_t update_begin = 0;       // first instruction of the update phase

  memplan::Problem problem;    // steps are instruction indices
  memplan::Solution solution;  // offsets by buffer
  std::int64_t arena_bytes = 0;
  HostArena host;
  std::int64_t persistent_bytes = 0;  // parameters, states and constants
  std::int64_t workspace_bytes = 0;   // of the hungriest instruction
  int threads = 1;
};

}  // namespace trainscope
