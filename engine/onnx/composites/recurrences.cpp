// LinearAttention and CausalConvWithState (opset 27): a state goes from token to token. All tokens
// of a step are written out one after the other.
#include <cmath>

#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

constexpr std::int64_t kMostTokens = 2048;  // more would make graphs of 20,000 nodes

// --- LinearAttention -----------------------------------------------------------------------------
enum Input : std::size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };

struct Sizes {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;  // of keys and values
  std::int64_t group = 0;  // heads of queries for each of them
  std::int64_t key_width = 0;
  std::int64_t value_width = 0;
};

// What a token brings along, each by token: [batch, heads, ...].
struct Tokens {
  std::vector<ValueId> q;      // [batch, heads, group, key_width]
  std::vector<ValueId> k;      // [batch, heads, key_width, 1]
  std::vector<ValueId> v;      // [batch, heads, 1, value_width]
  std::vector<ValueId> decay;  // [batch, heads, key_width or 1, 1]; empty: none
  std::vector<ValueId> beta;   // [batch, heads or 1, 1, 1]; empty: none
};

Sizes sizes_of(Composition& c) {
  Sizes sizes;
  const Shape q = c.shape(c.input(kQuery));
  const Shape k = c.shape(c.input(kKey));
  const Shape v = c.shape(c.input(kValue));
  const std::int64_t heads = c.attributes().integer("q_num_heads", 0);
  sizes.heads = c.attributes().integer("kv_num_heads", 0);
  c.require(sizes.heads > 0 && heads > 0 && heads % sizes.heads == 0,
            "q_num_heads={} must be a multiple of kv_num_heads={}", heads, sizes.heads);
  c.require(q.rank == 3 && k.rank == 3 && v.rank == 3, "query, key and value must have 3 axes");
  sizes.batch = q[0];
  sizes.tokens = q[1];
  sizes.group = heads / sizes.heads;
  sizes.key_width = q[2] / heads;
  sizes.value_width = v[2] / sizes.heads;
  const Ints tokens{sizes.batch, sizes.tokens};
  c.require(q[2] == heads * sizes.key_width && k[0] == q[0] && k[1] == q[1] && v[0] == q[0] &&
                v[1] == q[1] && k[2] == sizes.heads * sizes.key_width &&
                v[2] == sizes.heads * sizes.value_width,
            "query {}, key {} and value {} do not belong together", shape_text(q), shape_text(k),
            shape_text(v));
  c.require_supported(sizes.tokens >= 1 && sizes.tokens <= kMostTokens,
                      "{} tokens are written out one by one, at most {} of them", sizes.tokens,
                      kMostTokens);
  return sizes;
}

// x [batch, tokens, ...] as one value for each token, of these sizes after the batch.
std::vector<ValueId> tokens_of(Composition& c, ValueId x, const Ints& dims) {
  const Shape shape = c.shape(x);
  x = c.cast(x, computed(c.dtype(x)));
  std::vector<ValueId> tokens{x};
  if (shape[1] > 1) {
    const auto count = static_cast<std::size_t>(shape[1]);
    tokens = c.multi("Split", {x}, count, {{"axis", std::int64_t{1}}});
  }
  Ints each{shape[0]};
  each.insert(each.end(), dims.begin(), dims.end());
  for (ValueId& token : tokens) token = c.reshape(token, each);
  return tokens;
}

// The last axis of an input that has a number for each of `heads`, or `otherwise` numbers.
std::int64_t columns_of(Composition& c, std::size_t input, const Sizes& sizes,
                        std::int64_t otherwise) {
  const Shape shape = c.shape(c.input(input));
  const bool fits = shape.rank == 3 && shape[0] == sizes.batch && shape[1] == sizes.tokens &&
                    (shape[2] == sizes.heads || shape[2] == otherwise);
  c.require(fits, "input {} is {}, [{},{},{} or {}] is expected", input, shape_text(shape),
            sizes.batch, sizes.tokens, sizes.heads, otherwise);
  return shape[2];
}

Tokens read_tokens(Composition& c, const Sizes& s) {
  const std::string rule = c.attributes().text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  c.require(gated || delta || rule == "linear",
            "update_rule must be linear, gated, delta or "
            "gated_delta");
  c.require(gated == c.has(kDecay) && delta == c.has(kBeta),
            "update_rule {} asks for {} decay and {} beta", rule, gated ? "a" : "no",
            delta ? "a" : "no");
  Tokens t;
  t.q = tokens_of(c, c.input(kQuery), {s.heads, s.group, s.key_width});
  t.k = tokens_of(c, c.input(kKey), {s.heads, s.key_width, 1});
  t.v = tokens_of(c, c.input(kValue), {s.heads, 1, s.value_width});
  if (gated) {
    const std::int64_t columns = columns_of(c, kDecay, s, s.heads * s.key_width);
    t.decay = tokens_of(c, c.input(kDecay), {s.heads, columns / s.heads, 1});
  }
  if (delta) t.beta = tokens_of(c, c.input(kBeta), {columns_of(c, kBeta, s, 1), 1, 1});
  return t;
}

