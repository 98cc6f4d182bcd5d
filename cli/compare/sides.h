// The sides of `compare`: one run each, or several of one command, their steps one behind the
// other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/bundle/plan_file.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/run_difference.h"
#include "profiler/analysis/step_times.h"

namespace trainscope {

// "A" or "A1,A2,A3": a folder may have commas in its name.
std::vector<std::string> folders_of(const std::string& words);
// Whether all of them are folders of runs; else they hold a trace alone.
bool are_runs(const std::string& words);

// What a side's plans and profiles say. Throws kUsage for several runs of other calls, or of which
// some have a profile and some have none, and what RunReader and Profile throw.
class Side {
 public:
  explicit Side(const std::string& words);

  profiler::RunSide nodes() const {
    return {.plan = plan_->view(), .times = times_ ? &*times_ : nullptr};
  }
  profiler::RunSide without_times() const { return {.plan = plan_->view()}; }
  bool is_profiled() const { return times_.has_value(); }
  // Throws kUsage, saying what is missing, for a side without a profile.
  profiler::Breakdown by(profiler::GroupBy group) const;

 private:
  void add(const std::string& folder);

  std::string first_;  // folder
  std::optional<StoredPlan> plan_;
  std::optional<profiler::StepTimes> times_;
};

}  // namespace trainscope
