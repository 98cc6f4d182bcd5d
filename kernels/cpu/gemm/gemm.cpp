// Our own GEMM, after Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
// ACM TOMS 34 (2008): blocks of B and A are packed, and tiles of C that fit the registers are
// updated from them.
#include "kernels/cpu/gemm/gemm.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/support/rounding.h"
#include "kernels/cpu/support/stored.h"

namespace trainscope::cpu {
namespace {

// A block of A [kHeight, block depth] and a panel of B stay in L2, and most of a panel of A in L1:
// measured quicker than shallow blocks, which write C more often.
constexpr std::int64_t kBlockBytes = 3072;  // of a line of a block along k
constexpr std::int64_t kHeight = 96;
// Of a block of B: A is packed again for each, so shallow ones are wider.
constexpr std::int64_t kWidth = 1024;

constexpr std::int64_t kSmallestChunkFlops = 400000;  // below it a thread costs more than it saves
constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kLargestTile = 12 * 32;

template <typename T>
constexpr std::int64_t kDeepestBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));

// The depth of the blocks that k is divided into, all equally deep. Only k decides, so that sums
// are formed in the same order everywhere.
template <typename T>
std::int64_t depth_of_blocks(std::int64_t k) {
  constexpr std::int64_t kLargest = kDeepestBlock<T>;
  const std::int64_t blocks = std::max<std::int64_t>(1, divide_up(k, kLargest));
  return std::max<std::int64_t>(1, round_up(divide_up(k, blocks), 4));
}

template <typename T>
std::size_t packed_bytes(std::int64_t lines, std::int64_t depth) {
  const std::int64_t bytes =
      lines * packed_steps<T>(depth) * static_cast<std::int64_t>(sizeof(Packed<T>));
  return static_cast<std::size_t>(round_up(bytes, kAlignment));
}

// How a GEMM is worked through: `depth` steps of k and `width` columns of B are packed at once.
template <typename T>
struct Blocks {
  std::int64_t depth = 0;
  std::int64_t width = 0;  // whole tiles

  Blocks(const GemmSize& size, std::int64_t tile_columns)
      : depth(size.rounds_result ? std::max<std::int64_t>(1, size.k) : depth_of_blocks<T>(size.k)),
        width(
            round_up(std::max<std::int64_t>(1, kWidth * kDeepestBlock<T> / depth), tile_columns)) {}

  // Bytes of a packed block of A and of B, for chunks of up to rows x columns (whole tiles).
  std::size_t a_bytes(std::int64_t rows, std::int64_t k) const {
    return packed_bytes<T>(std::min(rows, kHeight), std::min(k, depth));
  }
  std::size_t b_bytes(std::int64_t columns, std::int64_t k) const {
    return packed_bytes<T>(std::min(columns, width), std::min(k, depth));
  }
};

// The GEMM on one block of k, `depth` packed elements: its partial of all sums on a rectangle of C.
template <typename T, typename Result>
class BlockGemm {
 public:
  using Sum = Computed<T>;

  BlockGemm(const GemmTile<T>& tile, const GemmOperands<T, Result>& operands, std::int64_t depth,
            bool first)
      : tile_(tile), operands_(operands), depth_(depth), first_(first) {}

  // The first rows x columns of `at` from panels of A and B.
  void run(const Packed<T>* a, const Packed<T>* b, const GemmChunk& at) const {
    for (std::int64_t j = at.column_begin; j < at.column_end; j += tile_.columns) {
      run_column(a, b, at,
                 {.column_begin = j, .column_end = std::min(j + tile_.columns, at.column_end)});
      b += depth_ * tile_.columns;
    }
  }

