// One loop over tiles of C for all products of a head.
#include "kernels/cpu/gemm/panel_product.h"

#include <algorithm>

namespace trainscope::cpu {
namespace {

// Bytes of a line of a block along k: with as many lines as a tile has, what a tile reads again for
// the tiles beside it stays in L1.
constexpr std::int64_t kBlockBytes = 2048;

// Steps of k, packed elements.
struct Steps {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Those that count for the rows [begin, end) of C.
template <typename T>
Steps steps_of(const PanelProduct<T>& product, std::int64_t begin, std::int64_t end) {
  switch (product.unseen) {
    case Unseen::kKeys:
      return {0, packed_steps<T>(std::min(product.k, product.first + end))};
    case Unseen::kQueries:
      return {std::max<std::int64_t>(0, begin - product.first) / kElementsPacked<T>,
              packed_steps<T>(product.k)};
    default:
      return {0, packed_steps<T>(product.k)};
  }
}

// A tile, with sums of C that are its operands' addend; C has place for rows x columns of it.
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

}  // namespace

template <typename T>
void multiply(const PanelProduct<T>& product, const PackedPanels<T>& b) {
  constexpr std::int64_t kDepth = kBlockBytes / static_cast<std::int64_t>(sizeof(Packed<T>));
  const GemmTile<T>& tile = tile_in_place<T>();
  const auto run = product.a_line == 1 ? tile.lines_together : tile.steps_together;
  const std::int64_t depth = packed_steps<T>(product.k);
  std::int64_t block = 0;
  do {  // once even for k = 0
    for (std::int64_t j = 0; j < product.n; j += tile.columns) {
      for (std::int64_t i = 0; i < product.m; i += tile.rows) {
        if (product.unseen == Unseen::kTiles && j >= product.first + i + tile.rows) continue;
        const Steps steps = steps_of(product, i, i + tile.rows);
        const std::int64_t begin = std::max(steps.begin, block);
        const std::int64_t end = std::max(begin, std::min(steps.end, block + kDepth));
        const bool adds = product.adds || block > 0;
        if (adds && begin == end) continue;
        Computed<T>* c = product.c + i * product.c_row + j;
        const TileOperands<T> operands{.depth = end - begin,
                                       .a = product.a + i * product.a_line + begin * product.a_step,
                                       .a_line = product.a_line,
                                       .a_step = product.a_step,
                                       .b = b.panel(j) + begin * tile.columns,
                                       .c = c,
                                       .c_row = product.c_row,
                                       .addend = adds ? c : nullptr,
                                       .addend_row = product.c_row,
                                       .alpha = product.alpha};
        const std::int64_t rows = std::min(tile.rows, product.m - i);
        const std::int64_t columns = std::min(tile.columns, product.n - j);
        if (rows == tile.rows && columns == tile.columns) {
          run(operands);
        } else {
          run_aside(run, operands, rows, columns);
        }
      }
    }
    block += kDepth;
  } while (block < depth);
}

template void multiply(const PanelProduct<float>&, const PackedPanels<float>&);
template void multiply(const PanelProduct<double>&, const PackedPanels<double>&);
template void multiply(const PanelProduct<BFloat16>&, const PackedPanels<BFloat16>&);

}  // namespace trainscope::cpu
