// Matrix products of our own, after Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication", ACM TOMS 34 (2008): blocks of B and A are packed, and tiles of C that fit the
// registers are updated from them.
#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <cstring>

namespace trainscope::cpu {
namespace {

// One AVX2 register of T (a vector extension of g++ and clang).
template <typename T>
using Vector [[gnu::vector_size(32)]] = T;

template <typename T>
struct Block {
  static constexpr std::int64_t kLanes = 32 / static_cast<std::int64_t>(sizeof(T));
  // 6 x 2 accumulators, 2 registers for B and 1 for A: 15 of 16.
  static constexpr std::int64_t kRows = 6;
  static constexpr std::int64_t kColumns = 2 * kLanes;
  // A panel of B [kDepth, kColumns] stays in L1, a block of A [kHeight, kDepth] in L2.
  static constexpr std::int64_t kDepth = 256;
  static constexpr std::int64_t kHeight = 96;
  static constexpr std::int64_t kWidth = 4096 / static_cast<std::int64_t>(sizeof(T));
};

constexpr std::int64_t kSmallestPartFlops = 400000;  // below it a thread costs more than it saves
constexpr std::size_t kAlignment = 64;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

// Source matrix of a packed block: element (i, j) at data[i * row + j * column].
template <typename T>
struct Strided {
  const T* data;
  std::int64_t row;
  std::int64_t column;

