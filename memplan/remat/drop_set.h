// Plans in which each value runs again at most once: a frontier, and the values dropped before it.
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

 private:
  void list_runs(std::span<const std::int32_t> dropped);
  void run_missing(std::int32_t stage);

  const RematGraph& graph_;
  std::int32_t frontier_;
  std::vector<std::int32_t> runs_;     // nodes in the order in which they run
  std::vector<bool> available_;        // by node
  std::vector<std::int32_t> missing_;  // scratch of run_missing()
  // By position: until which position the value made there is needed.
  std::vector<std::int32_t> needed_until_;
  std::vector<std::int32_t> made_at_;  // by node, of its current value
  std::vector<std::int64_t> leaving_;  // by position: bytes that go after it
};

}  // namespace trainscope::memplan
