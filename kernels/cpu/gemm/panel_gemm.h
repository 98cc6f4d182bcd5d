// GEMMs on the matrices of an attention head, on one thread: they lie in a workspace that L2 holds,
// B packed in panels, A not packed. Whole tiles are computed, for which A has place; of C only m x
// n elements are read and written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm/gemm_pack.h"
#include "kernels/cpu/gemm/gemm_tile.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {

template <typename T>
std::int64_t in_whole_tiles(std::int64_t n, std::int64_t GemmTile<T>::*side) {
  return round_up(n, tile_in_place<T>().*side);
}
template <typename T>
std::int64_t whole_tile_rows(std::int64_t rows) {
  return in_whole_tiles<T>(rows, &GemmTile<T>::rows);
}
template <typename T>
std::int64_t whole_tile_columns(std::int64_t columns) {
  return in_whole_tiles<T>(columns, &GemmTile<T>::columns);
}

// B [k, n] packed in panels as tiles read it, with zeros up to whole tiles.
template <typename T>
class PackedPanels {
 public:
  static std::size_t bytes(std::int64_t k, std::int64_t n) {
    return static_cast<std::size_t>(packed_steps<T>(k) * whole_tile_columns<T>(n)) *
           sizeof(Packed<T>);
  }
  // The lines of the source are the columns of B.
  PackedPanels(const PanelSource<T>& source, std::int64_t k, std::int64_t n, Packed<T>* memory)
      : steps_(packed_steps<T>(k)), memory_(memory) {
    pack_panels(source, n, k, tile_in_place<T>().columns, memory);
  }
  // What is packed already, from a panel's first column on.
  PackedPanels(std::int64_t k, const Packed<T>* memory)
      : steps_(packed_steps<T>(k)), memory_(memory) {}

  // The panel whose first column is `column`.
  const Packed<T>* panel(std::int64_t column) const { return memory_ + column * steps_; }

 private:
  std::int64_t steps_;
  const Packed<T>* memory_;
};

// What a GEMM of a causal head leaves out, where query `first` is the first of the block: kTiles,
// the tiles of C (queries by keys) whose keys no query sees; kKeys, the terms of each sum whose key
// the query of the row does not see; kQueries, the terms whose query does not see the key of the
// row. Where a tile has terms of both kinds, A holds zeros for those left out.
enum class Unseen : std::uint8_t { kNone, kTiles, kKeys, kQueries };

// C [m, n] = alpha * A B, or with `adds` C + alpha * A B, for the first n columns and k rows of B.
// Element (i, p) of A [m, k], packed along p, is a[i * a_line + p * a_step]; one of a_line and
// a_step is 1.
template <typename T>
struct PanelGemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const Packed<T>* a = nullptr;
  std::int64_t a_line = 1;
  std::int64_t a_step = 1;
  Computed<T>* c = nullptr;
  std::int64_t c_row = 0;
  Computed<T> alpha = 1;
  bool adds = false;
  Unseen unseen = Unseen::kNone;
  std::int64_t first = 0;
};

template <typename T>
void multiply(const PanelGemm<T>& gemm, const PackedPanels<T>& b);

}  // namespace trainscope::cpu