 private:
  void run_column(const Packed<T>* a, const Packed<T>* b, const GemmChunk& at,
                  GemmChunk tile) const {
    TileOperands<T> operands{.depth = depth_,
                             .a = a,
                             .a_line = 1,
                             .a_step = tile_.rows,
                             .b = b,
                             .alpha = operands_.alpha,
                             .beta = first_ ? operands_.beta : Sum{1}};
    for (tile.row_begin = at.row_begin; tile.row_begin < at.row_end;
         tile.row_begin = tile.row_end) {
      tile.row_end = std::min(tile.row_begin + tile_.rows, at.row_end);
      run_tile(operands, tile);
      operands.a += depth_ * tile_.rows;
    }
  }

  void run_tile(TileOperands<T>& operands, const GemmChunk& at) const {
    const bool whole =
        at.row_end - at.row_begin == tile_.rows && at.column_end - at.column_begin == tile_.columns;
    const bool addend = !first_ || operands_.d != nullptr;
    if constexpr (!std::is_same_v<Result, Sum>) {
      return run_in_pieces(operands, at, addend);
    } else if (whole && (!first_ || !addend || operands_.d_column == 1)) {
      run_whole(operands, at, addend);
    } else {
      run_in_pieces(operands, at, addend);
    }
  }

  void run_whole(TileOperands<T>& operands, const GemmChunk& at, bool addend) const {
    operands.c = operands_.c + at.row_begin * operands_.c_row + at.column_begin;
    operands.c_row = operands_.c_row;
    if (addend) {
      operands.addend = first_ ? element_of_d(at.row_begin, at.column_begin) : operands.c;
      operands.addend_row = first_ ? operands_.d_row : operands_.c_row;
    } else {
      operands.addend = nullptr;
    }
    tile_.lines_together(operands);
  }

  // By way of a whole tile aside, so that arithmetic is in one place.
  void run_in_pieces(TileOperands<T> operands, const GemmChunk& at, bool addend) const {
    alignas(kAlignment) Sum result[kLargestTile];
    alignas(kAlignment) Sum added[kLargestTile] = {};
    operands.c = result;
    operands.c_row = tile_.columns;
    operands.addend = addend ? added : nullptr;
    operands.addend_row = tile_.columns;
    const std::int64_t columns = at.column_end - at.column_begin;
    for (std::int64_t i = at.row_begin; addend && i < at.row_end; ++i) {
      const Result* from = first_ ? element_of_d(i, at.column_begin)
                                  : operands_.c + i * operands_.c_row + at.column_begin;
      const std::int64_t step = first_ ? operands_.d_column : 1;
      Sum* row = added + (i - at.row_begin) * tile_.columns;
      for (std::int64_t j = 0; j < columns; ++j) row[j] = computed(from[j * step]);
    }
    tile_.lines_together(operands);
    for (std::int64_t i = at.row_begin; i < at.row_end; ++i) {
      const Sum* from = result + (i - at.row_begin) * tile_.columns;
      Result* to = operands_.c + i * operands_.c_row + at.column_begin;
      for (std::int64_t j = 0; j < columns; ++j) store(to[j], from[j]);
    }
  }

  const Result* element_of_d(std::int64_t i, std::int64_t j) const {
    return operands_.d + i * operands_.d_row + j * operands_.d_column;
  }

  const GemmTile<T>& tile_;
  const GemmOperands<T, Result>& operands_;
  std::int64_t depth_;
  bool first_;  // of the blocks of k: it writes C, the others add to it
};

template <typename T, typename Result>
PanelSource<T> rows_of_a(const GemmOperands<T, Result>& operands) {
  return {operands.a, operands.a_row, operands.a_column};
}

template <typename T>
std::int64_t chunk_rows(const GemmPlan<T>& plan) {
  return round_up(divide_up(plan.size.m, plan.row_chunks), plan.tile.rows);
}
template <typename T>
std::int64_t chunk_columns(const GemmPlan<T>& plan) {
  return round_up(divide_up(plan.size.n, plan.column_chunks), plan.tile.columns);
}

