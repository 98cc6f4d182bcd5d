// An order with what is alive when, and windows of it as problems of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/order/live_set.h"
#include "memplan/order/problem.h"

namespace trainscope::memplan {

// The ops in a window of an order, everything around it fixed.
struct Subproblem {
  OrderProblem problem;         // its op i is the one at position begin + i
  std::int64_t base_bytes = 0;  // alive all the time, and not of the problem's values
};

class Timeline {
 public:
  Timeline(const OrderGraph& graph, std::vector<std::int32_t> order);

  const std::vector<std::int32_t>& order() const { return order_; }
  std::int64_t during_bytes(std::size_t at) const { return during_[at]; }
  std::size_t peak_position() const;  // the first one
  std::int64_t peak_bytes() const { return order_.empty() ? 0 : during_[peak_position()]; }

  // Of positions [begin, end) in one phase.
  Subproblem cut(std::size_t begin, std::size_t end) const;
  // Its ops in another order: `local` as the subproblem numbers them.
  void replace(std::size_t begin, const std::vector<std::int32_t>& local);

  // No order has fewer bytes alive than these while the op at the position runs: what was made by
  // ops that must come before it, for it or for ops that must come after it.
  std::int64_t certain_bytes(std::size_t at) const;

 private:
  void measure();
  std::vector<bool> reachable(std::int32_t op,
                              const std::vector<std::vector<std::int32_t>>& edges) const;

  const OrderGraph& graph_;
  std::vector<std::int32_t> order_;
  std::vector<std::int64_t> before_;    // by position: alive before the op
  std::vector<std::int64_t> during_;    // by position: alive while it runs
  std::vector<std::int64_t> born_;      // by value: position of the op that makes it, or -1
  std::vector<std::int64_t> last_use_;  // by value: position; -1: none; the op count if it is kept
};

}  // namespace trainscope::memplan
