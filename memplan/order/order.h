// Finds an order of ops with fewer bytes alive at its peak.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "memplan/order/problem.h"

namespace trainscope::memplan {

struct OrderOptions {
  // What the search may spend, in ops looked at; 0: by the size of the problem.
  std::int64_t most_looks = 0;
  // Asked to stop, the search ends within some milliseconds with the best order so far.
  std::stop_token stop = {};
};

// The answer depends on the problem alone.
struct OrderResult {
  std::vector<std::int32_t> order = {};  // the given one unless another has a lower peak
  std::int64_t given_peak_bytes = 0;
  std::int64_t peak_bytes = 0;
  bool proven = false;       // no order has a lower peak
  std::string message = {};  // what is wrong with the problem; nothing else holds then
};

[[nodiscard]] OrderResult improve_order(const OrderProblem& problem,
                                        const OrderOptions& options = {});

}  // namespace trainscope::memplan
