// The answer to a placement problem, and the one function that finds it.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "memplan/problem.h"

namespace trainscope::memplan {

// Invariants, checked by validate(): one offset per buffer, no two buffers that are alive at one
// time share bytes, every buffer ends at or below height_bytes, lower_bound_bytes <= height_bytes.
struct Solution {
  std::vector<std::int64_t> offsets = {};  // bytes, in the order of Problem::buffers
  std::int64_t height_bytes = 0;
  // No placement is lower: the live bytes, or more where the exact search has been through
  // everything below.
  std::int64_t lower_bound_bytes = 0;
  bool proven = true;  // height == lower bound: no placement of this problem is lower
  std::string_view method = "stack";  // the placer, or "exact", that decided the height
  std::chrono::nanoseconds elapsed = {};
};

// How hard the search tries once the prompt placers have run.
enum class Patience {
  kGlance,      // the prompt placers, until one is within 0.5 % of the bound: for one of many
  kWorthwhile,  // as hard as what can still be won is worth: for a plan that somebody waits for
  kUnlimited,   // until nothing is left to win, or the effort or the time is used up
};

// Without a time limit the answer depends on the problem alone, never on `threads` or the machine.
struct Options {
  double seconds = std::numeric_limits<double>::infinity();  // the first placer always finishes
  int threads = 1;
  // "all": the placers, then the exact search of what they leave above the bound. "exact": that
  // search after the first placer. Or one name of placer_names(), alone.
  std::string_view method = "all";
  // With "all": the prompt placer that goes first, since it served a similar problem; empty: as
  // they are listed.
  std::string_view first = {};
  Patience patience = Patience::kWorthwhile;
  // What the exact search may spend at most, in boxes looked at; about a third of a second.
  std::uint64_t most_visits = 16'000'000;
  // Asked to stop, the search ends within some milliseconds with what it has, as at the time limit.
  std::stop_token stop = {};
};

enum class Status {
  kPlaced,        // `solution` is valid, and within the capacity if there is one
  kOverCapacity,  // `solution` is the lowest placement found, still above the capacity
  kBadProblem,    // no solution; `message` says what is wrong
};

struct Result {
  Status status = Status::kBadProblem;
  Solution solution = {};
  std::string message = {};  // empty when placed
};

// Minimises the height until it meets the lower bound (or the capacity), the methods are used up
// or the time is.
[[nodiscard]] Result solve(const Problem& problem, const Options& options = {});

// The result that a placement is: placed, or over the capacity and why.
[[nodiscard]] Result judge(std::optional<std::int64_t> capacity_bytes, Solution solution);

// The methods of placers.def: those that "all" tries, in this order, then the baselines.
[[nodiscard]] std::span<const std::string_view> placer_names();

}  // namespace trainscope::memplan
