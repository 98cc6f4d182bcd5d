// Which values of a step share bytes, how long the bytes are needed, and what that asks of the
// memory planner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/byte_ranges.h"
#include "engine/plan/execution_order.h"
#include "engine/plan/lower.h"

namespace trainscope {

// After the phase, the bytes of `from` go to the storage of `to`: updates that cannot be in place.
struct StateCopy {
  ValueId from;
  ValueId to;
  Phase phase;
};

// Steps are positions among the executions that are no views: the times of a program.
struct Lifetimes {
  struct Buffer {
    std::int64_t first = 0;  // step that writes it first
    std::int64_t last = 0;   // last step that needs it
    std::size_t bytes = 0;
    bool persistent = false;
    bool external = false;
    bool host = false;         // in host memory
    ValueId value = kNoValue;  // the first one that lives there
  };
  // By first, last, bytes: the numbering of values plays no part. Those in host memory come last.
  std::vector<Buffer> buffers;
  std::size_t in_arena = 0;             // of the buffers
  std::vector<std::int32_t> buffer_of;  // by a value's number; -1: no bytes needed
  std::vector<std::int64_t> offset_of;  // by a value's number: bytes from its buffer's start
  std::vector<StateCopy> copies;
};

// Finds lifetimes for many orders of one graph.
class LifetimeFinder {
 public:
  LifetimeFinder(const Graph& graph, const LowerOptions& options);
  // workspaces: bytes by step, which decide what is worth it; empty: none.
  Lifetimes find(const ExecutionOrder& order, std::span<const std::int64_t> workspaces = {}) const;

 private:
  friend class LifetimeSearch;

  const Graph graph_;
  bool in_place_;
  bool external_parameters_;
  bool keep_inputs_;
  std::vector<ValueId> values_;                 // those that exist
  std::vector<std::size_t> bytes_;              // by ValueId
  std::vector<std::vector<InPlace>> pairs_of_;  // by NodeId: results that may be in place
  std::vector<ByteRanges> ranges_of_;           // by NodeId: what may lie in what; empty: nothing
};

// Of one run of each of the nodes, in this order.
Lifetimes find_lifetimes(const Graph& graph, std::span<const NodeId> order,
                         const LowerOptions& options,
                         std::span<const std::int64_t> workspaces = {});

// What is to be placed, without a name; external buffers have no bytes. `steps`: of the program, 1
// at least.
memplan::Buffer placeable_buffer(const Lifetimes::Buffer& buffer, std::int64_t steps);

// What is to be placed in the arena, without names: a buffer for each of the lifetimes that are not
// in host memory, then one for each workspace that is not empty. workspaces: bytes by step.
// alignment_bytes: of the arena.
memplan::Problem placement_problem(const Lifetimes& lifetimes,
                                   std::span<const std::int64_t> workspaces,
                                   std::int64_t alignment_bytes);
// A smaller problem of the same height: all that lives throughout is one buffer, the first.
memplan::Problem height_problem(const Lifetimes& lifetimes,
                                std::span<const std::int64_t> workspaces,
                                std::int64_t alignment_bytes);

}  // namespace trainscope
