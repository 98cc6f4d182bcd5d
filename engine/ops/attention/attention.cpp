// ai.trainscope's Attention and its gradient: softmax(scale * q k' + bias) v for each head, the
// scores never whole (after Dao et al., "FlashAttention", 2022). Heads lie side by side in each
// token, as linear layers leave them.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/attention/dropout_rules.h"
#include "engine/ops/gemm/matmul_cost.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// Where the inputs of Attention begin: in the gradient they come after dy, y and output 1.
constexpr int kForward = 0;
constexpr int kGradient = 3;

bool is_packed(const OpArgs& args, int first) { return !args.has(first + 1); }

AttentionParams params_at(const OpArgs& args, int first) {
  AttentionParams params{.causal = args.attributes.integer("causal", 0) != 0,
                         .packed = is_packed(args, first),
                         .dropout = dropout_params(args, 0.0)};
  const Shape& q = args.shape(first);
  if (params.packed) {
    params.heads = args.attributes.integer("q_heads", 0);
    params.kv_heads = args.attributes.integer("kv_heads", params.heads);
  } else {
    params.heads = q[2];
    params.kv_heads = args.shape(first + 1)[2];
  }
  const double width = static_cast<double>(std::max<std::int64_t>(1, q[3]));
  params.scale = args.attributes.number("scale", 1.0 / std::sqrt(width));
  return params;
}

Params attention_params(const OpArgs& args) { return params_at(args, kForward); }
Params gradient_params(const OpArgs& args) { return params_at(args, kGradient); }

struct Sizes {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;  // queries
  std::int64_t keys = 0;    // of keys and values
  std::int64_t heads = 0;   // of queries
  std::int64_t head_width = 0;
};

void require_packed(const OpArgs& args, int first, const AttentionParams& params) {
  require(!args.has(first + 2), ErrorCode::kBadInput, "input {} (v) is given without k", first + 2);
  require(params.heads > 0 && params.kv_heads > 0, ErrorCode::kBadInput,
          "q_heads={} and kv_heads={} must be above 0 where k and v are left out", params.heads,
          params.kv_heads);
  const std::int64_t all = checked_add(params.heads, checked_multiply(2, params.kv_heads));
  require(args.shape(first)[2] == all, ErrorCode::kBadInput,
          "input {} is {}: its third axis must be q_heads + 2 * kv_heads = {}", first,
          type_text(args.type(first)), all);
}

void require_separate(const OpArgs& args, int first) {
  require(args.has(first + 2), ErrorCode::kBadInput, "input {} (v) is missing", first + 2);
  const Shape& q = args.shape(first);
  require_rank(args, first + 1, 4);
  const Shape& k = args.shape(first + 1);
  require_shape(args, first + 2, k);
  require(k[0] == q[0] && k[3] == q[3], ErrorCode::kBadInput,
          "q {} and k {} must agree in the first and the last axis", shape_text(q), shape_text(k));
}

// The bias must be broadcast to [batch, heads, tokens, keys].
void require_bias(const OpArgs& args, int input, const Sizes& sizes) {
  require_dtype(args, input, computed(args.type(input - 3).dtype));
  const Shape scores{sizes.batch, sizes.heads, sizes.tokens, sizes.keys};
  const Shape& bias = args.shape(input);
  require(bias.rank <= 4 && broadcast_shapes(bias, scores) == scores, ErrorCode::kBadInput,
          "the bias {} cannot be broadcast to the scores {}", shape_text(bias), shape_text(scores));
}

// The weights drop out by the number of the step.
void require_step(const OpArgs& args, int input, const AttentionParams& params) {
  if (!args.has(input)) {
    require(params.dropout.ratio == 0.0, ErrorCode::kBadInput,
            "input {} (step) is missing, which ratio={} needs", input, params.dropout.ratio);
    return;
  }
  require_dtype(args, input, DType::kI64);
  require_rank(args, input, 0);
}

