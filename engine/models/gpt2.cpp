// gpt2: Radford et al. 2019, a causal transformer with the norms before the layers and a tied head.
//
// Initial weights: "Language models are unsupervised multitask learners", section 2.3, and OpenAI's
// code (gpt-2/src/model.py): normal with 0.02, those that add to the residual stream divided by the
// square root of their number; biases 0. OpenAI's code draws positions with 0.01, what followed it
// (Hugging Face's initializer_range, nanoGPT) with 0.02: so does this.
#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/models/activation.h"
#include "engine/models/attention.h"
#include "engine/models/layers.h"
#include "engine/models/models.h"
#include "engine/models/plain_builder.h"

namespace trainscope {
namespace {

constexpr double kDeviation = 0.02;  // of initial weights
constexpr double kGpt2NormEpsilon = 1e-5;

struct Gpt2Sizes {
  std::int64_t layers, heads, embedding, vocab, context;
  bool bias;
  std::string activation;
  double dropout;
};

Gpt2Sizes gpt2_sizes(const ModelArguments& arguments) {
  const auto integer = [&](std::string_view name) {
    return std::get<std::int64_t>(arguments.find(name)->second);
  };
  Gpt2Sizes sizes{.layers = integer("layers"),
                  .heads = integer("heads"),
                  .embedding = integer("embedding"),
                  .vocab = integer("vocab"),
                  .context = integer("context"),
                  .bias = std::get<bool>(arguments.at("bias")),
                  .activation = std::get<std::string>(arguments.at("activation")),
                  .dropout = std::get<double>(arguments.at("dropout"))};
  require(sizes.embedding % sizes.heads == 0, ErrorCode::kUsage,
          "--embedding {} cannot be shared by --heads {}: it must be a multiple", sizes.embedding,
          sizes.heads);
  // One row of positions would be added to a text of any length.
  require(sizes.context >= 2, ErrorCode::kUsage, "--context is {}, expected 2 at least",
          sizes.context);
  check_dropout(sizes.dropout);
  return sizes;
}

// The graph holds no batch size and no length: one file for every shape up to the context.
class Gpt2 {
 public:
  Gpt2(const Gpt2Sizes& sizes, std::uint64_t seed) : sizes_(sizes), b_("gpt2", seed) {}

  PlainModel build() {
    const ModelDim batch = symbolic("batch");
    const ModelDim sequence = symbolic("sequence");
    ids_ = b_.input("ids", DType::kI64, {batch, sequence});
    length_ = b_.node("Shape", "length", {ids_}, {{"start", std::int64_t{1}}});
    const ValueName table = b_.normal("wte.weight", {sizes_.vocab, sizes_.embedding}, kDeviation);
    ValueName x = drop("drop", embedded(table));
    mask_ = causal_mask(b_, length_);
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) x = block(layer, x);
    b_.set_scope("");
    x = norm("ln_f", "ln_f", x);
    const ValueName head = b_.node("Transpose", "head", {table}, {{"perm", Ints{1, 0}}});
    b_.result("MatMul", "logits", {x, head});
    b_.output("logits", {batch, sequence, fixed(sizes_.vocab)});
    return b_.take();
  }

 private:
  ValueName embedded(const ValueName& table) {
    const ValueName tokens = b_.node("Gather", "tokens", {table, ids_});
    const ValueName all = b_.normal("wpe.weight", {sizes_.context, sizes_.embedding}, kDeviation);
    const ValueName positions = leading_rows(b_, "positions", all, length_);
    b_.describe(positions, {symbolic("sequence"), fixed(sizes_.embedding)});
    return b_.node("Add", "embedded", {tokens, positions});
  }

  ValueName block(std::int64_t layer, const ValueName& x) {
    const std::string path = fmt::format("h.{}", layer);
    b_.set_scope(path);
    const ValueName before_attention = norm("ln_1", path + ".ln_1", x);
    b_.set_scope(path + "/attn");
    const ValueName attended = drop("drop", attention(path + ".attn", before_attention));
    b_.set_scope(path);
    const ValueName middle = b_.node("Add", "residual_1", {x, attended});
    const ValueName before_mlp = norm("ln_2", path + ".ln_2", middle);
    b_.set_scope(path + "/mlp");
    const ValueName fed = drop("drop", mlp(path + ".mlp", before_mlp));
    b_.set_scope(path);
    return b_.node("Add", "residual_2", {middle, fed});
  }

