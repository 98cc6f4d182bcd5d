// The options of a run as its record keeps them, and in which forms it keeps its metrics.
#pragma once

#include <string>
#include <string_view>

#include "cli/flags/invocation.h"
#include "cli/flags/sizes.h"
#include "engine/bundle/writer.h"
#include "engine/compile.h"

namespace trainscope {

// The options of a run with their resolved values.
Json resolved_options(const Invocation& invocation, const CompileOptions& compile,
                      const Sizes& sizes);
// Whether a run's record keeps the option: it says what to train, not how to talk or of which
// session.
bool is_recorded(std::string_view flag);
// The same as config.toml.
std::string config_toml(const Json& options);

// --metrics. Throws kUsage for a form that there is not.
MetricsForms metrics_forms(const Settings& settings);

}  // namespace trainscope
