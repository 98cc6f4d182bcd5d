// Recompute problems and plans as CSV files.
#pragma once

#include <string>
#include <string_view>

#include "memplan/remat/plan.h"
#include "memplan/remat/problem.h"

namespace trainscope::memplan {

struct ParsedRemat {
  RematProblem problem = {};
  std::string message = {};  // what is wrong and in which line; empty if nothing is
};

// A row for each node in execution order, `id,name,bytes,time,backward,inputs` with the inputs' ids
// between spaces; then any of the columns `workspace` (bytes), `rerun` (0: must run exactly once)
// and `layer`, as the header says.
[[nodiscard]] ParsedRemat parse_remat_csv(std::string_view text);
[[nodiscard]] std::string write_remat_csv(const RematProblem& problem);

struct ParsedRematPlan {
  RematPlan plan = {};
  std::string message = {};
};

// Rows `compute,ID` and `free,ID`, without a header.
[[nodiscard]] ParsedRematPlan parse_remat_plan_csv(const RematProblem& problem,
                                                   std::string_view text);
[[nodiscard]] std::string write_remat_plan_csv(const RematProblem& problem, const RematPlan& plan);

}  // namespace trainscope::memplan
