// The order of a step's nodes, chosen for memory: what is alive at once decides the arena.
#pragma once

#include <optional>

#include "engine/ir/graph.h"
#include "engine/plan/lower.h"
#include "engine/plan/program.h"
#include "memplan/order/problem.h"

namespace trainscope {

enum class OpOrder : std::uint8_t {
  kGiven,   // as the passes leave it
  kMemory,  // another one within each phase where that lowers the arena
};

// The graph of the program in an order with a lower placed arena, if one is found. Every node does
// what it did, so every bit stays the same; phases stay in sequence.
std::optional<Graph> ordered_for_memory(const Program& program, const LowerOptions& options);

// The calls of a program as ops, in their order; values that share bytes through views are
// one value. Bytes are those of the buffers, without parameters, states and constants.
memplan::OrderProblem order_problem(const Program& program, const LowerOptions& options);

}  // namespace trainscope
