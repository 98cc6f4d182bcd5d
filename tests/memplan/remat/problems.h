// Seeded recompute problems for the tests, and the optimum of tiny ones.
#pragma once

#include <cstdint>
#include <optional>

#include "memplan/remat/problem.h"

namespace trainscope::memplan::testing {

// The training step of a chain: node i reads node i-1; its gradient reads the next gradient and
// the values of nodes i-1 and i. 2 * length + 1 nodes, random bytes and times.
RematProblem chain_step(int length, std::uint64_t seed);

struct RandomGraphShape {
  int nodes = 10;
  int most_inputs = 3;
  int reach = 6;        // inputs are at most so many nodes back, mostly
  bool banned = false;  // some nodes must run once only
  bool workspace = false;
};

// A random graph in which most values are read again late, without backward nodes.
RematProblem random_graph(std::uint64_t seed, const RandomGraphShape& shape);

// A random graph and the gradients of its nodes, each of which reads the gradients of the node's
// readers, the node's value and its inputs. About twice as many nodes as the shape says.
RematProblem training_step(std::uint64_t seed, const RandomGraphShape& shape);

// The training step of a transformer of identical layers, about 35 values a layer. Activations in
// two bytes an element, times from a model of a device (compute and memory roof).
struct TransformerShape {
  std::int64_t layers = 24;
  std::int64_t batch = 8;
  std::int64_t sequence = 1024;
  std::int64_t width = 1024;
  std::int64_t heads = 16;
};
RematProblem transformer_step(const TransformerShape& shape);

// The least time within the budget over all orders of computing and freeing whose first executions
// keep the problem's order, by search over every state; nothing if none keeps the budget. For up to
// some 17 nodes.
std::optional<std::int64_t> optimal_time(const RematProblem& problem, std::int64_t budget_bytes);

}  // namespace trainscope::memplan::testing
