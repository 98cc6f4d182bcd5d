// The recompute planner: the least time within a budget of bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "memplan/remat/plan.h"
#include "memplan/remat/problem.h"

namespace trainscope::memplan {

// Without a time limit the answer depends on the problem alone.
struct RematOptions {
  std::int64_t budget_bytes = 0;
  double seconds = std::numeric_limits<double>::infinity();
  // Small problems are first tried by search over every state; 0: never.
  std::size_t most_exact_states = 100'000;
};

enum class RematStatus {
  kPlanned,     // `plan` keeps the budget
  kInfeasible,  // no plan keeps the budget: `message` names the node and the least budget for it
  kNotFound,    // none was found, and none was proven to be impossible
  kBadProblem,  // `message` says what is wrong
};

struct RematResult {
  RematStatus status = RematStatus::kBadProblem;
  RematPlan plan = {};
  std::int64_t peak_bytes = 0;
  std::int64_t time = 0;
  std::int64_t base_time = 0;         // without recompute
  std::int64_t save_all_bytes = 0;    // the peak without recompute
  std::int64_t lower_bound_time = 0;  // no plan within the budget takes less
  std::int64_t least_bytes = 0;       // no plan needs less; because of this node
  std::int32_t least_node = 0;
  std::int64_t workable_bytes = 0;  // a plan was found that needs this
  bool proven = false;              // time == lower bound
  std::string message = {};         // empty when planned
  std::chrono::nanoseconds elapsed = {};
};

[[nodiscard]] RematResult plan_remat(const RematProblem& problem, const RematOptions& options);

}  // namespace trainscope::memplan
