// compare's section on times: two profiles beside each other, row by row.
#pragma once

#include <string_view>

#include "cli/command.h"
#include "cli/compare/sides.h"
#include "cli/flags/settings.h"

namespace trainscope {

// By ONNX node rows also have what the plans say; of runs without a profile they have that alone.
// With --fail-if-slower exit code 9 where B is slower; `slower` is then in the facts.
Outcome compare_times(const Side& a, const Side& b, const Settings& settings);

// The line for what --fail-if-slower found; empty where it was not asked for.
std::string_view slower_line(const Outcome& times);

}  // namespace trainscope
