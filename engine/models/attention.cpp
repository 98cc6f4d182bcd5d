// Scaled dot products of heads.
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

ValueName repeated_heads(PlainBuilder& b, const std::string& label, const ValueName& x,
                         const HeadLayout& layout, std::int64_t times) {
  if (times == 1) return x;
  const ValueName one = b.node("Unsqueeze", label + "_one", {x, b.ints({2})});
  const ValueName all = b.node("Expand", label + "_all", {one, b.ints({1, 1, times, 1, 1})});
  return b.node("Reshape", label + "_shared", {all, b.ints({0, layout.heads, -1, layout.size})});
}

ValueName attend(PlainBuilder& b, const Attention& attention, const QueryKeyValue& inputs) {
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(attention.size)));
  // The queries are fewer than the scores: scaling them is cheaper.
  const ValueName scaled = b.node("Mul", "query_scaled", {inputs.query, b.number(scale)});
  ValueName scores = b.node("MatMul", "scores", {scaled, inputs.key});  // [B, heads, T, T]
  if (!attention.mask.empty()) scores = b.node("Add", "masked", {scores, attention.mask});
  ValueName weights = b.node("Softmax", "weights", {scores}, {{"axis", std::int64_t{-1}}});
  weights = dropout(b, "weights_drop", weights, attention.dropout);
  const ValueName mixed = b.node("MatMul", "mixed", {weights, inputs.value});
  const ValueName by_token = b.node("Transpose", "by_token", {mixed}, {{"perm", Ints{0, 2, 1, 3}}});
  return b.node("Reshape", "joined", {by_token, b.ints({0, 0, attention.heads * attention.size})});
}

}  // namespace trainscope
