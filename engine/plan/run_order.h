// The runs of a step in order, with the values they touch as numbers: all that lifetimes depend on,
// quick to make for many plans of one graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/graph.h"

namespace trainscope {

enum class RunKind : std::uint8_t {
  kFirst,    // of a node
  kAgain,    // of a node that ran before
  kOffload,  // one value to host memory: no node of the graph
  kFetch,    // ... and back
};

struct Run {
  NodeId node = kNoNode;
  RunKind kind = RunKind::kFirst;
  std::uint32_t begin = 0;  // in RunOrder::operands: the inputs, then the outputs
  std::uint32_t input_count = 0;
  std::uint32_t output_count = 0;
};

// Values have their ValueId as number; what is made again, offloaded or fetched has a number of its
// own, from Graph::value_capacity() on.
struct RunOrder {
  static constexpr std::int32_t kNone = -1;  // a left out input or output

  std::vector<Run> runs;  // views included
  std::vector<std::int32_t> operands;
  std::vector<ValueId> remade;  // by number less value_capacity(): the value that it is again

  std::span<const std::int32_t> inputs(const Run& run) const {
    return std::span(operands).subspan(run.begin, run.input_count);
  }
  std::span<const std::int32_t> outputs(const Run& run) const {
    return std::span(operands).subspan(run.begin + run.input_count, run.output_count);
  }
};

// Every node of `order` once.
RunOrder run_order_of(const Graph& graph, std::span<const NodeId> order);

}  // namespace trainscope
