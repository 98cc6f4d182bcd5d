// Scaled dot products of heads, also where several query heads share a key head.
#include "engine/models/attention.h"

#include <cmath>
#include <limits>

#include "engine/models/layers.h"

namespace trainscope {

ValueName leading_rows(PlainBuilder& b, std::string_view label, const ValueName& table,
                       const ValueName& length) {
  const ValueName first = b.ints({0});  // rows 0 to length, along axis 0
  return b.node("Slice", label, {table, first, length, first});
}

ValueName causal_mask(PlainBuilder& b, const ValueName& length) {
  const ValueName square =
      b.node("Concat", "mask_shape", {length, length}, {{"axis", std::int64_t{0}}});
  const ValueName nothing = b.number(-std::numeric_limits<float>::infinity());
  const ValueName full = b.node("Expand", "mask_full", {nothing, square});
  return b.node("Trilu", "mask", {full, b.integer(1)});
}

ValueName by_head(PlainBuilder& b, std::string_view label, const ValueName& x,
                  const HeadLayout& layout) {
  const ValueName heads = b.node("Reshape", std::string(label) + "_heads",
                                 {x, b.ints({0, 0, layout.heads, layout.size})});
  const Ints order = layout.transposed ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3};
  return b.node("Transpose", label, {heads}, {{"perm", order}});
}

// The rows of the query heads that share a key head lie one below the other: one matmul for all of
// them, and nothing is repeated. [B, heads, T, x] and [B, key_heads, heads / key_heads * T, x] are
// the same bytes.
ValueName attend(PlainBuilder& b, const Attention& attention, const QueryKeyValue& inputs) {
  const bool shared = attention.key_heads != attention.heads;
  const auto reshaped = [&](std::string_view label, const ValueName& x, const Ints& dims) {
    return shared ? b.node("Reshape", label, {x, b.ints(dims)}) : x;
  };
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(attention.size)));
  // The queries are fewer than the scores: scaling them is cheaper.
  const ValueName scaled = b.node("Mul", "query_scaled", {inputs.query, b.number(scale)});
  const ValueName rows =
      reshaped("query_rows", scaled, {0, attention.key_heads, -1, attention.size});
  ValueName scores = b.node("MatMul", "scores", {rows, inputs.key});
  scores = reshaped("scores_by_head", scores, {0, attention.heads, -1, 0});  // [B, heads, T, T]
  if (!attention.mask.empty()) scores = b.node("Add", "masked", {scores, attention.mask});
  ValueName weights = b.node("Softmax", "weights", {scores}, {{"axis", std::int64_t{-1}}});
  weights = dropout(b, "weights_drop", weights, attention.dropout);
  weights = reshaped("weight_rows", weights, {0, attention.key_heads, -1, 0});
  ValueName mixed = b.node("MatMul", "mixed", {weights, inputs.value});
  mixed = reshaped("mixed_by_head", mixed, {0, attention.heads, -1, attention.size});
  const ValueName by_token = b.node("Transpose", "by_token", {mixed}, {{"perm", Ints{0, 2, 1, 3}}});
  return b.node("Reshape", "joined", {by_token, b.ints({0, 0, attention.heads * attention.size})});
}

}  // namespace trainscope
