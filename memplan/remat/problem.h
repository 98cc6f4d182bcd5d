// A recompute problem: the nodes of a training step in execution order, each making one value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainscope::memplan {

// Running a node needs the values of all its inputs in memory, and makes its own value.
// Parameters, state and data are no nodes: they stay in memory anyway.
struct RematNode {
  std::int64_t id = 0;    // what files and messages call it
  std::string name = {};  // only for messages
  std::int64_t bytes = 0;
  std::int64_t time = 0;  // any unit, the same for all nodes
  bool backward = false;
  bool may_rerun = true;  // false: runs exactly once (collectives)
  // In memory only while the node runs. Below 0, for bounds alone: results that take the place of
  // inputs.
  std::int64_t workspace_bytes = 0;
  std::int32_t layer = -1;  // -1: of no layer
  // Earlier nodes by their index in RematProblem::nodes (not by id); none twice.
  std::vector<std::int32_t> inputs = {};
};

// The order of `nodes` is the order of their first executions.
struct RematProblem {
  std::vector<RematNode> nodes = {};
};

// What makes `problem` meaningless (an input that is not earlier, a negative size, sums beyond what
// can be added, ...), or nothing. Everything below needs it clean.
[[nodiscard]] std::optional<std::string> find_remat_error(const RematProblem& problem);

// The time of running every node once.
[[nodiscard]] std::int64_t base_time(const RematProblem& problem);

// "node 12 ('conv1')" for messages, with the file's id.
[[nodiscard]] std::string describe_node(const RematProblem& problem, std::int32_t node);

}  // namespace trainscope::memplan
