// llama: Touvron et al. 2023, a causal transformer with RMSNorm, rotary positions, SwiGLU and query
// heads that share keys.
//
// Initial weights: Hugging Face's modeling_llama.py (initializer_range): normal with 0.02, norms 1;
// the papers do not say. Names are Hugging Face's too, so is the order of the rotated halves; dense
// weights are stored [in, out].
#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/models/arguments.h"
#include "engine/models/attention.h"
#include "engine/models/layers.h"

namespace trainscope {
namespace {

constexpr Initial kWeight{.kind = Initial::Kind::kNormal, .size = 0.02};
constexpr float kLlamaNormEpsilon = 1e-5F;

struct LlamaSizes {
  std::int64_t layers, heads, key_heads, embedding, feed_forward, vocab, context;
  double rope_base;
  bool tied;
  std::int64_t head() const { return embedding / heads; }
};

LlamaSizes llama_sizes(const ModelArguments& arguments) {
  check_multiple(arguments, "embedding", "heads");
  check_multiple(arguments, "heads", "kv-heads");
  LlamaSizes sizes{.layers = integer(arguments, "layers"),
                   .heads = integer(arguments, "heads"),
                   .key_heads = integer(arguments, "kv-heads"),
                   .embedding = integer(arguments, "embedding"),
                   .feed_forward = integer(arguments, "feed-forward"),
                   .vocab = integer(arguments, "vocab"),
                   .context = integer(arguments, "context"),
                   .rope_base = argument<double>(arguments, "rope-base"),
                   .tied = argument<bool>(arguments, "tied")};
  require(sizes.head() % 2 == 0, ErrorCode::kUsage,
          "a head has {} elements (--embedding / --heads): rotary positions need an even number",
          sizes.head());
  require(sizes.rope_base >= 1.0, ErrorCode::kUsage, "--rope-base is {}, expected 1 at least",
          sizes.rope_base);
  require(sizes.context >= 2, ErrorCode::kUsage, "--context is {}, expected 2 at least",
          sizes.context);
  return sizes;
}

// f(position * base^(-2i / head)) for each position and i < head / 2: RoFormer (Su et al. 2021),
// equation 15.
Tensor rotation_table(const LlamaSizes& sizes, double (*f)(double)) {
  const std::int64_t half = sizes.head() / 2;
  Tensor table({.dtype = DType::kF32, .shape = {sizes.context, half}});
  std::size_t index = 0;
  for (float& element : table.values<float>()) {
    const auto position = static_cast<double>(index / static_cast<std::size_t>(half));
    const auto i = static_cast<double>(index % static_cast<std::size_t>(half));
    const double frequency = std::pow(sizes.rope_base, -i / static_cast<double>(half));
    element = static_cast<float>(f(position * frequency));
    ++index;
  }
  return table;
}

class Llama {
 public:
  Llama(const LlamaSizes& sizes, std::uint64_t seed) : sizes_(sizes), b_("llama", seed) {}

  PlainModel build() {
    const ModelDim batch = symbolic("batch");
    const ModelDim sequence = symbolic("sequence");
    ids_ = b_.input("ids", DType::kI64, {batch, sequence});
    const ValueName length = b_.node("Shape", "length", {ids_}, {{"start", std::int64_t{1}}});
    const ValueName table =
        draw(b_, "model.embed_tokens.weight", {sizes_.vocab, sizes_.embedding}, kWeight);
    ValueName x = b_.node("Gather", "tokens", {table, ids_});
    mask_ = causal_mask(b_, length);
    cosines_ = rotation("cosines", length, [](double angle) { return std::cos(angle); });
    sines_ = rotation("sines", length, [](double angle) { return std::sin(angle); });
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      x = block(fmt::format("model.layers.{}", layer), x);
    }
    b_.result("MatMul", "logits", {norm("model.norm", x), head(table)});
    b_.output("logits", {batch, sequence, fixed(sizes_.vocab)});
    return b_.take();
  }

 private:
  // [T, head / 2]
  ValueName rotation(const std::string& label, const ValueName& length, double (*f)(double)) {
    const ValueName all = b_.constant("/" + label + "_table", rotation_table(sizes_, f));
    const ValueName rows = leading_rows(b_, label, all, length);
    b_.describe(rows, {symbolic("sequence"), fixed(sizes_.head() / 2)});
    return rows;
  }

  ValueName head(const ValueName& table) {
    b_.set_scope("");
    if (sizes_.tied) return b_.node("Transpose", "lm_head", {table}, {{"perm", Ints{1, 0}}});
    return draw(b_, "lm_head.weight", {sizes_.embedding, sizes_.vocab}, kWeight);
  }

  ValueName block(const std::string& path, const ValueName& x) {
    const ValueName before_attention = norm(path + ".input_layernorm", x);
    b_.set_scope(scope_of(path) + "/self_attn");
    const ValueName attended = attention(path + ".self_attn", before_attention);
    const ValueName middle = b_.node("Add", "residual", {x, attended});
    const ValueName before_mlp = norm(path + ".post_attention_layernorm", middle);
    b_.set_scope(scope_of(path) + "/mlp");
    return b_.node("Add", "residual", {middle, mlp(path + ".mlp", before_mlp)});
  }