// Divides the C of each GEMM into `chunks` rectangles so that least has to be packed.
template <typename T>
void divide_output(GemmPlan<T>& plan, std::int64_t chunks) {
  std::int64_t best = -1;
  for (std::int64_t rows = 1; rows <= chunks; ++rows) {
    if (chunks % rows != 0) continue;
    GemmPlan<T> candidate = plan;
    candidate.row_chunks = rows;
    candidate.column_chunks = chunks / rows;
    const std::int64_t packed = chunk_rows(candidate) + chunk_columns(candidate);
    if (best >= 0 && packed >= best) continue;
    best = packed;
    plan.row_chunks = rows;
    plan.column_chunks = chunks / rows;
  }
}

// Calls `use(operands, chunk)` for each GEMM that has some of the columns of `at`. The chunk has
// the columns' numbers in that GEMM; its `gemm` is how many columns of `at` lie before them.
template <typename T, typename Result, class Use>
void for_each_gemm(AdjacentGemms<T, Result> gemms, const GemmChunk& at, std::int64_t tile_columns,
                   Use use) {
  std::int64_t first = 0;  // column of this GEMM among all
  for (const AdjacentGemm<T, Result>& gemm : gemms) {
    const std::int64_t begin = std::max(at.column_begin, first);
    const std::int64_t end = std::min(at.column_end, first + gemm.n);
    if (begin < end) {
      GemmChunk own = at;
      own.gemm = begin - at.column_begin;
      own.column_begin = begin - first;
      own.column_end = end - first;
      use(gemm.operands, own);
    }
    first += round_up(gemm.n, tile_columns);
  }
}

}  // namespace

template <typename T>
GemmPlan<T> plan_gemm(const GemmSize& size, int threads, const GemmTile<T>& tile) {
  GemmPlan<T> plan{.size = size, .tile = tile};
  if (size.m == 0 || size.n == 0 || size.batch == 0) {
    plan.size.batch = 0;
    return plan;
  }
  const double flops = 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) *
                       static_cast<double>(std::max<std::int64_t>(1, size.k));
  const auto worth = static_cast<std::int64_t>(
      std::min(1e9, flops * static_cast<double>(size.batch) / kSmallestChunkFlops));
  plan.slots = std::clamp<std::int64_t>(worth, 1, std::max(1, threads));
  if (plan.slots > 1 && size.batch < 4 * plan.slots) {
    const auto divisible = static_cast<std::int64_t>(std::min(1e9, flops / kSmallestChunkFlops));
    const std::int64_t wanted =
        size.batch == 1 ? plan.slots : divide_up(4 * plan.slots, size.batch);
    divide_output(plan, std::clamp<std::int64_t>(divisible, 1, wanted));
    plan.slots = std::min(plan.slots, plan.chunks());
  }
  set_depth(plan, size.k);
  return plan;
}

template <typename T>
void set_depth(GemmPlan<T>& plan, std::int64_t k) {
  plan.size.k = k;
  const Blocks<T> blocks(plan.size, plan.tile.columns);
  plan.slot_bytes = blocks.a_bytes(chunk_rows(plan), k) + blocks.b_bytes(chunk_columns(plan), k);
}

template <typename T>
std::size_t most_workspace_bytes(GemmPlan<T> plan, std::int64_t k) {
  // Sums of more terms have blocks of the same depths, or, where a result is rounded once, one
  // block of the least width, which takes more the deeper it is. So there are at most twice
  // kDeepestBlock<T> numbers of terms to try, or kWidth times that depth: 1024 x 1536 for bf16.
  const std::int64_t all_depths =
      plan.size.rounds_result ? kWidth * kDeepestBlock<T> : 2 * kDeepestBlock<T>;
  set_depth(plan, k);
  std::size_t bytes = plan.workspace_bytes();
  for (std::int64_t terms = 0; terms < std::min(k, all_depths + 1); ++terms) {
    set_depth(plan, terms);
    bytes = std::max(bytes, plan.workspace_bytes());
  }
  return bytes;
}