ValueId first_state(Composition& c, const Sizes& s, DType dtype) {
  if (c.has(kPast)) return c.cast(c.input(kPast), dtype);
  return c.constant(
      Tensor(TensorType{.dtype = dtype, .shape = {s.batch, s.heads, s.key_width, s.value_width}}));
}

// The state [batch, heads, key_width, value_width] after token t.
ValueId next_state(Composition& c, ValueId state, const Tokens& tokens, std::size_t t) {
  if (!tokens.decay.empty()) state = c.multiply(state, c("Exp", {tokens.decay[t]}));
  ValueId v = tokens.v[t];
  if (!tokens.beta.empty()) {
    const ValueId stored = c("MatMul", {c.transpose(tokens.k[t], {0, 1, 3, 2}), state});
    v = c.multiply(tokens.beta[t], c("Sub", {v, stored}));
  }
  return c.add(state, c.multiply(tokens.k[t], v));
}

void compose_linear_attention(Composition& c) {
  const Sizes s = sizes_of(c);
  const DType dtype = c.dtype(c.input(kQuery));
  const Tokens tokens = read_tokens(c, s);
  ValueId state = first_state(c, s, computed(dtype));
  const DType state_dtype = c.has(kPast) ? c.dtype(c.input(kPast)) : dtype;
  std::vector<ValueId> results;
  for (std::size_t t = 0; t < tokens.q.size(); ++t) {
    state = next_state(c, state, tokens, t);
    const ValueId y = c("MatMul", {tokens.q[t], state});
    results.push_back(c.reshape(y, {s.batch, 1, s.heads * s.group * s.value_width}));
  }
  double scale = c.attributes().number("scale", 0.0);
  if (scale == 0.0) scale = 1.0 / std::sqrt(static_cast<double>(s.key_width));
  const ValueId all = c.scaled(c.concat(std::move(results), 1), scale);
  c.result(0, c.cast(all, dtype));
  c.result(1, c.cast(state, state_dtype));
}

// --- CausalConvWithState -------------------------------------------------------------------------
// Each channel of x [batch, channels, length] is convolved with a kernel of its own, over what came
// before it too.
void compose_causal_conv(Composition& c) {
  const ValueId x = c.input(0);
  const DType dtype = c.dtype(x);
  const DType within = computed(dtype);
  const Shape shape = c.shape(x);
  const Shape weight = c.shape(c.input(1));
  c.require(shape.rank == 3 && weight.rank == 3 && weight[0] == shape[1] && weight[1] == 1 &&
                weight[2] >= 1,
            "input {} and weight {}: [batch, C, length] and [C, 1, k] are expected",
            shape_text(shape), shape_text(weight));
  const Shape state{shape[0], shape[1], weight[2] - 1};
  const ValueId past =
      c.has(3) ? c.input(3) : c.constant(Tensor(TensorType{.dtype = dtype, .shape = state}));
  c.require(c.shape(past) == state, "past_state is {}, {} is expected", shape_text(c.shape(past)),
            shape_text(state));
  const ValueId padded = weight[2] == 1 ? x : c.concat({past, x}, 2);
  std::vector<ValueId> operands{c.cast(padded, within), c.cast(c.input(1), within)};
  if (c.has(2)) operands.push_back(c.cast(c.input(2), within));
  ValueId y = c("Conv", operands, {{"group", shape[1]}, {"kernel_shape", Ints{weight[2]}}});
  const std::string activation = c.attributes().text("activation", "none");
  c.require(activation == "none" || activation == "silu" || activation == "swish",
            "activation must be none, silu or swish");
  if (activation != "none") y = c("Swish", {c.cast(c.cast(y, dtype), within)});
  c.result(0, c.cast(y, dtype));
  const std::int64_t length = c.shape(padded)[2];
  c.result(1, c.slice(padded, 2, length - weight[2] + 1, length));
}

constexpr CompositeOp kRows[] = {
    {"LinearAttention", 27, 6, 2, "chunk_size kv_num_heads q_num_heads scale update_rule",
     compose_linear_attention},
    {"CausalConvWithState", 27, 4, 2, "activation", compose_causal_conv},
};

}  // namespace

std::span<const CompositeOp> recurrence_composites() { return kRows; }

}  // namespace trainscope
