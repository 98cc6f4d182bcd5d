// Attention and what sequences need, for the transformer builders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/models/plain_builder.h"

namespace trainscope {

// The first rows of a table [longest, width]: as many as `length` (i64[1]) says. ONNX's shape
// inference does not find their shape: the caller describes it.
ValueName leading_rows(PlainBuilder& b, std::string_view label, const ValueName& table,
                       const ValueName& length);

// [T, T] for T tokens (`length`: i64[1]): -infinity above the diagonal, 0 elsewhere. Added to the
// scores, it costs the backward nothing.
ValueName causal_mask(PlainBuilder& b, const ValueName& length);

// [B, T, heads * size] -> [B, heads, T, size], or with `transposed` [B, heads, size, T].
struct HeadLayout {
  std::int64_t heads = 0;
  std::int64_t size = 0;
  bool transposed = false;
};
ValueName by_head(PlainBuilder& b, std::string_view label, const ValueName& x,
                  const HeadLayout& layout);

// [B, heads / times, T, size] -> [B, heads, T, size]: each head `times` times in a row, for as many
// heads of queries that share it.
ValueName repeated_heads(PlainBuilder& b, const std::string& label, const ValueName& x,
                         const HeadLayout& layout, std::int64_t times);

struct Attention {
  std::int64_t heads = 0;
  std::int64_t size = 0;  // of a head
  double dropout = 0.0;   // of the weights
  ValueName mask = {};    // added to the scores [B, heads, T, T]; empty: none
};
struct QueryKeyValue {
  ValueName query;  // [B, heads, T, size]
  ValueName key;    // [B, heads, size, T]
  ValueName value;  // [B, heads, T, size]
};
// softmax(query key / sqrt(size) + mask) value, as [B, T, heads * size].
ValueName attend(PlainBuilder& b, const Attention& attention, const QueryKeyValue& inputs);

}  // namespace trainscope