  Strided from(std::int64_t i, std::int64_t j) const {
    return {data + i * row + j * column, row, column};
  }
};

// One panel of `kPanel` lines: packed[p][line] = data[line * across + p * along], zeros beyond
// `lines`. Lines are rows of A or columns of B.
template <std::int64_t kPanel, typename T>
void pack_panel(Strided<T> source, std::int64_t lines, std::int64_t depth, T* packed) {
  const auto [data, across, along] = source;
  if (lines < kPanel) {
    std::fill_n(packed, depth * kPanel, T{0});
    for (std::int64_t line = 0; line < lines; ++line) {
      for (std::int64_t p = 0; p < depth; ++p) {
        packed[p * kPanel + line] = data[line * across + p * along];
      }
    }
    return;
  }
  if (across == 1) {
    for (std::int64_t p = 0; p < depth; ++p) {
      std::memcpy(packed + p * kPanel, data + p * along, kPanel * sizeof(T));
    }
    return;
  }
  for (std::int64_t p = 0; p < depth; ++p) {
    for (std::int64_t line = 0; line < kPanel; ++line) {
      packed[p * kPanel + line] = data[line * across + p * along];
    }
  }
}

template <std::int64_t kPanel, typename T>
void pack(Strided<T> source, std::int64_t lines, std::int64_t depth, T* packed) {
  for (std::int64_t line = 0; line < lines; line += kPanel) {
    pack_panel<kPanel>(source.from(line, 0), std::min(kPanel, lines - line), depth, packed);
    packed += kPanel * depth;
  }
}

template <typename T>
Vector<T> load(const T* from) {
  Vector<T> v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

// tile[kRows, kColumns] = sum over p of a[p, kRows] b[p, kColumns]
template <typename T>
[[gnu::noinline]] void multiply_panels(std::int64_t depth, const T* a, const T* b, T* tile) {
  using B = Block<T>;
  Vector<T> sums[B::kRows][2] = {};
  for (std::int64_t p = 0; p < depth; ++p) {
    const Vector<T> b0 = load(b);
    const Vector<T> b1 = load(b + B::kLanes);
#pragma GCC unroll 6
    for (std::int64_t i = 0; i < B::kRows; ++i) {
      sums[i][0] += a[i] * b0;
      sums[i][1] += a[i] * b1;
    }
    a += B::kRows;
    b += B::kColumns;
  }
  std::memcpy(tile, sums, sizeof(sums));
}

// What happens to a finished tile: the first block over k writes C, the others add to it.
template <typename T>
struct Store {
  const GemmOperands<T>& operands;
  bool first;

  void tile(const T* tile, const GemmPart& at) const {
    const std::int64_t columns = at.column_end - at.column_begin;
    for (std::int64_t i = at.row_begin; i < at.row_end; ++i) {
      T* c = operands.c + i * operands.c_row + at.column_begin;
      if (!first) {
        for (std::int64_t j = 0; j < columns; ++j) c[j] += operands.alpha * tile[j];
      } else if (operands.d == nullptr) {
        for (std::int64_t j = 0; j < columns; ++j) c[j] = operands.alpha * tile[j];
      } else {
        const T* d = operands.d + i * operands.d_row + at.column_begin * operands.d_column;
        for (std::int64_t j = 0; j < columns; ++j) {
          c[j] = operands.alpha * tile[j] + operands.beta * d[j * operands.d_column];
        }
      }
      tile += Block<T>::kColumns;
    }
  }
};

// C[at] from a packed block of A [rows, depth] and one of B [depth, columns].
template <typename T>
void multiply_blocks(const T* a, const T* b, std::int64_t depth, const GemmPart& at,
                     const Store<T>& store) {
  using B = Block<T>;
  alignas(kAlignment) T tile[B::kRows * B::kColumns];
  for (std::int64_t j = at.column_begin; j < at.column_end; j += B::kColumns) {
    const T* panel = a;
    for (std::int64_t i = at.row_begin; i < at.row_end; i += B::kRows) {
      multiply_panels(depth, panel, b, tile);
      store.tile(tile, {.row_begin = i,
                        .row_end = std::min(i + B::kRows, at.row_end),
                        .column_begin = j,
                        .column_end = std::min(j + B::kColumns, at.column_end)});
      panel += B::kRows * depth;
    }
    b += B::kColumns * depth;
  }
}

// Bytes of a packed block of A and of B for parts of up to rows x columns.
template <typename T>
std::size_t packed_a_bytes(std::int64_t rows, std::int64_t k) {
  using B = Block<T>;
  const std::int64_t elements =
      round_up(std::min(rows, B::kHeight), B::kRows) * std::min(k, B::kDepth);
  return static_cast<std::size_t>(round_up(elements, kAlignment / sizeof(T))) * sizeof(T);
}
template <typename T>
std::size_t packed_b_bytes(std::int64_t columns, std::int64_t k) {
  using B = Block<T>;
  const std::int64_t elements =
      round_up(std::min(columns, B::kWidth), B::kColumns) * std::min(k, B::kDepth);
  return static_cast<std::size_t>(round_up(elements, kAlignment / sizeof(T))) * sizeof(T);
}

template <typename T>
std::int64_t part_rows(const GemmPlan& plan) {
  return round_up(divide_up(plan.size.m, plan.row_parts), Block<T>::kRows);
}
template <typename T>
std::int64_t part_columns(const GemmPlan& plan) {
  return round_up(divide_up(plan.size.n, plan.column_parts), Block<T>::kColumns);
}

// Divides each product into `parts` rectangles so that least has to be packed.
template <typename T>
void divide_output(GemmPlan& plan, std::int64_t parts) {
  std::int64_t best = -1;
  for (std::int64_t rows = 1; rows <= parts; ++rows) {
    if (parts % rows != 0) continue;
    GemmPlan candidate = plan;
    candidate.row_parts = rows;
    candidate.column_parts = parts / rows;
    const std::int64_t packed = part_rows<T>(candidate) + part_columns<T>(candidate);
    if (best >= 0 && packed >= best) continue;
    best = packed;
    plan.row_parts = rows;
    plan.column_parts = parts / rows;
  }
}

}  // namespace

template <typename T>
GemmPlan plan_gemm(const GemmSize& size, int threads) {
  GemmPlan plan{.size = size};
  if (size.m == 0 || size.n == 0 || size.batch == 0) {
    plan.size.batch = 0;
    return plan;
  }
  const double flops = 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) *
                       static_cast<double>(std::max<std::int64_t>(1, size.k));
  const auto worth = static_cast<std::int64_t>(
      std::min(1e9, flops * static_cast<double>(size.batch) / kSmallestPartFlops));
  plan.slots = std::clamp<std::int64_t>(worth, 1, std::max(1, threads));
  if (plan.slots > 1 && size.batch < 4 * plan.slots) {
    const auto divisible = static_cast<std::int64_t>(std::min(1e9, flops / kSmallestPartFlops));
    const std::int64_t wanted =
        size.batch == 1 ? plan.slots : divide_up(4 * plan.slots, size.batch);
    divide_output<T>(plan, std::clamp<std::int64_t>(divisible, 1, wanted));
    plan.slots = std::min(plan.slots, gemm_parts(plan));
  }
  plan.slot_bytes = packed_a_bytes<T>(part_rows<T>(plan), size.k) +
                    packed_b_bytes<T>(part_columns<T>(plan), size.k);
  return plan;
}

template <typename T>
GemmPart gemm_part(const GemmPlan& plan, std::int64_t index) {
  const std::int64_t column = index % plan.column_parts;
  const std::int64_t row = index / plan.column_parts % plan.row_parts;
  const std::int64_t rows = part_rows<T>(plan);
  const std::int64_t columns = part_columns<T>(plan);
  return {.product = index / (plan.column_parts * plan.row_parts),
          .row_begin = std::min(plan.size.m, row * rows),
          .row_end = std::min(plan.size.m, (row + 1) * rows),
          .column_begin = std::min(plan.size.n, column * columns),
          .column_end = std::min(plan.size.n, (column + 1) * columns)};
}

template <typename T>
void run_gemm_part(const GemmPlan& plan, const GemmPart& part, const GemmOperands<T>& operands,
                   void* scratch) {
  using B = Block<T>;
  const std::int64_t k = plan.size.k;
  auto* packed_a = static_cast<T*>(scratch);
  auto* packed_b = reinterpret_cast<T*>(static_cast<std::byte*>(scratch) +
                                        packed_a_bytes<T>(part_rows<T>(plan), k));
  const Strided<T> a{operands.a, operands.a_row, operands.a_column};
  const Strided<T> b_transposed{operands.b, operands.b_column, operands.b_row};
  GemmPart at = part;
  for (at.column_begin = part.column_begin; at.column_begin < part.column_end;
       at.column_begin = at.column_end) {
    at.column_end = std::min(part.column_end, at.column_begin + B::kWidth);
    std::int64_t p = 0;
    do {  // once even for k = 0: the product is then beta * D
      const std::int64_t depth = std::min(B::kDepth, k - p);
      pack<B::kColumns>(b_transposed.from(at.column_begin, p), at.column_end - at.column_begin,
                        depth, packed_b);
      for (at.row_begin = part.row_begin; at.row_begin < part.row_end; at.row_begin = at.row_end) {
        at.row_end = std::min(part.row_end, at.row_begin + B::kHeight);
        pack<B::kRows>(a.from(at.row_begin, p), at.row_end - at.row_begin, depth, packed_a);
        multiply_blocks(packed_a, packed_b, depth, at, Store<T>{operands, p == 0});
      }
      p += depth;
    } while (p < k);
  }
}

template GemmPlan plan_gemm<float>(const GemmSize&, int);
template GemmPlan plan_gemm<double>(const GemmSize&, int);
template GemmPart gemm_part<float>(const GemmPlan&, std::int64_t);
template GemmPart gemm_part<double>(const GemmPlan&, std::int64_t);
template void run_gemm_part<float>(const GemmPlan&, const GemmPart&, const GemmOperands<float>&,
                                   void*);
template void run_gemm_part<double>(const GemmPlan&, const GemmPart&, const GemmOperands<double>&,
                                    void*);

}  // namespace trainscope::cpu
