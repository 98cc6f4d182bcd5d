// The attention ops of the domain com.microsoft, written with matmuls and a softmax.
#include <cmath>

#include "engine/onnx/composites/attention.h"
#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

constexpr double kMaskFilter = -10000.0;  // what is added to the scores of masked keys

std::int64_t heads_of(Composition& c) {
  const std::int64_t heads = c.attributes().integer("num_heads", 0);
  c.require(heads > 0, "num_heads is {}, a number above 0 is expected", heads);
  return heads;
}

double scale_of(Composition& c, ValueId q) {
  const auto width = static_cast<double>(std::max<std::int64_t>(1, c.shape(q)[3]));
  const double scale = c.attributes().number("scale", 0.0);
  return scale == 0.0 ? 1.0 / std::sqrt(width) : scale;
}

// What is added to the scores: 0 where the mask is not 0.
ValueId filter(Composition& c, ValueId mask, DType dtype) {
  const double masked = c.attributes().number("mask_filter_value", kMaskFilter);
  const ValueId seen = c.cast(mask, DType::kBool);
  return c("Where", {seen, c.scalar(0.0, dtype), c.scalar(masked, dtype)});
}

ValueId positions(Composition& c, std::int64_t keys, DType dtype) {
  Ints numbers;
  for (std::int64_t i = 0; i < keys; ++i) numbers.push_back(i);
  return c.cast(c.reshape(c.ints(numbers), {1, 1, 1, keys}), dtype);
}

struct Scored {
  std::int64_t batch = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  DType dtype = DType::kF32;  // of the bias
};

// A mask of integers in one of its forms: how many keys of each example count [batch], the keys
// [batch, keys], or queries and keys [batch, queries, keys].
ValueId bias_of_mask(Composition& c, ValueId mask, const Scored& s) {
  const Shape shape = c.shape(mask);
  if (shape == Shape{s.batch}) {
    const ValueId counted = c.reshape(mask, {s.batch, 1, 1, 1});
    return filter(c, c("Less", {positions(c, s.keys, c.dtype(mask)), counted}), s.dtype);
  }
  if (shape == Shape{s.batch, s.keys}) {
    return filter(c, c.reshape(mask, {s.batch, 1, 1, s.keys}), s.dtype);
  }
  c.require_supported(shape == Shape{s.batch, s.queries, s.keys},
                      "a mask {} for [{},{},{}] of batch, queries, keys", shape_text(shape),
                      s.batch, s.queries, s.keys);
  return filter(c, c.reshape(mask, {s.batch, 1, s.queries, s.keys}), s.dtype);
}

struct BiasInputs {
  std::size_t mask = 0;
  std::size_t bias = 0;
  std::int64_t before = 0;  // keys that come before those of the queries
};

ValueId whole_bias(Composition& c, const AttentionInputs& in, const BiasInputs& from) {
  const Scored s{.batch = c.shape(in.q)[0],
                 .queries = c.shape(in.q)[2],
                 .keys = c.shape(in.k)[2],
                 .dtype = computed(c.dtype(in.q))};
  ValueId bias = kNoValue;
  if (c.has(from.mask)) bias = bias_of_mask(c, c.input(from.mask), s);
  if (c.has(from.bias)) bias = sum_of_biases(c, bias, c.cast(c.input(from.bias), s.dtype));
  if (c.attributes().integer("unidirectional", 0) == 0) return bias;
  const KeyWindow window{
      .queries = s.queries, .keys = s.keys, .before = from.before, .left = -1, .right = 0};
  return sum_of_biases(c, bias, window_bias(c, window, s.dtype));
}

// --- Attention: q, k and v are made of one input -------------------------------------------------
std::vector<ValueId> projections(Composition& c, std::int64_t heads) {
  ValueId all = c("MatMul", {c.input(0), c.input(1)});
  if (c.has(2)) all = c.add(all, c.input(2));
  const std::int64_t width = c.shape(all)[2];
  Ints sizes = c.attributes().integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes = Ints(3, width / 3);
  c.require(sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == width,
            "{} columns of the weights cannot be cut into q, k and v", width);
  std::vector<ValueId> made =
      c.multi("Split", {all, c.ints(sizes)}, 3, {{"axis", std::int64_t{2}}});
  for (ValueId& each : made) each = by_head(c, each, heads);
  return made;
}

