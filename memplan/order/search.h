// Ways to order the ops of a problem that is one phase. All keep to the given order where nothing
// is gained, and answer by the problem alone.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "memplan/order/live_set.h"

namespace trainscope::memplan {

// Counts down what a search may spend, in ops looked at.
struct OrderEffort {
  std::int64_t left = 0;
  std::stop_token stop = {};  // asked to stop, there is nothing left to spend

  bool spend(std::int64_t looks) { return (left -= looks) > 0 && !stop.stop_requested(); }
};

// List schedules by several priorities: bytes freed less bytes made, the least peak, the given
// order with ops that cost nothing as early and ops that only make something as late as can be.
std::vector<std::vector<std::int32_t>> list_schedules(const OrderGraph& graph, OrderEffort& effort);

inline constexpr std::size_t kMostExactOps = 64;
struct ExactOrder {
  std::vector<std::int32_t> order;  // of the lowest peak, if that is below the limit; else empty
  bool complete = false;            // false: there may be a lower one
};
// Searches the sets of ops that can have run, up to kMostExactOps of them.
ExactOrder exact_order(const OrderGraph& graph, std::int64_t below_bytes, OrderEffort& effort);

// Beam search by peak, then by bytes alive: an order whose peak is below the limit, if it finds
// one.
std::optional<std::vector<std::int32_t>> beam_order(const OrderGraph& graph,
                                                    std::int64_t below_bytes, OrderEffort& effort);

}  // namespace trainscope::memplan