Sizes checked_sizes(const OpArgs& args, int first) {
  require_float(args, first);
  for (int i = first + 1; i < std::min(args.input_count(), first + 3); ++i) {
    if (args.has(i)) require_dtype(args, i, args.type(first).dtype);
  }
  require_rank(args, first, 4);
  if (!is_packed(args, first)) require_separate(args, first);
  const AttentionParams params = params_at(args, first);
  if (params.packed) require_packed(args, first, params);
  const Shape& q = args.shape(first);
  const Sizes sizes{.batch = q[0],
                    .tokens = q[1],
                    .keys = params.packed ? q[1] : args.shape(first + 1)[1],
                    .heads = params.heads,
                    .head_width = q[3]};
  const bool shared =
      params.heads > 0 && params.kv_heads > 0 && params.heads % params.kv_heads == 0;
  require(shared, ErrorCode::kBadInput, "{} heads of q cannot share {} heads of k and v",
          params.heads, params.kv_heads);
  require(!params.causal || sizes.tokens == sizes.keys, ErrorCode::kBadInput,
          "causal attention of {} queries to {} keys; both must be the same tokens", sizes.tokens,
          sizes.keys);
  require(sizes.keys > 0 || sizes.tokens == 0, ErrorCode::kBadInput,
          "{} queries have no keys to attend to", sizes.tokens);
  if (args.has(first + 3)) require_bias(args, first + 3, sizes);
  require_step(args, first + 4, params);
  return sizes;
}

Types attention_shape(const OpArgs& args) {
  const Sizes sizes = checked_sizes(args, kForward);
  const DType dtype = args.type(0).dtype;
  return {{dtype, {sizes.batch, sizes.tokens, sizes.heads, sizes.head_width}},
          {computed(dtype), {sizes.batch, sizes.heads, sizes.tokens, 2}}};
}

// Inputs dy, y, output 1, then those of Attention.
Types gradient_shape(const OpArgs& args) {
  const Sizes sizes = checked_sizes(args, kGradient);
  require_same_types(args, 0, 1);
  require_dtype(args, 0, args.type(kGradient).dtype);
  require_dtype(args, 2, computed(args.type(kGradient).dtype));
  require_shape(args, 0, {sizes.batch, sizes.tokens, sizes.heads, sizes.head_width});
  require_shape(args, 2, {sizes.batch, sizes.heads, sizes.tokens, 2});
  if (!is_packed(args, kGradient)) return {args.type(3), args.type(4), args.type(5)};
  require(args.output_count == 1, ErrorCode::kBadInput,
          "{} outputs asked for; without k and v there is one", args.output_count);
  return {args.type(3)};
}

Values attention_gradient(const GradArgs& g) {
  require(g.dy.size() < 2 || g.dy[1] == kNoValue, ErrorCode::kBadInput,
          "output 1 of Attention influences the loss, but has no gradient");
  require(!(g.x.size() > 3 && g.x[3] != kNoValue && g.wants(3)), ErrorCode::kBadInput,
          "the bias of Attention has no gradient");
  require(g.y.size() > 1 && g.y[1] != kNoValue, ErrorCode::kBadInput,
          "Attention is differentiated only with its second output");
  Values inputs{g.dy[0], g.y[0], g.y[1]};
  inputs.insert(inputs.end(), g.x.begin(), g.x.end());
  const bool packed = g.x.size() < 2 || g.x[1] == kNoValue;
  Values grads = g.b.multi("AttentionGrad", std::move(inputs), packed ? 1 : 3, g.node.attributes);
  grads.resize(g.x.size(), kNoValue);
  return grads;
}

// Matmuls, each 2 FLOPs per score and element of a head, 12 of the softmax and 20 of
// drawing what drops out. No tensor has as many elements as there are scores, so they may be beyond
// 63 bits.
Cost cost_with(const OpArgs& args, int first, std::int64_t matmuls) {
  const Sizes sizes = checked_sizes(args, first);
  std::int64_t scores = matmul_flops(sizes.batch * sizes.heads * sizes.tokens, sizes.keys) / 2;
  if (args.attributes.integer("causal", 0) != 0) scores = (scores + 1) / 2;
  const std::int64_t others = args.attributes.number("ratio", 0.0) == 0.0 ? 6 : 16;
  return with_flops(args, matmul_flops(scores, matmuls * sizes.head_width + others));
}
Cost attention_cost(const OpArgs& args) { return cost_with(args, kForward, 2); }
Cost gradient_cost(const OpArgs& args) { return cost_with(args, kGradient, 5); }

// A block's rows of q are read before the same rows of y are written; packed, k and v are read on.
std::vector<InPlace> attention_in_place(const OpArgs& args) {
  if (is_packed(args, kForward)) return {};
  return {{.output = 0, .input = 0}};
}
std::vector<InPlace> gradient_in_place(const OpArgs& args) {
  if (is_packed(args, kGradient)) return {};
  return {{.output = 0, .input = 0}, {.output = 0, .input = 3}};
}

