// What the kernels of attention and of its gradient share: sizes, strides, scores of a block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/dropout_mask.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/stored.h"

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

// Rows of one head: token i at data + i * row.
template <typename T>
struct HeadRows {
  T* data = nullptr;
  std::int64_t row = 0;

  HeadRows from(std::int64_t i) const { return {data + i * row, row}; }
};

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

inline std::size_t round_up_to_line(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

template <typename T>
std::int64_t whole_tiles(std::int64_t columns) {
  const std::int64_t tile = tile_columns<T>();
  return (columns + tile - 1) / tile * tile;
}

// Elements from one row of scores to the next: whole tiles, and a cache line more where rows a
// large power of two apart would take each other's place in L1.
template <typename T>
std::int64_t score_row(const AttentionSizes& sizes) {
  constexpr std::int64_t kApart = 2048 / static_cast<std::int64_t>(sizeof(Computed<T>));
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(Computed<T>));
  const std::int64_t row = whole_tiles<T>(sizes.keys);
  return row % kApart == 0 ? row + kLine : row;
}
template <typename T>
std::size_t score_bytes(const AttentionSizes& sizes) {
  return round_up_to_line(static_cast<std::size_t>(sizes.block_rows() * score_row<T>(sizes)) *
                          sizeof(Computed<T>));
}

// A copy [rows, columns] of what is computed as T, where it is stored as something else: scores
// rounded for products, sums of products before they are rounded.
template <typename T, typename Copy>
std::size_t copy_bytes(std::int64_t rows, std::int64_t columns) {
  if (!kIsStoredOnly<T>) return 0;
  return round_up_to_line(static_cast<std::size_t>(rows * columns) * sizeof(Copy));
}

// [rows, columns] of `from` as T: themselves, or rounded into `copy`, which has rows as far apart.
template <typename T>
const T* rounded(const Computed<T>* from, std::int64_t rows, std::int64_t columns,
                 std::int64_t to_next, T* copy) {
  if constexpr (!kIsStoredOnly<T>) {
    return from;
  } else {
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* x = from + i * to_next;
      T* y = copy + i * to_next;
#pragma omp simd
      for (std::int64_t j = 0; j < columns; ++j) store(y[j], x[j]);
    }
    return copy;
  }
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

// scores[i, j] = scale * q[i] k[j] + bias for queries [begin, end) of a head and the keys that any
// of them sees; -inf where it does not. `scores` has rows of score_row() elements.
template <typename T>
struct ScoreBlock {
  const AttentionSizes& sizes;
  HeadRows<const T> q;
  const PackedB<T>& keys_packed;  // [width, keys]
  Bias<Computed<T>> bias;
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t keys() const { return sizes.causal ? end : sizes.keys; }

  void compute(Computed<T> scale, Computed<T>* scores, Packed<T>* scratch) const {
    const std::int64_t to_next = score_row<T>(sizes);
    multiply<T>({.m = end - begin, .n = whole_tiles<T>(keys()), .k = sizes.width},
                {.a = q.from(begin).data,
                 .a_row = q.row,
                 .a_column = 1,
                 .c = scores,
                 .c_row = to_next,
                 .alpha = scale},
                keys_packed, scratch);
    for (std::int64_t i = begin; i < end; ++i) {
      Computed<T>* row = scores + (i - begin) * to_next;
      bias.add_to(row, keys(), batch, head, i);
      if (sizes.causal) {
        std::fill(row + i + 1, row + end, -std::numeric_limits<Computed<T>>::infinity());
      }
    }
  }
};

}  // namespace trainscope::cpu
