// --ranks-fd: which process of several that train one model this one is.
#pragma once

#include <optional>

#include "cli/flags/settings.h"

namespace trainscope {

struct RankPlace {
  int rank = 0;        // from 0
  int ranks = 1;       // how many there are
  int descriptor = 0;  // of the memory that they share
};

// None where the flag is not given, or the verb has none. Throws kUsage for another text than
// R/N@FD.
std::optional<RankPlace> rank_place(const Settings& settings);
// Whether it is one of several, and not the first, which speaks for all.
bool is_other_rank(const Settings& settings);

}  // namespace trainscope
