// How rows are divided over blocks: a warp for a short row, a block for a long one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/support/block_sums.h"
#include "kernels/cuda/support/launch.h"

namespace trainscope::cuda {

inline constexpr std::int64_t kMostBlocks = 0x7FFFFFFF;  // of one launch
inline constexpr std::int64_t kTeamThreads = 256;        // of a block

// Blocks for work that a loop over the whole grid does, however few there are.
inline dim3 team_blocks(std::int64_t items, std::int64_t items_of_block) {
  const std::int64_t blocks = (items + items_of_block - 1) / items_of_block;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 0, kMostBlocks)));
}

// Elements of a row from which on a block computes it.
inline constexpr std::int64_t kBlockWidth = 1024;

// Calls run(team, grid) with the team that computes a row of `width` elements: kernels loop over
// rows from Team::first() in steps of Team::teams().
template <class Run>
void with_team(std::int64_t rows, std::int64_t width, Run run) {
  if (width >= kBlockWidth) {
    run(BlockTeam{}, Grid{.blocks = team_blocks(rows, 1), .threads = dim3(kTeamThreads)});
  } else {
    run(WarpTeam{},
        Grid{.blocks = team_blocks(rows, kTeamThreads / kWarp), .threads = dim3(kTeamThreads)});
  }
}

}  // namespace trainscope::cuda
