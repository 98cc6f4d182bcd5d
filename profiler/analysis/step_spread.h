// How long the profiled steps took, one by one, and why some took longer than others: by what the
// system and the calls' own times tell of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/analysis/comparison.h"
#include "profiler/analysis/step_times.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

// A step beyond the others.
struct OutlierStep {
  std::uint32_t step = 0;  // its number
  std::int64_t ns = 0;
  std::vector<std::string> causes = {};  // "others took the processor 12 times, usually 0"
};

struct StepSpread {
  Spread spread = {};  // nanoseconds
  std::int64_t least_ns = 0;
  std::int64_t most_ns = 0;
  std::vector<std::int64_t> deciles_ns =
      {};                                  // 10 %, 20 %, ..., 90 % of the steps take at most this
  std::vector<OutlierStep> outliers = {};  // in their order
};

// Beyond the median by so many median absolute deviations (as normal steps have one in a hundred
// thousand), and by a twentieth at least.
inline constexpr double kOutlierDeviations = 6.5;
inline constexpr double kOutlierShare = 0.05;

StepSpread step_spread(const EventView& events, const PlanView& plan, const StepTimes& times);

}  // namespace trainscope::profiler