  ValueName attention(const std::string& path, const ValueName& x) {
    const std::int64_t d = sizes_.embedding;
    const std::int64_t key_width = sizes_.key_heads * sizes_.head();
    const HeadLayout queries{.heads = sizes_.heads, .size = sizes_.head()};
    const HeadLayout keys{.heads = sizes_.key_heads, .size = sizes_.head()};
    const ValueName q = by_head(b_, "query", linear(path + ".q_proj", x, {d, d}), queries);
    const ValueName k = by_head(b_, "key", linear(path + ".k_proj", x, {d, key_width}), keys);
    const ValueName v = by_head(b_, "value", linear(path + ".v_proj", x, {d, key_width}), keys);
    const ValueName key_rows = shared("key", rotated("key", k));
    const ValueName key_columns =
        b_.node("Transpose", "key_columns", {key_rows}, {{"perm", Ints{0, 1, 3, 2}}});
    const ValueName mixed =
        attend(b_, {.heads = sizes_.heads, .size = sizes_.head(), .mask = mask_},
               {.query = rotated("query", q), .key = key_columns, .value = shared("value", v)});
    return linear(path + ".o_proj", mixed, {d, d});
  }

  ValueName shared(const std::string& label, const ValueName& x) {
    return repeated_heads(b_, label, x, {.heads = sizes_.heads, .size = sizes_.head()},
                          sizes_.heads / sizes_.key_heads);
  }

  // [B, heads, T, size]: element i of a head is rotated with element i + size / 2, by an angle
  // that grows with the position.
  ValueName rotated(const std::string& label, const ValueName& x) {
    const std::int64_t half = sizes_.head() / 2;
    const ValueName first_label = label + "_first", second_label = label + "_second";
    const std::vector<ValueName> halves = b_.multi(
        "Split", label + "_halves", {x, b_.ints({half, half})},
        {.labels = {first_label, second_label}, .attributes = {{"axis", std::int64_t{-1}}}});
    const auto product = [&](std::string_view name, const ValueName& x_half,
                             const ValueName& factors) {
      return b_.node("Mul", label + std::string(name), {x_half, factors});
    };
    const ValueName real = b_.node("Sub", label + "_real",
                                   {product("_first_cosine", halves[0], cosines_),
                                    product("_second_sine", halves[1], sines_)});
    const ValueName imaginary = b_.node("Add", label + "_imaginary",
                                        {product("_second_cosine", halves[1], cosines_),
                                         product("_first_sine", halves[0], sines_)});
    return b_.node("Concat", label + "_rotated", {real, imaginary}, {{"axis", std::int64_t{-1}}});
  }

  // down(silu(gate(x)) * up(x)): Shazeer 2020, "GLU variants improve transformer".
  ValueName mlp(const std::string& path, const ValueName& x) {
    const std::int64_t d = sizes_.embedding, inner = sizes_.feed_forward;
    const ValueName gate = linear(path + ".gate_proj", x, {d, inner});
    const ValueName sigmoid = b_.node("Sigmoid", "gate_sigmoid", {gate});
    const ValueName open = b_.node("Mul", "gate_silu", {gate, sigmoid});
    const ValueName product =
        b_.node("Mul", "gated", {open, linear(path + ".up_proj", x, {d, inner})});
    return linear(path + ".down_proj", product, {inner, d});
  }

  // x / sqrt(mean(x^2) + epsilon) * weight: Zhang, Sennrich 2019.
  ValueName norm(const std::string& path, const ValueName& x) {
    b_.set_scope(scope_of(path));
    const ValueName squares = b_.node("Mul", "squares", {x, x});
    const ValueName mean = b_.node("ReduceMean", "mean", {squares}, {{"axes", Ints{-1}}});
    const ValueName sum = b_.node("Add", "mean_epsilon", {mean, b_.number(kLlamaNormEpsilon)});
    const ValueName size = b_.node("Sqrt", "size", {sum});
    const ValueName unit = b_.node("Div", "unit", {x, size});
    const ValueName weight = b_.filled(path + ".weight", {sizes_.embedding}, 1.0F);
    return b_.node("Mul", "scaled", {unit, weight});
  }

  struct InOut {
    std::int64_t inputs, outputs;
  };
  ValueName linear(const std::string& path, const ValueName& x, const InOut& size) {
    return dense(b_, path, x,
                 {.inputs = size.inputs, .outputs = size.outputs, .weight = kWeight, .bias = {}});
  }

  LlamaSizes sizes_;
  PlainBuilder b_;
  ValueName ids_;
  ValueName mask_;
  ValueName cosines_;  // [T, head / 2], as the sines
  ValueName sines_;
};

PlainModel build_llama(const ModelArguments& arguments, std::uint64_t seed) {
  return Llama(llama_sizes(arguments), seed).build();
}

}  // namespace

// The defaults are TinyLlama's 1.1 billion parameters (Zhang et al. 2024); 7B is LLaMA 2's.
ModelBuilder llama_builder() {
  return {
      .name = "llama",
      .doc =
          "Causal transformer with RMSNorm, rotary positions, SwiGLU and shared key heads; "
          "input ids [batch, sequence].",
      .options =
          {{.name = "layers", .doc = "blocks", .value = 22, .maximum = 10000},
           {.name = "heads", .doc = "attention heads of a block", .value = 32},
           {.name = "kv-heads", .doc = "heads of keys and values; divides the heads", .value = 4},
           {.name = "embedding", .doc = "width; a multiple of the heads", .value = 2048},
           {.name = "feed-forward", .doc = "width inside the feed-forward layers", .value = 5632},
           {.name = "vocab", .doc = "different tokens", .value = 32000},
           {.name = "context", .doc = "longest sequence, in tokens", .value = 2048},
           {.name = "rope-base", .doc = "of the rotary frequencies", .value = 10000.0},
           {.name = "tied", .doc = "the head is the table of tokens", .value = false}},
      .sizes = {{.name = "1.1B", .arguments = {}},
                {.name = "7B",
                 .arguments = {{"layers", 32},
                               {"heads", 32},
                               {"kv-heads", 32},
                               {"embedding", 4096},
                               {"feed-forward", 11008},
                               {"context", 4096}}}},
      .build = build_llama};
}

}  // namespace trainscope
