// Tables of a profile that are not of its calls: threads, and steps.
#pragma once

#include <cstddef>
#include <string_view>

#include "cli/command.h"
#include "profiler/analysis/profile.h"
#include "profiler/analysis/range_times.h"
#include "profiler/analysis/step_times.h"

namespace trainscope {

// Whose moments the rows of a table divide: "the driving thread", or of a profile whose calls a
// device has, that.
std::string_view whose_time(bool is_of_device);

// What each thread was at, why others had nothing to do, and the critical path.
Outcome thread_table(const profiler::Profile& profile, const profiler::StepTimes& times);
// How long steps took, and why some took longer.
Outcome step_table(const profiler::Profile& profile, const profiler::StepTimes& times);
// Where the time of a range went: its longest rows alone, where `most` is not 0.
Outcome range_table(const profiler::RangeTimes& times, std::string_view by, std::size_t most);

}  // namespace trainscope
