// What the kernels of attention and of its gradient share: sizes, strides, scores of a block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/attention/dropout_mask.h"
#include "kernels/cpu/gemm/panel_gemm.h"
#include "kernels/cpu/support/estimate.h"
#include "kernels/cpu/support/rounding.h"
#include "kernels/cpu/support/stored.h"

namespace trainscope::cpu {

// Queries whose scores are there at once, for all keys: a few tiles high, so that a causal head
// computes little that is masked.
inline constexpr std::int64_t kQueryBlock = 48;

void add_attention_grad(KernelTable& table);

struct AttentionSizes {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t width = 0;  // of a head
  bool causal = false;

  std::int64_t block_rows() const { return std::min(kQueryBlock, tokens); }
  std::int64_t blocks() const { return (tokens + kQueryBlock - 1) / kQueryBlock; }
  // Keys that a query sees.
  std::int64_t seen(std::int64_t query) const { return causal ? query + 1 : keys; }
  // Number of a query's first weight among all [batch, heads, tokens, keys].
  std::int64_t first_weight(std::int64_t b, std::int64_t head, std::int64_t query) const {
    return ((b * heads + head) * tokens + query) * keys;
  }
};

// `inputs` begin with q.
AttentionSizes attention_sizes(const Params& params, std::span<const TensorView> inputs);
// Whether their bias, if there is one, is f32.
bool has_f32_bias(std::span<const TensorView> inputs);

// A definition whose FLOPs are those of all scores, or of those that a causal head sees, with as
// many as whole tiles of queries have.
template <typename T>
Work with_scores_of_tiles(const AttentionSizes& sizes, const Estimate& definition) {
  Work work(definition);
  if (!sizes.causal || sizes.tokens == 0) return work;
  const std::int64_t tile = tile_in_place<T>().rows;
  double scores = 0.0;
  for (std::int64_t query = 0; query < sizes.tokens; query += tile) {
    scores += multiplied(std::min(tile, sizes.tokens - query), std::min(query + tile, sizes.keys));
  }
  work.flops *= scores / (multiplied(sizes.tokens, sizes.keys) / 2);
  return work;
}

// Rows of one head: token i at data + i * row.
template <typename T>
struct HeadRows {
  T* data = nullptr;
  std::int64_t row = 0;

  HeadRows from(std::int64_t i) const { return {data + i * row, row}; }
};

// Rows of a head lie on different pages, so that no processor fetches them by itself.
template <typename T>
void prefetch_row(const T* row, std::int64_t width) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t at = 0; at < width; at += kLine) __builtin_prefetch(row + at);
}

// Head `head` of batch entry `b` in a tensor [batch, tokens, heads, width].
template <typename T>
HeadRows<T> head_rows(T* data, const Shape& shape, std::int64_t b, std::int64_t head) {
  const std::int64_t row = shape[2] * shape[3];
  return {data + b * shape[1] * row + head * shape[3], row};
}

// q, k and v of one head, whether they are in tensors of their own or side by side.
template <typename T>
struct HeadTriple {
  HeadRows<T> q;
  HeadRows<T> k;
  HeadRows<T> v;
};

// `tensors` are q, k and v, or one that holds all three. Null where one is left out.
template <typename T>
HeadTriple<T> head_triple(const Params& params, std::span<const TensorView> tensors, std::int64_t b,
                          std::int64_t head) {
  const auto& attention = std::get<AttentionParams>(params);
  const std::int64_t shared = head / (attention.heads / attention.kv_heads);
  const auto rows = [&](std::size_t tensor, std::int64_t at) -> HeadRows<T> {
    if (tensor >= tensors.size() || !tensors[tensor].present) return {};
    return head_rows(tensors[tensor].as<T>(), tensors[tensor].shape(), b, at);
  };
  if (attention.packed) {
    return {.q = rows(0, head),
            .k = rows(0, attention.heads + shared),
            .v = rows(0, attention.heads + attention.kv_heads + shared)};
  }
  return {.q = rows(0, head), .k = rows(1, shared), .v = rows(2, shared)};
}

