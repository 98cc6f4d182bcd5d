// ONNX's Attention (opsets 23 to 28), written with matmuls and a softmax, which fuse_attention
// finds again where the engine's own op can do it.
#include <cmath>

#include "engine/onnx/composites/attention.h"
#include "engine/onnx/composites/composites.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {
namespace {

enum Input : std::size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };
enum Output : std::size_t { kY, kPresentKey, kPresentValue, kMatMul };

// What the attribute qk_matmul_output_mode asks for.
enum class Shown : std::int64_t { kMatMul = 0, kCapped, kScores, kWeights };

struct Heads {
  AttentionInputs in;
  bool flat = false;  // three axes: the heads side by side
};

void require_axes(Composition& c, const AttentionInputs& in) {
  const Shape q = c.shape(in.q);
  const Shape k = c.shape(in.k);
  const Shape v = c.shape(in.v);
  c.require(q[0] == k[0] && k[0] == v[0] && q[3] == k[3] && k[2] == v[2],
            "q {}, k {} and v {} do not belong together", shape_text(q), shape_text(k),
            shape_text(v));
}

Heads heads_of(Composition& c) {
  Heads heads;
  heads.flat = c.shape(c.input(kQ)).rank == 3;
  const std::int64_t kv_heads = c.attributes().integer("kv_num_heads", 0);
  heads.in.q = by_head(c, c.input(kQ), c.attributes().integer("q_num_heads", 0));
  heads.in.k = by_head(c, c.input(kK), kv_heads);
  heads.in.v = by_head(c, c.input(kV), kv_heads);
  require_axes(c, heads.in);
  return heads;
}

// Keys and values of earlier calls come first. The number of them.
std::int64_t put_past_first(Composition& c, AttentionInputs& in) {
  c.require(c.has(kPastKey) == c.has(kPastValue), "past_key and past_value belong together");
  if (!c.has(kPastKey)) return 0;
  c.require(!c.has(kNonpad), "past_key and nonpad_kv_seqlen exclude each other");
  in.k = c.concat({c.input(kPastKey), in.k}, 2);
  in.v = c.concat({c.input(kPastValue), in.v}, 2);
  return c.shape(c.input(kPastKey))[2];
}

// The mask as numbers to add; keys beyond its last column are not seen.
ValueId given_bias(Composition& c, std::int64_t keys, DType dtype) {
  if (!c.has(kMask)) return kNoValue;
  const ValueId mask = c.input(kMask);
  const ValueId bias =
      c.dtype(mask) == DType::kBool ? mask_bias(c, mask, dtype) : c.cast(mask, dtype);
  const Shape shape = c.shape(bias);
  if (shape.rank == 0 || shape[shape.rank - 1] == 1 || shape[shape.rank - 1] >= keys) return bias;
  Ints rest(shape.span().begin(), shape.span().end());
  rest.back() = keys - rest.back();
  const Tensor none = convert(Tensor::scalar(-INFINITY), dtype);
  const ValueId beyond = c("Expand", {c.constant(none), c.ints(rest)});
  return c.concat({bias, beyond}, -1);
}

KeyWindow window_of(Composition& c, const AttentionInputs& in, std::int64_t before) {
  const Attributes& attributes = c.attributes();
  KeyWindow window{.queries = c.shape(in.q)[2], .keys = c.shape(in.k)[2], .before = before};
  window.left = attributes.integer("left_window_size", -1);
  window.right = attributes.integer("right_window_size", -1);
  c.require(window.left >= -1 && window.right >= -1,
            "windows of {} and {} positions; -1 (any number) is the least", window.left,
            window.right);
  if (attributes.integer("is_causal", 0) != 0) window.right = 0;
  return window;
}

