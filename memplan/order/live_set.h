// What is alive while ops run one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memplan/order/problem.h"

namespace trainscope::memplan {

// A problem with what follows from it. Keeps a reference to the problem.
struct OrderGraph {
  explicit OrderGraph(const OrderProblem& problem);

  const OrderOp& op(std::int32_t index) const {
    return problem.ops[static_cast<std::size_t>(index)];
  }

  const OrderProblem& problem;
  std::vector<std::vector<std::int32_t>> successors;    // by op: ops that must run after it
  std::vector<std::vector<std::int32_t>> predecessors;  // by op: ops that must run before it
  std::vector<std::int32_t> readers;                    // by value: how many ops read it
  std::int64_t start_bytes = 0;                         // alive before the first op
};

// What the op makes in the bytes of values that die with it. Each value takes part in one pair at
// most: the first that works.
template <typename Dies>
std::int64_t taken_over_bytes(const OrderProblem& problem, const OrderOp& op, const Dies& dies) {
  constexpr std::size_t kMostPairs = 64;
  std::int64_t bytes = 0;
  std::uint64_t used = 0;  // a bit for each pair
  for (std::size_t i = 0; i < std::min(op.in_place.size(), kMostPairs); ++i) {
    const OrderInPlace& pair = op.in_place[i];
    bool free = dies(pair.read);
    for (std::size_t k = 0; k < i && free; ++k) {
      const OrderInPlace& other = op.in_place[k];
      free = (used >> k & 1) == 0 || (other.read != pair.read && other.made != pair.made);
    }
    if (!free) continue;
    used |= std::uint64_t{1} << i;
    bytes += problem.values[static_cast<std::size_t>(pair.made)].bytes;
  }
  return bytes;
}

class LiveSet {
 public:
  explicit LiveSet(const OrderGraph& graph);

  struct Effect {
    std::int64_t during_bytes = 0;  // alive while the op runs, its workspace included
    std::int64_t after_bytes = 0;   // alive when it has run
  };
  // Of an op that could run now.
  Effect effect_of(std::int32_t op) const;

  bool is_ready(std::int32_t op) const { return waits_[static_cast<std::size_t>(op)] == 0; }
  void run(std::int32_t op);

  std::int64_t bytes() const { return bytes_; }  // alive between two ops

 private:
  bool dies(std::int32_t value) const;

  const OrderGraph* graph_;
  std::vector<std::int32_t> waits_;         // by op: predecessors that have not run
  std::vector<std::int32_t> readers_left_;  // by value
  std::int64_t bytes_ = 0;
};

}  // namespace trainscope::memplan
