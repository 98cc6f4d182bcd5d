// Dot products of lines: the truth, and the same bits with all instruction sets.
#include "kernels/cpu/gemm/dot_tile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kSegments = 3;
constexpr std::int64_t kSteps = 5;
constexpr std::int64_t kSegment = kSteps * kDotLanes;
constexpr std::int64_t kLine = kSegments * kSegment;
constexpr std::int64_t kRows = 7;
constexpr std::int64_t kColumns = 9;

// to[i, j] of lines A [kRows, kLine] and B [kColumns, kLine], one after the other.
std::vector<float> sums_by(const DotTile& tile) {
  const Host<float> a = Host<float>::random({kRows, kLine}, 1);
  const Host<float> b = Host<float>::random({kColumns, kLine}, 2);
  std::vector<float> to(kRows * kColumns, -1.0F);
  for (std::int64_t i = 0; i < kRows; i += tile.rows) {
    for (std::int64_t j = 0; j < kColumns; j += tile.columns) {
      const std::int64_t rows = std::min<std::int64_t>(tile.rows, kRows - i);
      const std::int64_t columns = std::min<std::int64_t>(tile.columns, kColumns - j);
      std::vector<const float*> lines;
      for (std::int64_t c = j; c < j + columns; ++c) lines.push_back(b.values.data() + c * kLine);
      tile.sums[rows - 1][columns - 1]({.segments = kSegments,
                                        .steps = kSteps,
                                        .a = a.values.data() + i * kLine,
                                        .a_line = kLine,
                                        .a_segment = kSegment,
                                        .b = lines.data(),
                                        .b_segment = kSegment,
                                        .to = to.data() + i * kColumns + j,
                                        .to_row = kColumns});
    }
  }
  return to;
}

std::vector<double> true_sums() {
  const Host<float> a = Host<float>::random({kRows, kLine}, 1);
  const Host<float> b = Host<float>::random({kColumns, kLine}, 2);
  std::vector<double> to;
  for (std::int64_t pair = 0; pair < kRows * kColumns; ++pair) {
    double sum = 0.0;
    for (std::int64_t k = 0; k < kLine; ++k) {
      sum += static_cast<double>(a.values[static_cast<std::size_t>(pair / kColumns * kLine + k)]) *
             static_cast<double>(b.values[static_cast<std::size_t>(pair % kColumns * kLine + k)]);
    }
    to.push_back(sum);
  }
  return to;
}

TEST_CASE("dot tile: sums are right in tiles of all sizes") {
  CHECK(relative_error(sums_by(dot_tile_avx2()), true_sums()) < 1e-6);
}

TEST_CASE("dot tile: all instruction sets give the same bits") {
  CHECK(sums_by(dot_tile()) == sums_by(dot_tile_avx2()));
}

}  // namespace
}  // namespace trainscope::cpu