  ValueName attention(const std::string& path, const ValueName& x) {
    const std::int64_t d = sizes_.embedding;
    const std::int64_t head = d / sizes_.heads;
    const ValueName qkv = linear("c_attn", path, x, {.shape = {d, 3 * d}, .deviation = kDeviation});
    const ValueName heads =
        b_.node("Reshape", "heads", {qkv, b_.ints({0, 0, 3 * sizes_.heads, head})});
    const ValueName by_head =
        b_.node("Transpose", "by_head", {heads}, {{"perm", Ints{0, 2, 1, 3}}});
    const Ints thirds(3, sizes_.heads);
    const std::vector<ValueName> split =
        b_.multi("Split", "split", {by_head, b_.ints(thirds)},
                 {.labels = {"q", "k", "v"}, .attributes = {{"axis", std::int64_t{1}}}});
    // The queries are fewer than the scores: scaling them is cheaper.
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head)));
    const ValueName q = b_.node("Mul", "q_scaled", {split[0], b_.number(scale)});
    const ValueName k =
        b_.node("Transpose", "k_transposed", {split[1]}, {{"perm", Ints{0, 1, 3, 2}}});
    const ValueName scores = b_.node("MatMul", "scores", {q, k});  // [B, H, T, T]
    const ValueName masked = b_.node("Add", "masked", {scores, mask_});
    const ValueName weights = b_.node("Softmax", "weights", {masked}, {{"axis", std::int64_t{-1}}});
    const ValueName mixed = b_.node("MatMul", "mixed", {drop("weights_drop", weights), split[2]});
    const ValueName by_token =
        b_.node("Transpose", "by_token", {mixed}, {{"perm", Ints{0, 2, 1, 3}}});
    const ValueName joined = b_.node("Reshape", "joined", {by_token, b_.ints({0, 0, d})});
    return linear("c_proj", path, joined, {.shape = {d, d}, .deviation = residual_deviation()});
  }

  ValueName mlp(const std::string& path, const ValueName& x) {
    const std::int64_t d = sizes_.embedding;
    const ValueName hidden =
        linear("c_fc", path, x, {.shape = {d, 4 * d}, .deviation = kDeviation});
    const ValueName active = activation(b_, sizes_.activation, hidden);
    return linear("c_proj", path, active, {.shape = {4 * d, d}, .deviation = residual_deviation()});
  }

  // Each layer adds twice to the residual stream: its variance stays.
  double residual_deviation() const {
    return kDeviation / std::sqrt(2.0 * static_cast<double>(sizes_.layers));
  }

  struct Weight {
    Shape shape;  // [in, out], as GPT-2 stores it: no transpose in a step
    double deviation;
  };
  ValueName linear(const std::string& label, const std::string& path, const ValueName& x,
                   const Weight& weight) {
    const std::string parameter = path + "." + label;
    const ValueName matrix = b_.normal(parameter + ".weight", weight.shape, weight.deviation);
    ValueName matmul = b_.node("MatMul", label, {x, matrix});
    if (!sizes_.bias) return matmul;
    const ValueName bias = b_.filled(parameter + ".bias", {weight.shape[1]}, 0.0F);
    return b_.node("Add", label + "_bias", {matmul, bias});
  }

  ValueName norm(std::string_view label, const std::string& path, const ValueName& x) {
    const Shape shape{sizes_.embedding};
    std::vector<ValueName> inputs{x, b_.filled(path + ".weight", shape, 1.0F)};
    if (sizes_.bias) inputs.push_back(b_.filled(path + ".bias", shape, 0.0F));
    return b_.node("LayerNormalization", label, std::move(inputs),
                   {{"axis", std::int64_t{-1}}, {"epsilon", kGpt2NormEpsilon}});
  }

  ValueName drop(std::string_view label, const ValueName& x) {
    return dropout(b_, label, x, sizes_.dropout);
  }

  Gpt2Sizes sizes_;
  PlainBuilder b_;
  ValueName ids_;
  ValueName length_;  // i64[1]: tokens in a row
  ValueName mask_;
};

PlainModel build_gpt2(const ModelArguments& arguments, std::uint64_t seed) {
  return Gpt2(gpt2_sizes(arguments), seed).build();
}

ModelArguments size_of_gpt2(std::int64_t layers, std::int64_t heads, std::int64_t embedding) {
  return {{"layers", layers}, {"heads", heads}, {"embedding", embedding}};
}

}  // namespace

// The defaults are the published model of 124 million parameters.
ModelBuilder gpt2_builder() {
  return {.name = "gpt2",
          .doc = "Causal transformer with a tied head; input ids [batch, sequence].",
          .options = {{.name = "layers", .doc = "blocks", .value = 12, .maximum = 10000},
                      {.name = "heads", .doc = "attention heads of a block", .value = 12},
                      {.name = "embedding", .doc = "width; a multiple of the heads", .value = 768},
                      {.name = "vocab", .doc = "different tokens", .value = 50257},
                      {.name = "context", .doc = "longest sequence, in tokens", .value = 1024},
                      {.name = "bias", .doc = "biases in linear layers and norms", .value = true},
                      {.name = "activation",
                       .doc = "in the feed-forward layers",
                       .value = std::string("gelu_tanh"),
                       .choices = activation_names()},
                      {.name = "dropout",
                       .doc = "of embeddings, attention weights and residuals",
                       .value = 0.0}},
          .sizes = {{.name = "124M", .arguments = size_of_gpt2(12, 12, 768)},
                    {.name = "355M", .arguments = size_of_gpt2(24, 16, 1024)},
                    {.name = "774M", .arguments = size_of_gpt2(36, 20, 1280)},
                    {.name = "1558M", .arguments = size_of_gpt2(48, 25, 1600)}},
          .build = build_gpt2};
}

}  // namespace trainscope