void compose_fused_attention(Composition& c) {
  const Attributes& attributes = c.attributes();
  c.require_supported(attributes.integer("do_rotary", 0) == 0 && !c.has(6) &&
                          attributes.integer("past_present_share_buffer", 0) == 0,
                      "rotary positions and shared caches are not supported");
  c.require(c.shape(c.input(0)).rank == 3, "input 0 must be [batch, tokens, width], is {}",
            shape_text(c.shape(c.input(0))));
  const std::vector<ValueId> qkv = projections(c, heads_of(c));
  AttentionInputs in{.q = qkv[0], .k = qkv[1], .v = qkv[2]};
  std::int64_t before = 0;
  if (c.has(4)) {  // [2, batch, heads, keys, width]
    const Shape past = c.shape(c.input(4));
    c.require(past.rank == 5 && past[0] == 2,
              "past is {}, [2, batch, heads, keys, width] is "
              "expected",
              shape_text(past));
    before = past[3];
    const std::vector<ValueId> both =
        c.multi("Split", {c.input(4)}, 2, {{"axis", std::int64_t{0}}});
    const Ints dims{past[1], past[2], past[3], past[4]};
    in.k = c.concat({c.reshape(both[0], dims), in.k}, 2);
    in.v = c.concat({c.reshape(both[1], dims), in.v}, 2);
  }
  in.scale = scale_of(c, in.q);
  in.softmax = c.dtype(in.q);
  in.bias = whole_bias(c, in, {.mask = 3, .bias = 5, .before = before});
  if (c.wants(1)) {
    const ValueId axis = c.ints({0});
    c.result(1, c.concat({c("Unsqueeze", {in.k, axis}), c("Unsqueeze", {in.v, axis})}, 0));
  }
  c.result(0, by_token(c, attend(c, in).y));
}

// --- MultiHeadAttention --------------------------------------------------------------------------
// [batch, tokens, heads, parts, width] as one value for each part: [batch, heads, tokens, width].
std::vector<ValueId> unpacked(Composition& c, ValueId packed, std::int64_t parts) {
  const Shape s = c.shape(packed);
  c.require(s.rank == 5 && s[3] == parts, "{} holds no {} parts side by side", shape_text(s),
            parts);
  std::vector<ValueId> made =
      c.multi("Split", {packed}, static_cast<std::size_t>(parts), {{"axis", std::int64_t{3}}});
  for (ValueId& each : made) {
    each = c.transpose(c.reshape(each, {s[0], s[1], s[2], s[4]}), {0, 2, 1, 3});
  }
  return made;
}

// Query, key and value with their shares of the bias, [batch, tokens, heads * width], by head.
void read_operands(Composition& c, AttentionInputs& in) {
  const std::int64_t heads = heads_of(c);
  const ValueId query = c.input(0);
  if (!c.has(1)) {
    c.require_supported(!c.has(3), "a bias beside packed inputs is not supported");
    const std::vector<ValueId> qkv = unpacked(c, query, 3);
    in.q = qkv[0];
    in.k = qkv[1];
    in.v = qkv[2];
    return;
  }
  std::vector<ValueId> operands{query, c.input(1), c.has(2) ? c.input(2) : kNoValue};
  if (c.has(3)) {
    c.require_supported(c.has(2) && c.shape(operands[1]).rank == 3,
                        "a bias beside packed inputs is not supported");
    std::int64_t begin = 0;
    for (ValueId& each : operands) {
      const std::int64_t width = c.shape(each)[2];
      each = c.add(each, c.slice(c.input(3), 0, begin, begin + width));
      begin += width;
    }
  }
  in.q = by_head(c, operands[0], heads);
  if (c.has(2)) {
    in.k = by_head(c, operands[1], heads);
    in.v = by_head(c, operands[2], heads);
    return;
  }
  const std::vector<ValueId> kv = unpacked(c, operands[1], 2);
  in.k = kv[0];
  in.v = kv[1];
}

