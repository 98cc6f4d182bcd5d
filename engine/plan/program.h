// Program: a graph lowered to kernels and placed in one arena; all that execution needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "kernels/api/device.h"
#include "memplan/problem.h"
#include "memplan/solution.h"

namespace trainscope {

// What a batch tile has of a value.
enum class TileSlice : std::uint8_t {
  kWhole,
  kExamples,  // an equal slice along axis 0
  kPartial,   // of a result: a sum over the tile's examples; these are added up in the tiles' order
};

// How an instruction runs that is in a tiled section: once for each batch tile, on one thread.
struct Tiling {
  std::vector<Prepared> prepared;  // by tile
  std::vector<TileSlice> inputs;
  std::vector<TileSlice> outputs;
  std::int64_t tile_workspace_bytes = 0;  // of one tile: they lie one after the other ...
  std::int64_t partial_bytes = 0;         // ... and behind them the partials of all but the first
};

// One kernel call. Inputs and outputs as the node has them; kNoValue: left out.
struct Instruction {
  NodeId node = kNoNode;
  const Kernel* kernel = nullptr;
  Params params;  // of one batch tile, if there are any
  Prepared prepared;
  std::int64_t workspace_offset = 0;  // bytes from the arena's start
  Tiling tiling = {};                 // none: it runs whole
};

// Instructions [begin, end) that each tile runs through without waiting for the others
// (batch_tiles.h).
struct TiledSection {
  std::size_t begin = 0;
  std::size_t end = 0;
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
  std::int32_t buffer = -1;  // of its arena's problem; the value may be a tile of it
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
  DeviceHandle device;  // that runs it; null: the program is a plan alone
  std::vector<Instruction> instructions;
  std::vector<StateCopy> copies;
  std::vector<Placement> placements;  // by ValueId
  std::size_t update_begin = 0;       // first instruction of the update phase

  // Steps are instruction indices. Buffers of values, then workspaces in their instructions' order.
  memplan::Problem problem;
  memplan::Solution solution;  // offsets by buffer
  std::int64_t arena_bytes = 0;
  HostArena host;
  std::int64_t persistent_bytes = 0;  // parameters, states and constants
  std::int64_t workspace_bytes = 0;   // of the hungriest instruction
  int threads = 1;                    // and tiles, of instructions in sections
  std::vector<TiledSection> sections;
};

}  // namespace trainscope
