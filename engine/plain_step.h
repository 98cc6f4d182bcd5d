// The step without recomputation that plans of memory for time begin with, and what a slider over
// budgets finds for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compile.h"

namespace trainscope {

struct PlainStep {
  std::shared_ptr<const Compiled> compiled;
  LowerOptions lower = {};                // that every plan of it is lowered with
  std::vector<double> node_seconds = {};  // by NodeId, by the costs and the machine of the options
  double seconds = 0.0;                   // of all nodes

  const Program& program() const { return compiled->program; }
};
// Compiles the step as `options` have it, but for their recomputation. Throws what compile()
// throws.
PlainStep plain_step(const OnnxModel& model, CompileOptions options);

// A budget, and the plan that was found for it.
struct SweptBudget {
  std::int64_t budget_bytes = 0;
  TradePoint plan = {};
  double milliseconds = 0.0;  // that finding and placing it took
};
struct BudgetSweep {
  std::size_t front_plans = 0;
  double front_milliseconds = 0.0;
  std::vector<SweptBudget> budgets = {};  // rising

  double median_milliseconds() const;  // of a budget
  double most_milliseconds() const;
};
// What a slider does: plans for `count` budgets, 2 or more, evenly from the least arena of the
// front to that of its quickest plan, each from those before it. Of `wishes` the pins and the link
// count.
BudgetSweep sweep_budgets(const PlainStep& step, const RecomputeOptions& wishes,
                          std::int64_t count);

}  // namespace trainscope