// Heads are cut, those of queries and those of keys and values alike.
std::optional<Shards> shard_from(const ShardingArgs& a, int first) {
  const auto params = params_at(a.op, first);
  const int last = params.packed ? first : first + 2;
  const bool biased = a.op.input_count() > first + 3 && a.op.has(first + 3);
  const Shape bias = biased ? a.op.shape(first + 3) : Shape{};
  if (std::ranges::all_of(a.inputs, &Shard::is_whole)) return every_output(a, {});
  for (int i = 0; i <= last; ++i) {
    const int heads = i == 2 && first == kGradient ? 1 : 2;  // of output 1 it is axis 1
    if (a.op.has(i) && input_shard(a, i) != Shard::split(heads)) return std::nullopt;
  }
  if (biased && !input_shard(a, first + 3).is_whole()) return std::nullopt;
  if (biased && bias.rank >= 3 && bias[bias.rank - 3] != 1) return std::nullopt;
  for (std::int64_t heads : {params.heads, params.kv_heads}) {
    if (heads % a.shards != 0) refuse_heads(a, heads);
  }
  Shards shards = every_output(a, Shard::split(2));
  if (first == kForward && shards.size() > 1) shards[1] = Shard::split(1);
  return shards;
}
std::optional<Shards> shard_attention(const ShardingArgs& a) { return shard_from(a, kForward); }
std::optional<Shards> shard_attention_grad(const ShardingArgs& a) {
  return shard_from(a, kGradient);
}
constexpr std::array<std::string_view, 2> kHeadCounts = {"q_heads", "kv_heads"};

constexpr AttributeSpec kScale{"scale", "of the scores; 1 / sqrt(width of a head)"};
constexpr AttributeSpec kCausal{"causal", "1: a token sees itself and those before it; 0"};
constexpr AttributeSpec kHeads{"q_heads", "heads of q, where k and v are left out"};
constexpr AttributeSpec kKvHeads{"kv_heads", "heads of k and of v there; q_heads"};
constexpr AttributeSpec kRatio{"ratio", "share of the weights that become 0, in [0, 1); 0"};

// Of q [batch, tokens, heads, width].
int heads_axis(const OpArgs&) { return 2; }

constexpr OpTraits attention_traits() {
  OpTraits traits =
      sharded({.rule = shard_attention, .head_attributes = kHeadCounts, .packed_axis = heads_axis});
  traits.rows = RowKind::kAttention;
  return traits;
}

OpDef attention_row() {
  return {
      .name = "Attention",
      .doc =
          "softmax(scale * q k' + bias) v for each head: q [batch, tokens, heads, width], k and "
          "v [batch, keys, kv_heads, width], where heads is a multiple of kv_heads; bias "
          "broadcast to [batch, heads, tokens, keys]. Without k and v the first input holds "
          "the heads of q, k and v side by side. With a ratio above 0 the weights drop out as by "
          "RandomDropout, in the step that input 4 tells. Output 1, for the gradient: the largest "
          "score of a row and 1 / sum of exp(score - largest), [batch, heads, tokens, 2].",
      .domain = kTrainscopeDomain,
      .min_inputs = 1,
      .max_inputs = 5,
      .max_outputs = 2,
      .attributes = {kScale, kCausal, kHeads, kKvHeads, kRatio, kDropoutSeed, kDropoutStream},
      .params = attention_params,
      .shape = attention_shape,
      .gradient = attention_gradient,
      .cost = attention_cost,
      .in_place = attention_in_place,
      .precision = Precision::kFollow,
      .f32_inputs = {3},
      .op_class = OpClass::kAttention,
      .traits = attention_traits(),
      .examples = {"[2,5,3,4], [2,5,3,4], [2,5,3,4]; outputs=2",
                   "[2,5,3,4], [2,7,3,4], [2,7,3,4], [7]={0,-1,0.5,0,-2,1,0}; scale=0.3 outputs=2",
                   "[2,5,4,4], [2,5,2,4], [2,5,2,4], [5,1]={0,1,2,-1,0.5}; causal=1 outputs=2",
                   "[2,6,9,4]; q_heads=3 causal=1 outputs=2",
                   "[1,5,8,4], -, -, [4,1,1]={0,1,-1,2}; q_heads=4 kv_heads=2 outputs=2",
                   "[1,1,1,1], [1,1,1,1], [1,1,1,1]; outputs=2", "[0,5,6,4]; q_heads=2 outputs=2",
                   "[2,0,2,4], [2,3,1,4], [2,3,1,4]; outputs=2", "[2,0,6,4]; q_heads=2 outputs=2",
                   "[1,150,6,8]; q_heads=2 causal=1 outputs=2",
                   "[1,140,2,8], [1,70,1,8], [1,70,1,8]; outputs=2",
                   "[1,140,2,72], [1,70,1,72], [1,70,1,72]; outputs=2",
                   "[2,5,4,8], [2,7,2,8], [2,7,2,8], "
                   "[2,1,1,7]={0,-1,0.5,0,-2,1,0,0,0,-3,0,1,-9,-9}; outputs=2",
                   "[2,5,3,4], [2,7,3,4], [2,7,3,4], -, i64[]={3}; ratio=0.3 seed=7 outputs=2",
                   "[1,5,4,4], [1,5,2,4], [1,5,2,4], [5,1]={0,1,2,-1,0.5}, i64[]={1}; causal=1 "
                   "ratio=0.25 stream=1 outputs=2",
                   "[1,150,4,8], -, -, -, i64[]={2}; q_heads=2 kv_heads=1 causal=1 ratio=0.5 "
                   "seed=-1 stream=2 outputs=2"}};
}

