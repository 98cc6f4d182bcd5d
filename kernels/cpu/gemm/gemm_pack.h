// Blocks of a matrix copied into panels, in the order in which a tile reads them.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm/gemm_tile.h"

namespace trainscope::cpu {

// `depth` steps of `lines` lines: rows of A or columns of B, steps along k. Element (line, step) is
// data[line * across + step * along].
template <typename T>
struct PanelSource {
  const T* data = nullptr;
  std::int64_t across = 0;
  std::int64_t along = 0;

  PanelSource from(std::int64_t line, std::int64_t step) const {
    return {data + line * across + step * along, across, along};
  }
};

// Of the bits of two elements of bf16 that follow each other along k.
inline BFloat16Pair pair_of(std::uint16_t first, std::uint16_t second) {
  return static_cast<BFloat16Pair>(first) | static_cast<BFloat16Pair>(second) << 16;
}

// packed[panel][step][line in panel], panels of `panel` lines (a multiple of 4), zeros for the
// lines that the last one lacks. In bf16 two steps make one packed element, the last one's second
// half is 0 where the depth is odd.
template <typename T>
void pack_panels(const PanelSource<T>& source, std::int64_t lines, std::int64_t depth,
                 std::int64_t panel, Packed<T>* packed);

}  // namespace trainscope::cpu
