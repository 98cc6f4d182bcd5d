// The executions of nodes in a step, in order, with the values they touch as numbers: all that
// lifetimes depend on, quick to make for many plans of one graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/graph.h"

namespace trainscope {

enum class ExecutionKind : std::uint8_t {
  kFirst,           // of a node
  kRematerialized,  // of a node that was executed before
  kOffload,         // one value to host memory: no node of the graph
  kFetch,           // ... and back
};

struct Execution {
  NodeId node = kNoNode;
  ExecutionKind kind = ExecutionKind::kFirst;
  std::uint32_t begin = 0;  // in ExecutionOrder::operands: the inputs, then the outputs
  std::uint32_t input_count = 0;
  std::uint32_t output_count = 0;
};

// Values have their ValueId as number; what is rematerialized, offloaded or fetched has a number of
// its own, from Graph::value_capacity() on.
struct ExecutionOrder {
  static constexpr std::int32_t kNone = -1;  // a left out input or output

  std::vector<Execution> executions;  // views included
  std::vector<std::int32_t> operands;
  // By number less value_capacity(): the value of the graph that this one is a copy of.
  std::vector<ValueId> originals;

  std::span<const std::int32_t> inputs(const Execution& execution) const {
    return std::span(operands).subspan(execution.begin, execution.input_count);
  }
  std::span<const std::int32_t> outputs(const Execution& execution) const {
    return std::span(operands).subspan(execution.begin + execution.input_count,
                                       execution.output_count);
  }
};

// Every node of `order` once.
ExecutionOrder execution_order_of(const Graph& graph, std::span<const NodeId> order);

}  // namespace trainscope
