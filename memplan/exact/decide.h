// Races the exact search in several orders for one height.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "memplan/exact/model.h"

namespace trainscope::memplan {

struct Effort {
  std::uint64_t visits = 0;  // boxes looked at, all orders together; the same on any machine
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  int threads = 1;

  [[nodiscard]] bool expired() const {
    return deadline != std::chrono::steady_clock::time_point::max() &&
           std::chrono::steady_clock::now() >= deadline;
  }
};

enum class Verdict { kFits, kImpossible, kUnknown };

struct Decision {
  Verdict verdict = Verdict::kUnknown;
  std::vector<Units> offsets = {};  // one per box of the model, if it fits
  Units next_height = 0;            // no layout is lower, if it is impossible
  std::uint64_t visits = 0;         // spent
};

// Orders of preference: for each, the rank of every box.
using Ranks = std::vector<std::vector<std::int32_t>>;
[[nodiscard]] Ranks make_ranks(const Task& task, const SearchModel& model);

// Without a deadline the decision does not depend on `effort.threads`: the orders advance in
// rounds of equal effort, and of those that decide in one round the first in the list counts.
[[nodiscard]] Decision decide(const SearchModel& model, const Ranks& ranks, Units height,
                              const Effort& effort);

}  // namespace trainscope::memplan
