// Sums over runs of lines of lanes: the truth, and the same bits with all instruction sets.
#include "kernels/cpu/conv/lane_tile.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kRuns = 3;
constexpr std::int64_t kSteps = 5;
constexpr std::int64_t kLineRun = 7 * kTileLanes;

struct Problem {
  std::int64_t sums = 0;
  Host<float> lines = Host<float>::random({kRuns * kLineRun}, 1);
  Host<float> factors = Host<float>::random({kRuns * kSteps * sums}, 2);

  std::vector<float> by(const LaneTile& tile) const {
    std::vector<float> to(static_cast<std::size_t>(sums * kTileLanes), -1.0F);
    tile.sums[sums - 1]({.runs = kRuns,
                         .steps = kSteps,
                         .factors = factors.values.data(),
                         .factor_run = kSteps * sums,
                         .lines = lines.values.data(),
                         .line_run = kLineRun,
                         .to = to.data(),
                         .to_row = kTileLanes});
    return to;
  }
  std::vector<double> exact() const {
    std::vector<double> to(static_cast<std::size_t>(sums * kTileLanes));
    for (std::int64_t i = 0; i < sums * kTileLanes; ++i) {
      for (std::int64_t step = 0; step < kRuns * kSteps; ++step) {
        const std::int64_t line = step / kSteps * kLineRun + step % kSteps * kTileLanes;
        to[static_cast<std::size_t>(i)] +=
            static_cast<double>(
                factors.values[static_cast<std::size_t>(step * sums + i / kTileLanes)]) *
            static_cast<double>(lines.values[static_cast<std::size_t>(line + i % kTileLanes)]);
      }
    }
    return to;
  }
};

TEST_CASE("lane tile: sums are right, with all instruction sets the same bits") {
  for (std::int64_t sums = 1; sums <= LaneTile::kMostSums; ++sums) {
    CAPTURE(sums);
    const Problem problem{.sums = sums};
    CHECK(relative_error(problem.by(lane_tile_avx2()), problem.exact()) < 1e-6);
    CHECK(problem.by(lane_tile()) == problem.by(lane_tile_avx2()));
  }
}

}  // namespace
}  // namespace trainscope::cpu