// 0 or -infinity by the positions of queries and keys and by how many keys of each example count:
// [batch, 1, queries, keys]. The last query stands at the last key that counts.
ValueId counted_bias(Composition& c, const KeyWindow& window, DType dtype) {
  const ValueId counted = c.input(kNonpad);
  const std::int64_t batch = c.shape(counted).elements();
  const auto positions = [&](std::int64_t size, const Ints& dims) {
    Ints numbers(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) numbers[static_cast<std::size_t>(i)] = i;
    return c.reshape(c.ints(numbers), dims);
  };
  const ValueId count = c.reshape(c.cast(counted, DType::kI64), {batch, 1, 1, 1});
  const ValueId key = positions(window.keys, {1, 1, 1, window.keys});
  ValueId seen = c("Less", {key, count});
  if (!window.sees_all()) {
    const ValueId query = positions(window.queries, {1, 1, window.queries, 1});
    const ValueId before = c("Sub", {count, c.ints({window.queries})});
    const ValueId ahead = c("Sub", {key, c.add(query, before)});
    if (window.right >= 0) {
      seen = c("And", {seen, c("LessOrEqual", {ahead, c.ints({window.right})})});
    }
    if (window.left >= 0) {
      seen = c("And", {seen, c("GreaterOrEqual", {ahead, c.ints({-window.left})})});
    }
  }
  return mask_bias(c, seen, dtype);
}

void show_matmul(Composition& c, const AttentionValues& values, Shown shown) {
  switch (shown) {
    case Shown::kMatMul:
      return c.result(kMatMul, values.matmul);
    case Shown::kCapped:
      return c.result(kMatMul, values.capped);
    case Shown::kScores:
      return c.result(kMatMul, values.scores);
    case Shown::kWeights:
      return c.result(kMatMul, values.weights);
  }
  c.require(false, "qk_matmul_output_mode is {}, 0 to 3 exist", static_cast<std::int64_t>(shown));
}

void compose_attention(Composition& c) {
  Heads heads = heads_of(c);
  AttentionInputs& in = heads.in;
  const Attributes& attributes = c.attributes();
  const DType dtype = computed(c.dtype(in.q));
  const std::int64_t past = put_past_first(c, in);
  const KeyWindow window = window_of(c, in, past);
  in.bias = given_bias(c, window.keys, dtype);
  if (c.has(kNonpad)) {
    in.bias = sum_of_biases(c, in.bias, counted_bias(c, window, dtype));
  } else if (!window.sees_all()) {
    in.bias = sum_of_biases(c, in.bias, window_bias(c, window, dtype));
  }
  const auto width = static_cast<double>(std::max<std::int64_t>(1, c.shape(in.q)[3]));
  in.scale = attributes.number("scale", 1.0 / std::sqrt(width));
  c.require(in.scale > 0.0, "scale is {}, a number above 0 is expected", in.scale);
  in.softcap = attributes.number("softcap", 0.0);
  const std::int64_t precision = attributes.integer("softmax_precision", 0);
  in.softmax = precision == 0 ? c.dtype(in.q) : dtype_of_onnx(precision);
  const auto shown = static_cast<Shown>(attributes.integer("qk_matmul_output_mode", 0));
  const bool kept = c.wants(kMatMul) && shown == Shown::kScores;
  const AttentionValues values = attend(c, in, kept ? Scores::kKept : Scores::kInside);
  if (c.wants(kMatMul)) show_matmul(c, values, shown);
  c.result(kPresentKey, in.k);
  c.result(kPresentValue, in.v);
  c.result(kY, heads.flat ? by_token(c, values.y) : values.y);
}

constexpr CompositeOp kRows[] = {
    {"Attention", 23, 6, 4,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision",
     compose_attention},
    {"Attention", 24, 7, 4,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision",
     compose_attention},
    {"Attention", 25, 7, 4,
     "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode "
     "right_window_size scale softcap softmax_precision",
     compose_attention},
};

}  // namespace

std::span<const CompositeOp> attention_composites() { return kRows; }

}  // namespace trainscope