OpDef gradient_row() {
  return {
      .name = "AttentionGrad",
      .doc =
          "dq, dk and dv of Attention, side by side where these are, from dy, y, its output 1 "
          "and its inputs; the scores are recomputed.",
      .domain = kTrainscopeDomain,
      .min_inputs = 4,
      .max_inputs = 8,
      .max_outputs = 3,
      .attributes = {kScale, kCausal, kHeads, kKvHeads, kRatio, kDropoutSeed, kDropoutStream},
      .params = gradient_params,
      .shape = gradient_shape,
      .cost = gradient_cost,
      .in_place = gradient_in_place,
      .f32_inputs = {2, 6},
      .op_class = OpClass::kAttention,
      .traits = sharded_once({.rule = shard_attention_grad, .head_attributes = kHeadCounts}),
      .examples = {"[2,5,3,4], [2,5,3,4], [2,3,5,2]>0, [2,5,3,4], [2,5,3,4], [2,5,3,4]; outputs=3",
                   "[2,6,3,4], [2,6,3,4], [2,3,6,2]>0, [2,6,9,4]; q_heads=3 causal=1",
                   "[2,5,4,4], [2,5,4,4], [2,4,5,2]>0, [2,5,4,4], [2,5,2,4], [2,5,2,4], [5,5]; "
                   "causal=1 outputs=3",
                   "[0,5,2,4], [0,5,2,4], [0,2,5,2]>0, [0,5,6,4]; q_heads=2",
                   "[2,0,2,4], [2,0,2,4], [2,2,0,2]>0, [2,0,2,4], [2,3,1,4], [2,3,1,4]; outputs=3",
                   "[1,150,2,8], [1,150,2,8], [1,2,150,2]>0, [1,150,6,8]; q_heads=2 causal=1",
                   "[1,70,2,8], [1,70,2,8], [1,2,70,2]>0, [1,70,2,8], [1,24,1,8], [1,24,1,8]; "
                   "outputs=3",
                   "[2,72,4,8], [2,72,4,8], [2,4,72,2]>0, [2,72,4,8], [2,72,2,8], [2,72,2,8], "
                   "[2,1,1,72]; causal=1 outputs=3",
                   "[2,5,3,4], [2,5,3,4], [2,3,5,2]>0, [2,5,3,4], [2,7,3,4], [2,7,3,4], -, "
                   "i64[]={3}; ratio=0.3 seed=7 outputs=3",
                   "[1,150,2,8], [1,150,2,8], [1,2,150,2]>0, [1,150,4,8], -, -, -, i64[]={2}; "
                   "q_heads=2 kv_heads=1 causal=1 ratio=0.5",
                   // More scores than other elements, of two entries, with a bias of each head.
                   "[2,100,4,8], [2,100,4,8], [2,4,100,2]>0, [2,100,4,8], [2,100,2,8], "
                   "[2,100,2,8], [4,1,100]; outputs=3",
                   // Scores near -128: exp(0) by the sum of exp(score) is beyond f32.
                   "[1,2,1,8], [1,2,1,8], [1,1,2,2]={-104,1,-104,1}, "
                   "[1,2,1,8]={-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1}, [1,64,1,8]>1, "
                   "[1,64,1,8]; scale=8.0 outputs=3",
                   "[2,1,2,8], [2,1,2,8], [2,2,1,2]>0, [2,1,6,8]; q_heads=2",
                   // The first query's keys are all masked.
                   "[1,2,1,4], [1,2,1,4], [1,1,2,2]={-3.4e38,0.2,0.5,0.3}, [1,2,1,4], [1,5,1,4], "
                   "[1,5,1,4], [2,5]={-3.4e38,-3.4e38,-3.4e38,-3.4e38,-3.4e38,0,0,0,0,0}; "
                   "outputs=3"}};
}

}  // namespace

std::vector<OpDef> attention_ops() { return {attention_row(), gradient_row()}; }

}  // namespace trainscope
