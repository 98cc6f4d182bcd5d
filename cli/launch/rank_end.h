// How a rank ended, and what follows from it.
#pragma once

namespace trainscope {

struct RankEnd {
  int rank = 0;
  int code = 0;    // its exit code, where no signal ended it
  int signal = 0;  // 0: none
};

// Of two ends the one that weighs more is what the other one follows from. 0: it ended well.
int weight(const RankEnd& end);

// Whether ranks that are busy elsewhere are to end because of it. Of a stop, and of a loss that is
// no number, all ranks hear through their channel in the same step: one that then saves, or looks
// for the call that made the number, takes as long as that takes.
bool ends_others(const RankEnd& end);

}  // namespace trainscope
