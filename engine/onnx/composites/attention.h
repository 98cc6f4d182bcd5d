// What the attention ops of ONNX and of com.microsoft are made of: matmuls, a bias, a softmax.
#pragma once

#include <cstdint>

#include "engine/onnx/composites/composition.h"

namespace trainscope {

// x [batch, tokens, heads * width] as [batch, heads, tokens, width]; with four axes x itself.
ValueId by_head(Composition& c, ValueId x, std::int64_t heads);
// [batch, heads, tokens, width] as [batch, tokens, heads * width].
ValueId by_token(Composition& c, ValueId y);
// Each head `times` times in a row: [batch, heads, ...] as [batch, heads * times, ...].
ValueId repeat_heads(Composition& c, ValueId x, std::int64_t times);

// Which keys a query sees by their positions: query i is at place i + before of the keys.
struct KeyWindow {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t before = 0;
  std::int64_t left = -1;   // the most keys before its own place; -1: any number
  std::int64_t right = -1;  // and after it; 0: a causal model
  bool sees_all() const { return left < 0 && right < 0; }
};
// 0 where a query sees a key, else -infinity: [queries, keys] in f32 or f64.
ValueId window_bias(Composition& c, const KeyWindow& window, DType dtype);
// A mask of booleans as numbers to add: 0 for true, -infinity for false.
ValueId mask_bias(Composition& c, ValueId mask, DType dtype);
// a + b, either may be kNoValue.
ValueId sum_of_biases(Composition& c, ValueId a, ValueId b);

// A softmax along the axis whose steps are each rounded to f16, as ONNX defines it within that
// type: it shows in the results.
ValueId softmax_by_steps(Composition& c, ValueId x, std::int64_t axis);

// Scores are scale * q k', capped, plus the bias.
struct AttentionInputs {
  ValueId q = kNoValue;     // [batch, heads, queries, width]
  ValueId k = kNoValue;     // [batch, heads of k and v, keys, width]
  ValueId v = kNoValue;     // [batch, heads of k and v, keys, width of v]
  ValueId bias = kNoValue;  // of the type that q is computed in; -infinity: not seen
  double scale = 1.0;
  double softcap = 0.0;  // 0: none
  DType softmax = DType::kF32;
};
struct AttentionValues {
  ValueId matmul = kNoValue;  // scale * q k'
  ValueId capped = kNoValue;
  ValueId scores = kNoValue;   // with the bias
  ValueId weights = kNoValue;  // of a query that sees no key: 0
  ValueId y = kNoValue;        // [batch, heads, queries, width of v]
};
// `keep_scores`: they are asked for with the bias as it was given.
enum class Scores : std::uint8_t { kInside, kKept };
AttentionValues attend(Composition& c, const AttentionInputs& in, Scores scores = Scores::kInside);

}  // namespace trainscope