void compose_multi_head(Composition& c) {
  AttentionInputs in;
  read_operands(c, in);
  c.require(c.has(6) == c.has(7), "past_key and past_value belong together");
  c.require_supported(!c.has(8) && !c.has(9), "shared caches and beams are not supported");
  std::int64_t before = 0;
  if (c.has(6)) {
    before = c.shape(c.input(6))[2];
    in.k = c.concat({c.input(6), in.k}, 2);
    in.v = c.concat({c.input(7), in.v}, 2);
  }
  in.scale = scale_of(c, in.q);
  in.softmax = c.dtype(in.q);
  in.bias = whole_bias(c, in, {.mask = 4, .bias = 5, .before = before});
  c.result(1, in.k);
  c.result(2, in.v);
  c.result(0, by_token(c, attend(c, in).y));
}

// --- Rotary positions ----------------------------------------------------------------------------
// x [batch, heads, tokens, width] rotated by rows of the tables [positions, pairs].
struct RotaryTables {
  ValueId cos = kNoValue;
  ValueId sin = kNoValue;
  ValueId positions = kNoValue;  // [batch, tokens]; kNoValue: 0, 1, ...
  std::int64_t interleaved = 0;
};

ValueId rotated(Composition& c, ValueId x, const RotaryTables& tables) {
  const std::int64_t tokens = c.shape(x)[2];
  const auto rows = [&](ValueId table) {
    c.require(c.shape(table).rank == 2,
              "a table of positions is {}, [positions, pairs] is expected",
              shape_text(c.shape(table)));
    table = c.cast(table, computed(c.dtype(x)));
    if (tables.positions == kNoValue) {
      c.require(c.shape(table)[0] >= tokens, "a table of {} positions for {} tokens",
                c.shape(table)[0], tokens);
      return c.slice(table, 0, 0, tokens);
    }
    return c("Unsqueeze", {c("Gather", {table, tables.positions}), c.ints({1})});
  };
  const ValueId cos = rows(tables.cos);
  const ValueId sin = rows(tables.sin);
  return c("RotaryEmbedding", {x, cos, sin}, {{"interleaved", tables.interleaved}});
}

// One position [1] is that of the first token; else there is one for each: [batch, tokens].
ValueId positions_of(Composition& c, ValueId given, const Shape& x) {
  if (c.shape(given).rank == 2) return given;
  c.require(c.shape(given).elements() == 1, "positions {}: [1] or [batch, tokens] is expected",
            shape_text(c.shape(given)));
  Ints numbers;
  for (std::int64_t i = 0; i < x[2]; ++i) numbers.push_back(i);
  const ValueId first = c.reshape(c.cast(given, DType::kI64), {1, 1});
  const ValueId one = c.add(c.reshape(c.ints(numbers), {1, x[2]}), first);
  return c("Expand", {one, c.ints({x[0], x[2]})});
}

void compose_rotary(Composition& c) {
  const Attributes& attributes = c.attributes();
  c.require_supported(
      attributes.integer("is_packed_batching", 0) == 0 && attributes.number("scale", 1.0) == 1.0,
      "packed batches and scales are not supported");
  const ValueId given = c.input(0);
  const bool flat = c.shape(given).rank == 3;
  std::int64_t heads = attributes.integer("num_heads", 0);
  const Shape table = c.shape(c.input(2));
  if (flat && heads == 0 && table.rank == 2 && table[1] > 0) {
    heads = c.shape(given)[2] / (2 * table[1]);
  }
  const ValueId x = by_head(c, given, heads);
  const RotaryTables tables{.cos = c.input(2),
                            .sin = c.input(3),
                            .positions = positions_of(c, c.input(1), c.shape(x)),
                            .interleaved = attributes.integer("interleaved", 0)};
  const ValueId y = rotated(c, x, tables);
  c.result(0, flat ? by_token(c, y) : y);
}

// --- GroupQueryAttention: of whole sequences, without a cache ------------------------------------
void read_grouped(Composition& c, AttentionInputs& in) {
  const std::int64_t heads = heads_of(c);
  const std::int64_t kv_heads = c.attributes().integer("kv_num_heads", 0);
  if (c.has(1)) {
    in.q = by_head(c, c.input(0), heads);
    in.k = by_head(c, c.input(1), kv_heads);
    in.v = by_head(c, c.input(2), kv_heads);
    return;
  }
  const Shape packed = c.shape(c.input(0));
  const std::int64_t all = heads + 2 * kv_heads;
  c.require(packed.rank == 3 && kv_heads > 0 && packed[2] % all == 0,
            "{} cannot be cut into {} heads of q, k and v", shape_text(packed), all);
  const std::int64_t width = packed[2] / all;
  const std::vector<ValueId> parts =
      c.multi("Split", {c.input(0), c.ints({heads * width, kv_heads * width, kv_heads * width})}, 3,
              {{"axis", std::int64_t{2}}});
  in.q = by_head(c, parts[0], heads);
  in.k = by_head(c, parts[1], kv_heads);
  in.v = by_head(c, parts[2], kv_heads);
}

