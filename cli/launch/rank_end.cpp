// By exit codes.
#include "cli/launch/rank_end.h"

#include "cli/exit_codes.h"
#include "engine/core/error.h"

namespace trainscope {
namespace {

bool has_code(const RankEnd& end, ErrorCode code) { return end.code == static_cast<int>(code); }

bool is_stop(const RankEnd& end) {
  return end.code == kExitInterrupted || end.code == kExitTerminated;
}

}  // namespace

// A rank that lost another one says kDistributed.
int weight(const RankEnd& end) {
  if (end.signal != 0) return 4;
  if (has_code(end, ErrorCode::kDistributed)) return 1;
  if (is_stop(end)) return 2;
  return end.code == 0 ? 0 : 3;
}

bool ends_others(const RankEnd& end) {
  if (end.signal != 0) return true;
  return end.code != 0 && !is_stop(end) && !has_code(end, ErrorCode::kNumeric);
}

}  // namespace trainscope
