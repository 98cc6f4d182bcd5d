// A rematerialization plan: what is computed and what is freed, in order; and what it costs when
// replayed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memplan/remat/problem.h"

namespace trainscope::memplan {

enum class RematActionKind : std::uint8_t { kCompute, kFree };

// Computes or frees the value of a node.
struct RematAction {
  RematActionKind kind = RematActionKind::kCompute;
  std::int32_t node = 0;  // index in RematProblem::nodes

  friend bool operator==(const RematAction&, const RematAction&) = default;
};

struct RematPlan {
  std::vector<RematAction> actions = {};

  friend bool operator==(const RematPlan&, const RematPlan&) = default;
};

struct RematReplay {
  std::int64_t peak_bytes = 0;
  std::int64_t time = 0;
  std::int64_t peak_action = 0;  // index in RematPlan::actions of the first one with the peak
  std::int64_t reruns = 0;       // computes beyond the first of each node
  std::string message = {};      // the first action that cannot be done, and why; empty if all can
};

// Replays a plan against its problem; shares no code with the planner. A plan is valid if every
// node runs, with its inputs in memory and its own value not, once only where it may not rerun, and
// only what is in memory is freed. Values still in memory at the end are no fault.
[[nodiscard]] RematReplay simulate(const RematProblem& problem, const RematPlan& plan);

// Every node once, every value freed after its last use.
[[nodiscard]] RematPlan save_all_plan(const RematProblem& problem);

}  // namespace trainscope::memplan