void refuse_caches(Composition& c) {
  for (const std::size_t past : {std::size_t{3}, std::size_t{4}}) {
    const bool empty = !c.has(past) || c.shape(c.input(past)).elements() == 0;
    c.require_supported(empty, "caches of keys and values are not supported");
  }
  c.require_supported(c.attributes().integer("smooth_softmax", -1) <= 0 && !c.has(11),
                      "a smooth softmax and head sinks are not supported");
}

// Whether input 5, the last position of each example that counts, says that all do.
bool counts_all(Composition& c, std::int64_t keys) {
  const Tensor* last = c.has(5) ? c.known(5) : nullptr;
  if (last == nullptr) return !c.has(5);
  return std::ranges::all_of(as_ints(*last), [keys](std::int64_t at) { return at == keys - 1; });
}

// Keys behind the last position of an example are padding.
ValueId padding_bias(Composition& c, const AttentionInputs& in) {
  const Scored s{.batch = c.shape(in.q)[0],
                 .queries = c.shape(in.q)[2],
                 .keys = c.shape(in.k)[2],
                 .dtype = in.softmax};
  if (counts_all(c, s.keys)) return kNoValue;
  const ValueId last = c.reshape(c.cast(c.input(5), DType::kI64), {s.batch});
  return bias_of_mask(c, c.add(last, c.scalar(1.0, DType::kI64)), s);
}

void compose_grouped(Composition& c) {
  refuse_caches(c);
  const Attributes& attributes = c.attributes();
  AttentionInputs in;
  read_grouped(c, in);
  if (attributes.integer("do_rotary", 0) != 0) {
    const RotaryTables tables{.cos = c.input(7),
                              .sin = c.input(8),
                              .positions = c.has(9) ? c.input(9) : kNoValue,
                              .interleaved = attributes.integer("rotary_interleaved", 0)};
    in.q = rotated(c, in.q, tables);
    in.k = rotated(c, in.k, tables);
  }
  in.scale = scale_of(c, in.q);
  in.softcap = attributes.number("softcap", 0.0);
  in.softmax = computed(c.dtype(in.q));
  KeyWindow window{.queries = c.shape(in.q)[2], .keys = c.shape(in.k)[2]};
  // A window of n tokens is the token itself and n - 1 before it.
  const std::int64_t size = attributes.integer("local_window_size", -1);
  window.left = size > 0 ? size - 1 : -1;
  window.right = attributes.integer("causal", 1) != 0 ? 0 : -1;
  if (c.has(10)) in.bias = c.cast(c.input(10), in.softmax);
  in.bias = sum_of_biases(c, in.bias, padding_bias(c, in));
  if (!window.sees_all()) in.bias = sum_of_biases(c, in.bias, window_bias(c, window, in.softmax));
  c.result(1, in.k);
  c.result(2, in.v);
  c.result(0, by_token(c, attend(c, in).y));
}

constexpr CompositeOp kRows[] = {
    {"Attention", 1, 7, 2,
     "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
     "rotary_embedding_dim scale unidirectional",
     compose_fused_attention},
    {"MultiHeadAttention", 1, 10, 4, "mask_filter_value num_heads scale unidirectional",
     compose_multi_head},
    {"RotaryEmbedding", 1, 4, 1,
     "interleaved is_packed_batching num_heads rotary_embedding_dim scale", compose_rotary},
    {"GroupQueryAttention", 1, 12, 3,
     "causal do_rotary kv_num_heads local_window_size num_heads rotary_interleaved scale "
     "smooth_softmax softcap",
     compose_grouped},
};

}  // namespace

std::span<const CompositeOp> microsoft_attention_composites() { return kRows; }

}  // namespace trainscope
