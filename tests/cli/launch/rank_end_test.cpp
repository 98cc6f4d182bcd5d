// What follows from a rank's end.
#include "cli/launch/rank_end.h"

#include <doctest/doctest.h>

#include "cli/exit_codes.h"
#include "engine/core/error.h"

namespace trainscope::test {
namespace {

RankEnd with_code(int code) { return {.rank = 1, .code = code}; }
RankEnd with_code(ErrorCode code) { return with_code(static_cast<int>(code)); }

}  // namespace

TEST_CASE("launch: a stop and a bad loss, of which all ranks know, end no rank that is busy") {
  CHECK(!ends_others(with_code(0)));
  CHECK(!ends_others(with_code(kExitInterrupted)));
  CHECK(!ends_others(with_code(kExitTerminated)));
  CHECK(!ends_others(with_code(ErrorCode::kNumeric)));
  CHECK(ends_others(with_code(ErrorCode::kIo)));
  CHECK(ends_others(with_code(ErrorCode::kDistributed)));
  CHECK(ends_others({.rank = 1, .signal = 9}));
}

TEST_CASE(
    "launch: a signal, then an error of a rank's own, then a stop, then the loss of another") {
  const int order[] = {weight(with_code(0)), weight(with_code(ErrorCode::kDistributed)),
                       weight(with_code(kExitInterrupted)), weight(with_code(ErrorCode::kIo)),
                       weight({.rank = 1, .signal = 9})};
  CHECK(order[0] == 0);
  for (int i = 1; i < 5; ++i) CHECK(order[i] > order[i - 1]);
}

}  // namespace trainscope::test