// The bias, broadcast to [batch, heads, tokens, keys].
template <typename T>
class Bias {
 public:
  Bias() = default;
  explicit Bias(const TensorView& bias) : data_(bias.as<const T>()) {
    const Shape& shape = bias.shape();
    std::int64_t stride = 1;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(axis + 4 - shape.rank);
      strides_[at] = shape[axis] == 1 ? 0 : stride;
      stride *= shape[axis];
    }
  }

  // Adds that of query `row` to its scores.
  void add_to(T* scores, std::int64_t keys, std::int64_t b, std::int64_t head,
              std::int64_t row) const {
    if (data_ == nullptr) return;
    const T* bias = data_ + b * strides_[0] + head * strides_[1] + row * strides_[2];
    for (std::int64_t j = 0; j < keys; ++j) scores[j] += bias[j * strides_[3]];
  }

 private:
  const T* data_ = nullptr;
  std::int64_t strides_[4] = {};
};

template <typename T>
Bias<T> bias_of(std::span<const TensorView> inputs) {
  return inputs.size() > 3 && inputs[3].present ? Bias<T>(inputs[3]) : Bias<T>();
}

// Which weights are left; its numbers are drawn for the weights [batch, heads, tokens, keys].
inline DropoutMask mask_of(const Params& params, std::span<const TensorView> inputs) {
  const DropoutParams& dropout = std::get<AttentionParams>(params).dropout;
  if (dropout.ratio == 0.0) return {};
  return {dropout, *inputs[4].as<const std::int64_t>()};
}

inline std::size_t round_up_to_line(std::size_t bytes) { return round_up(bytes, 64); }

// Numbers up to whole cache lines, and so to whole registers: loops over so many have no rest.
template <typename T>
std::int64_t whole_lines(std::int64_t numbers) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(Computed<T>));
  return round_up(numbers, kLine);
}

// From one row of scores to the next: whole tiles, and a cache line more where the rows of a block,
// a multiple of four lines apart, would take each other's place in L1.
template <typename T>
std::int64_t score_row(const AttentionSizes& sizes) {
  const std::int64_t line = whole_lines<T>(1);
  const std::int64_t row = whole_tile_columns<T>(sizes.keys);
  return row % (4 * line) == 0 ? row + line : row;
}
template <typename T>
std::int64_t scores_of_block(const AttentionSizes& sizes) {
  return whole_tile_rows<T>(sizes.block_rows()) * score_row<T>(sizes);
}
template <typename T>
std::size_t score_bytes(const AttentionSizes& sizes) {
  return static_cast<std::size_t>(scores_of_block<T>(sizes)) * sizeof(Computed<T>);
}
// Of scores that are read by key alone: no tile needs more rows than there are. Tiles read a line
// beyond the last row, of what lies behind in the workspace; no sum of theirs is kept.
template <typename T>
std::size_t score_bytes_by_key(const AttentionSizes& sizes) {
  return static_cast<std::size_t>(sizes.block_rows() * score_row<T>(sizes)) * sizeof(Computed<T>);
}
// Bytes of the scores rounded to T for GEMMs, where T has fewer digits than the scores.
template <typename T>
std::size_t rounded_bytes(const AttentionSizes& sizes) {
  if (!kIsStoredOnly<T>) return 0;
  return static_cast<std::size_t>(scores_of_block<T>(sizes)) * sizeof(T);
}

// Results of GEMMs [rows, width] in whole tiles, before they are stored.
template <typename T>
std::int64_t sum_row(const AttentionSizes& sizes) {
  return whole_tile_columns<T>(sizes.width);
}
template <typename T>
std::size_t sum_bytes(const AttentionSizes& sizes, std::int64_t rows) {
  return static_cast<std::size_t>(whole_tile_rows<T>(rows) * sum_row<T>(sizes)) *
         sizeof(Computed<T>);
}

// Bytes of the rows of q or dy of a block [rows, width] beside each other, as a GEMM reads its A.
template <typename T>
std::size_t row_bytes(const AttentionSizes& sizes) {
  return round_up_to_line(static_cast<std::size_t>(whole_tile_rows<T>(sizes.block_rows()) *
                                                   packed_steps<T>(sizes.width)) *
                          sizeof(Packed<T>));
}
template <typename T>
void copy_rows(const HeadRows<const T>& from, std::int64_t rows, std::int64_t width,
               Packed<T>* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    if (width % kElementsPacked<T> != 0) to[width / kElementsPacked<T>] = 0;  // the other half
    std::memcpy(to, from.from(i).data, static_cast<std::size_t>(width) * sizeof(T));
    to += packed_steps<T>(width);
  }
}

