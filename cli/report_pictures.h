// What the window shows of a run, as pictures for its report.
#pragma once

#include <filesystem>

#include "profiler/report/report.h"

namespace trainscope {

// Of the timeline, the memory, the graph and, of a run that was planned with a measured machine,
// the roofline; by the window's program, in a process of its own. Where it is not there, or one of
// the pictures cannot be made, the report says so in a line.
void add_pictures(profiler::ReportInput& input, const std::filesystem::path& run);

}  // namespace trainscope
