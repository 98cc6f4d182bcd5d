// Plans in which each value is recomputed at most once: a frontier, and the values dropped before
// it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memplan/remat/graph.h"

namespace trainscope::memplan {

struct DropCost {
  std::int64_t peak_bytes = 0;
  double time = 0;
};

// Prices drop sets one after the other, in time linear in what they run.
class DropSimulator {
 public:
  // See hold_with_reruns() for what is meant.
  DropSimulator(const RematGraph& graph, std::int32_t frontier);

  DropCost run(std::span<const std::int32_t> dropped);
  // Whether the value that the node made up to the frontier was in memory at the peak of the last
  // call of run().
  bool was_at_peak(std::int32_t node) const {
    const std::int32_t until = values_[static_cast<std::size_t>(node)].needed_until;
    return node <= peak_position_ && peak_position_ <= until;
  }

 private:
  struct Value {
    std::int64_t bytes = 0;
    std::int32_t needed_until = 0;  // position of the last execution that reads it, or of its own
  };

  void run_missing(std::int32_t stage);
  void run_later(std::int32_t node);
  std::int64_t peak_bytes();

  const RematGraph& graph_;
  std::int32_t frontier_;
  double forward_time_ = 0;
  double time_ = 0;
  std::int32_t peak_position_ = 0;
  // A position is a place among all executions in order; the first ones are the nodes up to the
  // frontier.
  std::vector<Value> forward_;                  // as far as the nodes up to the frontier read them
  std::vector<Value> values_;                   // by position: what is made there
  std::vector<std::int32_t> later_executions_;  // nodes, after the frontier
  std::vector<std::int64_t> leaving_;           // by position: bytes that go after it
  std::vector<std::int32_t> made_at_;           // by node: position of its current value
  std::vector<std::uint8_t> available_;         // by node; all of them between two calls of run()
  std::vector<std::int32_t> missing_;           // scratch of run_missing()
};

}  // namespace trainscope::memplan
