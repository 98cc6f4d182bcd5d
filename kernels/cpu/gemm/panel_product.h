// Products of the matrices of a head, on one thread: they lie in a workspace that L2 holds, B
// packed in panels, A where it is. Whole tiles are computed, for which A has place; of C only m x n
// is read and written.
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

// B [k, n] as tiles read it, zeros up to whole tiles.
template <typename T>
class PackedPanels {
 public:
  static std::size_t bytes(std::int64_t k, std::int64_t n) {
    return static_cast<std::size_t>(packed_steps<T>(k) * whole_tile_columns<T>(n)) *
           sizeof(Packed<T>);
  }
  // Lines of the source are columns of B.
  PackedPanels(const PanelSource<T>& source, std::int64_t k, std::int64_t n, Packed<T>* memory)
      : steps_(packed_steps<T>(k)), memory_(memory) {
    pack_panels(source, n, k, tile_in_place<T>().columns, memory);
  }

  // The panel whose first column is `column`.
  const Packed<T>* panel(std::int64_t column) const { return memory_ + column * steps_; }

 private:
  std::int64_t steps_;
  const Packed<T>* memory_;
};

// What a causal head leaves out, where query `first` is the first one: tiles of C of keys that no
// query sees, or of each sum the keys that a query does not see or the queries that do not see a
// key. A tile that is computed in part needs zeros there.
enum class Unseen : std::uint8_t { kNone, kTiles, kKeys, kQueries };

// C = alpha * A B, or what C was and alpha * A B, for the first n columns and k rows of B. Element
// (i, p) of A, packed along p, is a[i * a_line + p * a_step]; one of both is 1.
template <typename T>
struct PanelProduct {
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
void multiply(const PanelProduct<T>& product, const PackedPanels<T>& b);

}  // namespace trainscope::cpu
