// One loop over tiles of C for all GEMMs of a head.
#include "kernels/cpu/gemm/panel_gemm.h"

#include <algorithm>

namespace trainscope::cpu {
namespace {

// Bytes of a line of a block along k: with as many lines as a tile has, what the tiles beside each
// other all read stays in L1.
constexpr std::int64_t kBlockBytes = 2048;

// A range of steps of k, counted in packed elements.
struct Steps {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The steps of k that count for the rows [begin, end) of C.
template <typename T>
Steps steps_of(const PanelGemm<T>& gemm, std::int64_t begin, std::int64_t end) {
  switch (gemm.unseen) {
    case Unseen::kKeys:
      return {0, packed_steps<T>(std::min(gemm.k, gemm.first + end))};
    case Unseen::kQueries:
      return {std::max<std::int64_t>(0, begin - gemm.first) / kElementsPacked<T>,
              packed_steps<T>(gemm.k)};
    default:
      return {0, packed_steps<T>(gemm.k)};
  }
}

// Computes a tile of which C has place for rows x columns only, by way of memory aside; where there
// is an addend it is C.
template <typename T>
void run_aside(void (*run)(const TileOperands<T>&), TileOperands<T> operands, std::int64_t rows,
               std::int64_t columns) {
  constexpr std::int64_t kColumns = GemmTile<T>::kMostColumns;
  alignas(64) Computed<T> sums[GemmTile<T>::kMostRows * kColumns] = {};
  Computed<T>* c = operands.c;
  for (std::int64_t i = 0; operands.addend != nullptr && i < rows; ++i) {
    std::copy_n(c + i * operands.c_row, columns, sums + i * kColumns);
  }
  const std::int64_t c_row = operands.c_row;
  operands.c = sums;
  operands.c_row = kColumns;
  if (operands.addend != nullptr) operands.addend = sums;
  operands.addend_row = kColumns;
  run(operands);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(sums + i * kColumns, columns, c + i * c_row);
}

// A tile of whole rows, or, where fewer are left, the short one.
template <typename T>
struct Rows {
  std::int64_t count = 0;
  void (*run)(const TileOperands<T>&) = nullptr;
};

template <typename T>
Rows<T> rows_from(const PanelGemm<T>& gemm, const GemmTile<T>& tile, std::int64_t i) {
  const bool lines_together = gemm.a_line == 1;
  if (gemm.m - i >= tile.rows) {
    return {tile.rows, lines_together ? tile.lines_together : tile.steps_together};
  }
  return {tile.short_rows, lines_together ? tile.short_lines_together : tile.short_steps_together};
}

}  // namespace

template <typename T>
void multiply(const PanelGemm<T>& gemm, const PackedPanels<T>& b) {
  constexpr std::int64_t kDepth = kBlockBytes / static_cast<std::int64_t>(sizeof(Packed<T>));
  const GemmTile<T>& tile = tile_in_place<T>();
  const std::int64_t depth = packed_steps<T>(gemm.k);
  std::int64_t block = 0;
  do {  // once even for k = 0
    for (std::int64_t j = 0; j < gemm.n; j += tile.columns) {
      Rows<T> of;
      for (std::int64_t i = 0; i < gemm.m; i += of.count) {
        of = rows_from(gemm, tile, i);
        if (gemm.unseen == Unseen::kTiles && j >= gemm.first + i + of.count) continue;
        const Steps steps = steps_of(gemm, i, i + of.count);
        const std::int64_t begin = std::max(steps.begin, block);
        const std::int64_t end = std::max(begin, std::min(steps.end, block + kDepth));
        const bool adds = gemm.adds || block > 0;
        if (adds && begin == end) continue;
        Computed<T>* c = gemm.c + i * gemm.c_row + j;
        const TileOperands<T> operands{.depth = end - begin,
                                       .a = gemm.a + i * gemm.a_line + begin * gemm.a_step,
                                       .a_line = gemm.a_line,
                                       .a_step = gemm.a_step,
                                       .b = b.panel(j) + begin * tile.columns,
                                       .c = c,
                                       .c_row = gemm.c_row,
                                       .addend = adds ? c : nullptr,
                                       .addend_row = gemm.c_row,
                                       .alpha = gemm.alpha};
        const std::int64_t rows = std::min(of.count, gemm.m - i);
        const std::int64_t columns = std::min(tile.columns, gemm.n - j);
        if (rows == of.count && columns == tile.columns) {
          of.run(operands);
        } else {
          run_aside(of.run, operands, rows, columns);
        }
      }
    }
    block += kDepth;
  } while (block < depth);
}

template void multiply(const PanelGemm<float>&, const PackedPanels<float>&);
template void multiply(const PanelGemm<double>&, const PackedPanels<double>&);
template void multiply(const PanelGemm<BFloat16>&, const PackedPanels<BFloat16>&);

}  // namespace trainscope::cpu