// Scores [rows, keys] as the A of a GEMM: by queries, or by keys (transposed) for sums over
// queries. They are read where they are, or rounded into `copy`, where rows lie as far apart.
template <typename T>
PanelGemm<T> sums_by_query(const Computed<T>* scores, std::int64_t rows, std::int64_t keys,
                           std::int64_t to_next, [[maybe_unused]] Packed<T>* copy) {
  PanelGemm<T> gemm{.m = rows, .k = keys, .a_line = to_next / kElementsPacked<T>, .a_step = 1};
  if constexpr (!kIsStoredOnly<T>) {
    gemm.a = scores;
  } else {
    for (std::int64_t i = 0; i < rows; ++i) {
      const Computed<T>* from = scores + i * to_next;
      Packed<T>* to = copy + i * gemm.a_line;
      for (std::int64_t p = 0; p < packed_steps<T>(keys); ++p) {
        to[p] = pair_of(bf16_bits(from[2 * p]), bf16_bits(from[2 * p + 1]));
      }
    }
    gemm.a = copy;
  }
  return gemm;
}
template <typename T>
PanelGemm<T> sums_by_key(const Computed<T>* scores, std::int64_t rows, std::int64_t keys,
                         std::int64_t to_next, [[maybe_unused]] Packed<T>* copy) {
  PanelGemm<T> gemm{.m = keys, .k = rows, .a_line = 1, .a_step = to_next};
  if constexpr (!kIsStoredOnly<T>) {
    gemm.a = scores;
  } else {
    for (std::int64_t p = 0; p < packed_steps<T>(rows); ++p) {
      const Computed<T>* first = scores + 2 * p * to_next;
      const Computed<T>* second = first + to_next;
      const std::uint16_t kept = 2 * p + 1 < rows ? 0xFFFF : 0;
      Packed<T>* to = copy + p * to_next;
      for (std::int64_t j = 0; j < keys; ++j) {
        to[j] = pair_of(bf16_bits(first[j]), bf16_bits(second[j]) & kept);
      }
    }
    gemm.a = copy;
  }
  return gemm;
}

// Workspace of one thread, taken piece by piece.
class Pieces {
 public:
  explicit Pieces(void* begin) : at_(static_cast<std::byte*>(begin)) {}

  template <typename T>
  T* take(std::size_t bytes) {
    std::byte* taken = at_;
    at_ += round_up_to_line(bytes);
    return reinterpret_cast<T*>(taken);
  }

 private:
  std::byte* at_;
};

// What a row of scores becomes weights with: exp(score - largest) * inverse_sum. Both are kept: of
// a row whose keys are all masked with -1e9 a sum of logarithms would lose the sum.
template <typename T>
struct RowStatistics {
  T largest = 0;
  T inverse_sum = 0;
};

// Queries [begin, end) of a head and the keys that any of them sees.
template <typename T>
struct ScoreBlock {
  const AttentionSizes& sizes;
  const Bias<Computed<T>>& bias;
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t rows() const { return end - begin; }
  std::int64_t keys() const { return sizes.causal ? end : sizes.keys; }
  Unseen unseen(Unseen causal) const { return sizes.causal ? causal : Unseen::kNone; }

  // scores[i, j] = scale * (dot product of row i of q or dy and key or value j), of the weights
  // that are not masked.
  void multiply_by_key(const HeadRows<const T>& rows_of, const PackedPanels<T>& by_key,
                       Computed<T> scale, Packed<T>* rows_copy, Computed<T>* scores) const {
    copy_rows<T>(rows_of.from(begin), rows(), sizes.width, rows_copy);
    multiply<T>({.m = rows(),
                 .n = whole_tile_columns<T>(keys()),
                 .k = sizes.width,
                 .a = rows_copy,
                 .a_line = packed_steps<T>(sizes.width),
                 .c = scores,
                 .c_row = score_row<T>(sizes),
                 .alpha = scale,
                 .unseen = unseen(Unseen::kTiles),
                 .first = begin},
                by_key);
  }

  // Adds the bias to the scores of the block's query i, and -inf for what it does not see up to
  // whole cache lines. Returns how many that are.
  std::int64_t mask(std::int64_t i, Computed<T>* row) const {
    const std::int64_t seen = sizes.seen(begin + i);
    const std::int64_t masked = whole_lines<T>(seen);
    bias.add_to(row, seen, batch, head, begin + i);
    std::fill(row + seen, row + masked, -std::numeric_limits<Computed<T>>::infinity());
    return masked;
  }
  // Zeros behind the first `masked` of a row: GEMMs read up to keys().
  void clear_rest(std::int64_t masked, Computed<T>* row) const {
    if (masked < keys()) std::fill(row + masked, row + keys(), Computed<T>{0});
  }
};

}  // namespace trainscope::cpu
