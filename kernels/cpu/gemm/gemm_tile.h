// The innermost loop of our GEMM, a tile of C in registers, once for each instruction set.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "kernels/api/low_precision.h"

namespace trainscope::cpu {

// Two elements of bf16 that follow each other along k, the first in the low half.
using BFloat16Pair = std::uint32_t;

// What elements T are packed as, and how many of them along k in one.
template <typename T>
using Packed = std::conditional_t<std::is_same_v<T, BFloat16>, BFloat16Pair, T>;
template <typename T>
inline constexpr std::int64_t kElementsPacked = std::is_same_v<T, BFloat16> ? 2 : 1;

// Packed elements that hold `steps` of k.
template <typename T>
constexpr std::int64_t packed_steps(std::int64_t steps) {
  return (steps + kElementsPacked<T> - 1) / kElementsPacked<T>;
}

// C = alpha * (sum over p of the lines of A times B) + beta * addend, on a tile of C. Element
// (i, p) of A is a[i * a_line + p * a_step]; row p of B is b[p * columns], consecutive. Sums are of
// type Computed<T>.
template <typename T>
struct TileOperands {
  std::int64_t depth = 0;  // packed elements of each sum
  const Packed<T>* a = nullptr;
  std::int64_t a_line = 0;
  std::int64_t a_step = 0;
  const Packed<T>* b = nullptr;
  Computed<T>* c = nullptr;
  std::int64_t c_row = 0;
  const Computed<T>* addend = nullptr;  // rows of consecutive elements; null: nothing is added
  std::int64_t addend_row = 0;
  Computed<T> alpha = 1;
  Computed<T> beta = 1;
};

// Each element's sum is formed in the order of p with fused multiply-adds, so that tiles of all
// sizes give the same bits.
template <typename T>
struct GemmTile {
  static constexpr std::int64_t kMostRows = 12;
  static constexpr std::int64_t kMostColumns = 32;

  const char* instructions = "";  // as in /proc/cpuinfo
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  void (*lines_together)(const TileOperands<T>&) = nullptr;  // for a_line == 1
  void (*steps_together)(const TileOperands<T>&) = nullptr;  // for a_step == 1
  // The same with fewer rows, for the last ones of C.
  std::int64_t short_rows = 0;
  void (*short_lines_together)(const TileOperands<T>&) = nullptr;
  void (*short_steps_together)(const TileOperands<T>&) = nullptr;
};

// Those that this machine can run, the quickest first; of bf16 none unless
// prefers_avx512_bf16().
template <typename T>
std::span<const GemmTile<T>> gemm_tiles();

// Why a kernel on tiles of bf16 is not there.
inline constexpr std::string_view kNoBf16Tiles =
    "no AVX512_BF16 on this processor that is quicker than f32";

// The quickest for GEMMs that read A where it is, not packed: a tile may then have any number of
// rows. Heads, whose matrices these are, are often 64 wide.
template <typename T>
const GemmTile<T>& tile_in_place();

// AVX-512, for bf16 AVX512_BF16; to be called only where the machine has it.
template <typename T>
GemmTile<T> gemm_tile_avx512();

}  // namespace trainscope::cpu
