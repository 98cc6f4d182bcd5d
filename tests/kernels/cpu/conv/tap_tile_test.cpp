// Sums over pixels for some taps, with all instruction sets: right, and nothing else is written.
#include "kernels/cpu/conv/tap_tile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kExamples = 2;
constexpr std::int64_t kRows = 3;
constexpr std::int64_t kColumns = 5;
constexpr std::int64_t kTapAt[TapOperands::kMostTaps] = {0, 16, 3};  // in no order
constexpr std::int64_t kGap = 7;                                     // between rows of sums

struct Problem {
  const TapTile& tile;
  std::int64_t taps = 0;
  std::int64_t stride = 1;
  std::int64_t kept = 0;
  bool added = false;

  std::int64_t x_column() const { return stride * tile.lanes; }
  std::int64_t x_row() const { return kColumns * x_column() + 11; }
  std::int64_t x_example() const { return kRows * x_row() + 100; }
  std::int64_t sums_row() const { return taps * tile.lanes + kGap; }

  Host<float> dy = Host<float>::random({kExamples * kRows * kColumns * tile.rows}, 1);
  Host<float> x = Host<float>::random({kExamples * x_example()}, 2);
  std::vector<float> before = Host<float>::random({tile.rows * sums_row()}, 3).values;

  std::vector<float> by_tile() const {
    std::vector<float> sums = before;
    TapOperands operands{.examples = kExamples,
                         .rows = kRows,
                         .columns = kColumns,
                         .dy = dy.values.data(),
                         .x = x.values.data(),
                         .x_example = x_example(),
                         .x_row = x_row(),
                         .x_column = x_column(),
                         .sums = sums.data(),
                         .sums_row = sums_row(),
                         .kept = kept,
                         .added = added};
    std::copy_n(kTapAt, taps, operands.taps);
    tile.sums[taps - 1](operands);
    return sums;
  }

  double sum(std::int64_t line, std::int64_t lane_at) const {
    double total = 0.0;
    for (std::int64_t pixel = 0; pixel < kExamples * kRows * kColumns; ++pixel) {
      const std::int64_t example = pixel / (kRows * kColumns);
      const std::int64_t row = pixel / kColumns % kRows;
      const std::int64_t from =
          example * x_example() + row * x_row() + pixel % kColumns * x_column() + lane_at;
      total += static_cast<double>(dy.values[static_cast<std::size_t>(pixel * tile.rows + line)]) *
               static_cast<double>(x.values[static_cast<std::size_t>(from)]);
    }
    return total;
  }
  void check() const {
    const std::vector<float> sums = by_tile();
    double worst = 0.0;
    int written_beside = 0;
    for (std::int64_t at = 0; at < std::ssize(sums); ++at) {
      const std::int64_t line = at / sums_row();
      const std::int64_t i = at % sums_row();
      const float found = sums[static_cast<std::size_t>(at)];
      const float was = before[static_cast<std::size_t>(at)];
      if (line >= kept || i >= taps * tile.lanes) {
        written_beside += found == was ? 0 : 1;
        continue;
      }
      const double expected =
          sum(line, kTapAt[i / tile.lanes] + i % tile.lanes) + (added ? double{was} : 0.0);
      worst = std::max(worst, std::abs(double{found} - expected));
    }
    CHECK(worst < 1e-5);
    CHECK(written_beside == 0);
  }
};

TEST_CASE("tap tile: sums over pixels, only for the lines kept") {
  const TapTile narrow = tap_tile_avx2();
  for (const TapTile* tile : {&narrow, &tap_tile()}) {
    CAPTURE(tile->instructions);
    for (std::int64_t taps = 1; taps <= TapOperands::kMostTaps; ++taps) {
      for (std::int64_t kept : {tile->rows, std::int64_t{1}}) {
        for (bool added : {false, true}) {
          const Problem problem{
              .tile = *tile, .taps = taps, .stride = 1 + kept % 2, .kept = kept, .added = added};
          problem.check();
        }
      }
    }
  }
}

}  // namespace
}  // namespace trainscope::cpu