template <typename T>
Work gemm_work(const GemmPlan<T>& plan, double result_bytes) {
  const GemmSize& size = plan.size;
  const Blocks<T> blocks(size, plan.tile.columns);
  const std::int64_t m = round_up(size.m, plan.tile.rows);
  const std::int64_t n = round_up(size.n, plan.tile.columns);
  const std::int64_t steps = packed_steps<T>(size.k);
  std::int64_t packs_of_a = 0;
  for (std::int64_t chunk = 0; chunk < plan.column_chunks; ++chunk) {
    const std::int64_t begin = std::min(size.n, chunk * chunk_columns(plan));
    const std::int64_t end = std::min(size.n, begin + chunk_columns(plan));
    packs_of_a += divide_up(end - begin, blocks.width);
  }
  const std::int64_t packs_of_b = divide_up(size.m, std::max<std::int64_t>(1, chunk_rows(plan)));
  const std::int64_t depths = std::max<std::int64_t>(1, divide_up(size.k, blocks.depth));
  Work work;
  work.flops = multiplied(2, size.batch, m, n, steps * kElementsPacked<T>);
  const auto pack = [&](std::int64_t packs, std::int64_t lines, std::int64_t whole_lines) {
    work.add_copy(multiplied(sizeof(T), size.batch, packs, lines, size.k), 0.0);
    work.add_passed_on(multiplied(sizeof(Packed<T>), size.batch, packs, whole_lines, steps));
  };
  pack(packs_of_a, size.m, m);
  pack(packs_of_b, size.n, n);
  const double c = multiplied(size.batch, size.m, size.n) * result_bytes;
  work.add_copy(c * static_cast<double>(depths - 1), c * static_cast<double>(depths));
  return work;
}

template <typename T>
GemmChunk gemm_chunk(const GemmPlan<T>& plan, std::int64_t index) {
  const std::int64_t column = index % plan.column_chunks;
  const std::int64_t row = index / plan.column_chunks % plan.row_chunks;
  const std::int64_t rows = chunk_rows(plan);
  const std::int64_t columns = chunk_columns(plan);
  return {.gemm = index / (plan.column_chunks * plan.row_chunks),
          .row_begin = std::min(plan.size.m, row * rows),
          .row_end = std::min(plan.size.m, (row + 1) * rows),
          .column_begin = std::min(plan.size.n, column * columns),
          .column_end = std::min(plan.size.n, (column + 1) * columns)};
}

template <typename T, typename Result>
void run_gemm_chunk(const GemmPlan<T>& plan, const GemmChunk& chunk,
                    const GemmOperands<T, Result>& operands, void* scratch) {
  const AdjacentGemm<T, Result> only{.operands = operands, .n = plan.size.n};
  run_gemm_chunk(plan, chunk, AdjacentGemms<T, Result>(&only, 1), scratch);
}

