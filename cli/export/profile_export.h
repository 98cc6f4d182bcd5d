// export --format of what a run's plan and profile are written as for other tools.
#pragma once

#include <string>

#include "cli/flags/invocation.h"
#include "cli/source.h"
#include "profiler/formats/formats.h"

namespace trainscope {

// Throws kUsage for what is no run, and for a run without what the format needs.
void export_profile(const Source& source, const Invocation& invocation,
                    const profiler::ProfileFormat& format, const std::string& out);

}  // namespace trainscope
