// Pieces (pieces.h) in a row as the stages of a pipeline, which take as long as each other.
#pragma once

#include <cstdint>
#include <vector>

namespace trainscope {

struct PieceCosts {
  std::vector<double> seconds;          // of each piece
  std::vector<double> message_seconds;  // of what comes over each cut, either way: one fewer
  std::vector<bool> with_parameters;    // a stage needs a piece that has some
};

// The stage of each piece. A stage costs its pieces and the messages at both its ends. The slowest
// is as quick as can be; of such cuts the one with the least sum of squares; of those equal the
// first stages are short, since they hold the most micro-batches. Needs as many pieces with
// parameters as stages.
std::vector<int> balanced_stages(const PieceCosts& costs, std::int64_t stages);

}  // namespace trainscope