template <typename T, typename Result>
void run_gemm_chunk(const GemmPlan<T>& plan, const GemmChunk& chunk, AdjacentGemms<T, Result> gemms,
                    void* scratch) {
  const std::int64_t k = plan.size.k;
  const Blocks<T> blocks(plan.size, plan.tile.columns);
  auto* packed_a = static_cast<Packed<T>*>(scratch);
  auto* packed_b = reinterpret_cast<Packed<T>*>(static_cast<std::byte*>(scratch) +
                                                blocks.a_bytes(chunk_rows(plan), k));
  const PanelSource<T> a_rows = rows_of_a(gemms.front().operands);
  const std::int64_t columns = chunk.column_end - chunk.column_begin;
  const std::int64_t in_blocks = std::max<std::int64_t>(1, divide_up(columns, blocks.width));
  const std::int64_t width = round_up(divide_up(columns, in_blocks), plan.tile.columns);
  GemmChunk at = chunk;
  for (at.column_begin = chunk.column_begin; at.column_begin < chunk.column_end;
       at.column_begin = at.column_end) {
    at.column_end = std::min(chunk.column_end, at.column_begin + width);
    std::int64_t p = 0;
    do {  // once even for k = 0: C is then beta * D
      const std::int64_t depth = std::min(blocks.depth, k - p);
      const std::int64_t per_column = packed_steps<T>(depth);
      for_each_gemm(gemms, at, plan.tile.columns, [&](const auto& operands, GemmChunk own) {
        const PanelSource<T> b{operands.b, operands.b_column, operands.b_row};
        pack_panels(b.from(own.column_begin, p), own.column_end - own.column_begin, depth,
                    plan.tile.columns, packed_b + own.gemm * per_column);
      });
      for (at.row_begin = chunk.row_begin; at.row_begin < chunk.row_end;
           at.row_begin = at.row_end) {
        at.row_end = std::min(chunk.row_end, at.row_begin + kHeight);
        pack_panels(a_rows.from(at.row_begin, p), at.row_end - at.row_begin, depth, plan.tile.rows,
                    packed_a);
        for_each_gemm(gemms, at, plan.tile.columns, [&](const auto& operands, GemmChunk own) {
          BlockGemm<T, Result>(plan.tile, operands, per_column, p == 0)
              .run(packed_a, packed_b + own.gemm * per_column, own);
        });
      }
      p += depth;
    } while (p < k);
  }
}

template GemmPlan<float> plan_gemm(const GemmSize&, int, const GemmTile<float>&);
template GemmPlan<double> plan_gemm(const GemmSize&, int, const GemmTile<double>&);
template GemmPlan<BFloat16> plan_gemm(const GemmSize&, int, const GemmTile<BFloat16>&);
template void set_depth(GemmPlan<float>&, std::int64_t);
template void set_depth(GemmPlan<double>&, std::int64_t);
template void set_depth(GemmPlan<BFloat16>&, std::int64_t);
template std::size_t most_workspace_bytes(GemmPlan<float>, std::int64_t);
template std::size_t most_workspace_bytes(GemmPlan<double>, std::int64_t);
template std::size_t most_workspace_bytes(GemmPlan<BFloat16>, std::int64_t);
template Work gemm_work(const GemmPlan<float>&, double);
template Work gemm_work(const GemmPlan<double>&, double);
template Work gemm_work(const GemmPlan<BFloat16>&, double);
template GemmChunk gemm_chunk(const GemmPlan<float>&, std::int64_t);
template GemmChunk gemm_chunk(const GemmPlan<double>&, std::int64_t);
template GemmChunk gemm_chunk(const GemmPlan<BFloat16>&, std::int64_t);
template void run_gemm_chunk(const GemmPlan<float>&, const GemmChunk&, const GemmOperands<float>&,
                             void*);
template void run_gemm_chunk(const GemmPlan<double>&, const GemmChunk&, const GemmOperands<double>&,
                             void*);
template void run_gemm_chunk(const GemmPlan<BFloat16>&, const GemmChunk&,
                             const GemmOperands<BFloat16>&, void*);
template void run_gemm_chunk(const GemmPlan<BFloat16>&, const GemmChunk&,
                             const GemmOperands<BFloat16, float>&, void*);
template void run_gemm_chunk(const GemmPlan<float>&, const GemmChunk&, AdjacentGemms<float>, void*);
template void run_gemm_chunk(const GemmPlan<double>&, const GemmChunk&, AdjacentGemms<double>,
                             void*);
template void run_gemm_chunk(const GemmPlan<BFloat16>&, const GemmChunk&, AdjacentGemms<BFloat16>,
                             void*);
template void run_gemm_chunk(const GemmPlan<BFloat16>&, const GemmChunk&,
                             AdjacentGemms<BFloat16, float>, void*);

}  // namespace trainscope::cpu
