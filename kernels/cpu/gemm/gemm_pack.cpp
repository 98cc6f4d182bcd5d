// Packing of panels, by squares of 8 x 8 or 4 x 4 where lines lie apart.
#include "kernels/cpu/gemm/gemm_pack.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/movement/transpose_block.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kSide = 4;  // of the squares that are transposed in registers

constexpr std::int64_t kPairsOfALine = 16;  // pairs of bf16 in a cache line

template <typename T>
using Four [[gnu::vector_size(kSide * sizeof(T))]] = T;
// to[j * to_row + i] = from[i * from_row + j] for i, j < kSide
template <typename T>
void transpose_square(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
  Four<T> row[kSide];
  for (int i = 0; i < kSide; ++i) std::memcpy(&row[i], from + i * from_row, sizeof(row[i]));
  const Four<T> low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  const Four<T> high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  const Four<T> low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  const Four<T> high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  row[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  row[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  row[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  row[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  for (int i = 0; i < kSide; ++i) std::memcpy(to + i * to_row, &row[i], sizeof(row[i]));
}

// The side of the largest squares that panels of elements of four bytes consist of.
template <std::int64_t kPanel, typename T>
inline constexpr std::int64_t kLargeSide = sizeof(T) == 4 && kPanel % 8 == 0 ? 8 : kSide;

// As many whole squares as [step, end) has; returns the first step without.
template <std::int64_t kPanel, std::int64_t kOfSquare, typename T>
std::int64_t pack_squares(const PanelSource<T>& source, std::int64_t step, std::int64_t end,
                          T* packed) {
  const std::int64_t whole = step + (end - step) / kOfSquare * kOfSquare;
  for (std::int64_t line = 0; line < kPanel; line += kOfSquare) {
    for (std::int64_t at = step; at < whole; at += kOfSquare) {
      const T* from = source.data + line * source.across + at;
      if constexpr (kOfSquare == kSide) {
        transpose_square(from, source.across, packed + at * kPanel + line, kPanel);
      } else {
        transpose_block(from, source.across, packed + at * kPanel + line, kPanel);
      }
    }
  }
  return whole;
}

// Squares of one cache line of each of some lines before the next lines: more lines at once would,
// a power of two apart, take each other's place in L1.
template <std::int64_t kPanel, typename T>
void pack_lines_apart(const PanelSource<T>& source, std::int64_t depth, T* packed) {
  constexpr std::int64_t kSteps = 64 / static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kLarge = kLargeSide<kPanel, T>;
  const auto [data, across, along] = source;
  std::int64_t step = 0;
  if (along == 1) {
    while (step + kSteps <= depth) {
      for (std::int64_t line = 0; line < kPanel; ++line) {
        __builtin_prefetch(data + line * across + step + 2 * kSteps);
      }
      step = pack_squares<kPanel, kLarge>(source, step, step + kSteps, packed);
    }
    step = pack_squares<kPanel, kLarge>(source, step, depth, packed);
    step = pack_squares<kPanel, kSide>(source, step, depth, packed);
  }
  for (; step < depth; ++step) {
    for (std::int64_t line = 0; line < kPanel; ++line) {
      packed[step * kPanel + line] = data[line * across + step * along];
    }
  }
}

template <std::int64_t kPanel, typename T>
void pack_lines_together(const PanelSource<T>& source, std::int64_t depth, T* packed) {
  constexpr std::int64_t kAhead = 8;
  for (std::int64_t step = 0; step < depth; ++step) {
    const T* from = source.data + step * source.along;
    __builtin_prefetch(from + kAhead * source.along);
    __builtin_prefetch(from + kAhead * source.along + kPanel - 1);
    std::memcpy(packed + step * kPanel, from, kPanel * sizeof(T));
  }
}

// A panel that lacks lines.
template <std::int64_t kPanel, typename T>
void pack_rest(const PanelSource<T>& source, std::int64_t lines, std::int64_t depth, T* packed) {
  std::fill_n(packed, depth * kPanel, T{0});
  for (std::int64_t line = 0; line < lines; ++line) {
    const T* from = source.data + line * source.across;
    for (std::int64_t step = 0; step < depth; ++step) {
      packed[step * kPanel + line] = from[step * source.along];
    }
  }
}

template <std::int64_t kPanel, typename T>
void pack_all(const PanelSource<T>& source, std::int64_t lines, std::int64_t depth, T* packed) {
  const std::int64_t whole = lines / kPanel;
  for (std::int64_t panel = 0; panel < whole; ++panel) {
    const PanelSource<T> from = source.from(panel * kPanel, 0);
    T* to = packed + panel * kPanel * depth;
    if (source.across == 1) {
      pack_lines_together<kPanel>(from, depth, to);
    } else {
      pack_lines_apart<kPanel>(from, depth, to);
    }
  }
  if (lines % kPanel == 0) return;
  pack_rest<kPanel>(source.from(whole * kPanel, 0), lines % kPanel, depth,
                    packed + whole * kPanel * depth);
}

// --- bf16 ----------------------------------------------------------------------------------------

using Bits = std::uint16_t;

// Of steps `step` and the one after it, where there is one.
BFloat16Pair pair_at(const PanelSource<Bits>& source, std::int64_t line, std::int64_t step,
                     std::int64_t depth) {
  const Bits* from = source.data + line * source.across + step * source.along;
  return pair_of(*from, step + 1 < depth ? from[source.along] : Bits{0});
}

template <std::int64_t kPanel>
void pack_any_pairs(const PanelSource<Bits>& source, std::int64_t lines, std::int64_t begin,
                    std::int64_t depth, BFloat16Pair* packed) {
  for (std::int64_t step = begin; step < depth; step += 2) {
    for (std::int64_t line = 0; line < lines; ++line) {
      packed[step / 2 * kPanel + line] = pair_at(source, line, step, depth);
    }
  }
}

// Lines side by side: two steps are interleaved.
template <std::int64_t kPanel>
void pack_pairs_together(const PanelSource<Bits>& source, std::int64_t depth,
                         BFloat16Pair* packed) {
  constexpr std::int64_t kAhead = 8;
  std::int64_t step = 0;
  for (; step + 2 <= depth; step += 2) {
    const Bits* first = source.data + step * source.along;
    const Bits* second = first + source.along;
    __builtin_prefetch(first + kAhead * source.along);
    __builtin_prefetch(second + kAhead * source.along);
    BFloat16Pair* to = packed + step / 2 * kPanel;
    for (std::int64_t line = 0; line < kPanel; ++line)
      to[line] = pair_of(first[line], second[line]);
  }
  pack_any_pairs<kPanel>(source, kPanel, step, depth, packed);
}

// Each line's pairs lie in memory as they are packed: elements of four bytes, transposed like f32.
template <std::int64_t kPanel>
void pack_pairs_apart(const PanelSource<Bits>& source, std::int64_t depth, BFloat16Pair* packed) {
  const std::int64_t pairs = depth / 2 / kPairsOfALine * kPairsOfALine;
  const auto* data = reinterpret_cast<const BFloat16Pair*>(source.data);  // read by memcpy alone
  pack_lines_apart<kPanel>(PanelSource<BFloat16Pair>{data, source.across / 2, 1}, pairs, packed);
  pack_any_pairs<kPanel>(source, kPanel, 2 * pairs, depth, packed);
}

template <std::int64_t kPanel>
void pack_all_pairs(const PanelSource<Bits>& source, std::int64_t lines, std::int64_t depth,
                    BFloat16Pair* packed) {
  const std::int64_t size = kPanel * ((depth + 1) / 2);  // of a panel
  const bool in_pairs = source.along == 1 && source.across % 2 == 0;
  for (std::int64_t line = 0; line < lines; line += kPanel) {
    const PanelSource<Bits> from = source.from(line, 0);
    BFloat16Pair* to = packed + line / kPanel * size;
    if (lines - line < kPanel) {
      std::fill_n(to, size, BFloat16Pair{0});
      pack_any_pairs<kPanel>(from, lines - line, 0, depth, to);
    } else if (source.across == 1) {
      pack_pairs_together<kPanel>(from, depth, to);
    } else if (in_pairs) {
      pack_pairs_apart<kPanel>(from, depth, to);
    } else {
      pack_any_pairs<kPanel>(from, kPanel, 0, depth, to);
    }
  }
}

}  // namespace

template <typename T>
void pack_panels(const PanelSource<T>& source, std::int64_t lines, std::int64_t depth,
                 std::int64_t panel, Packed<T>* packed) {
  // The sides of all tiles.
  switch (panel) {
    case 4:
      return pack_all<4>(source, lines, depth, packed);
    case 8:
      return pack_all<8>(source, lines, depth, packed);
    case 12:
      return pack_all<12>(source, lines, depth, packed);
    case 16:
      return pack_all<16>(source, lines, depth, packed);
    case 24:
      return pack_all<24>(source, lines, depth, packed);
    case 32:
      return pack_all<32>(source, lines, depth, packed);
    default:
      __builtin_unreachable();
  }
}

template <>
void pack_panels(const PanelSource<BFloat16>& source, std::int64_t lines, std::int64_t depth,
                 std::int64_t panel, BFloat16Pair* packed) {
  static_assert(sizeof(BFloat16) == sizeof(Bits));
  const PanelSource<Bits> bits{&source.data->bits, source.across, source.along};
  if (panel == 12) return pack_all_pairs<12>(bits, lines, depth, packed);
  return pack_all_pairs<32>(bits, lines, depth, packed);
}

template void pack_panels(const PanelSource<float>&, std::int64_t, std::int64_t, std::int64_t,
                          float*);
template void pack_panels(const PanelSource<double>&, std::int64_t, std::int64_t, std::int64_t,
                          double*);

}  // namespace trainscope::cpu
