// A measured machine as a table for people.
#pragma once

#include <string>

#include "engine/machine/machine.h"

namespace trainscope {

// A row each of the caches and memory, of the dtypes, of calls and forks.
std::string machine_table(const Machine& machine);

}  // namespace trainscope
