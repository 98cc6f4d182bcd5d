// bert: Devlin et al. 2018, a bidirectional transformer with the norms after the layers and the
// head of the masked language model, tied to the table of tokens.
//
// Initial weights: google-research/bert, modeling.py (create_initializer): truncated normal with
// 0.02, biases 0, norms 1 and 0. Names are Hugging Face's; dense weights are stored [in, out].
#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/models/activation.h"
#include "engine/models/arguments.h"
#include "engine/models/attention.h"
#include "engine/models/layers.h"

namespace trainscope {
namespace {

constexpr Initial kWeight{.kind = Initial::Kind::kTruncatedNormal, .size = 0.02};
constexpr double kBertNormEpsilon = 1e-12;
constexpr std::int64_t kSegmentKinds = 2;
constexpr float kHiddenScore = -10000.0F;  // as modeling.py writes it

struct BertSizes {
  std::int64_t layers, heads, embedding, feed_forward, vocab, context;
  bool segments, mask;
  std::string activation;
  double dropout;
};

BertSizes bert_sizes(const ModelArguments& arguments) {
  check_multiple(arguments, "embedding", "heads");
  BertSizes sizes{.layers = integer(arguments, "layers"),
                  .heads = integer(arguments, "heads"),
                  .embedding = integer(arguments, "embedding"),
                  .feed_forward = integer(arguments, "feed-forward"),
                  .vocab = integer(arguments, "vocab"),
                  .context = integer(arguments, "context"),
                  .segments = argument<bool>(arguments, "segments"),
                  .mask = argument<bool>(arguments, "mask"),
                  .activation = argument<std::string>(arguments, "activation"),
                  .dropout = argument<double>(arguments, "dropout")};
  // One row of positions would be added to a text of any length.
  require(sizes.context >= 2, ErrorCode::kUsage, "--context is {}, expected 2 at least",
          sizes.context);
  check_dropout(sizes.dropout);
  return sizes;
}

// The graph holds no batch size and no length.
class Bert {
 public:
  Bert(BertSizes sizes, std::uint64_t seed) : sizes_(std::move(sizes)), b_("bert", seed) {}

  PlainModel build() {
    const std::vector<ModelDim> tokens{symbolic("batch"), symbolic("sequence")};
    ids_ = b_.input("ids", DType::kI64, tokens);
    if (sizes_.segments) segments_ = b_.input("segments", DType::kI64, tokens);
    if (sizes_.mask) mask_ = hidden_scores(b_.input("mask", DType::kI64, tokens));
    const ValueName table =
        draw(b_, "bert.embeddings.word_embeddings.weight", {sizes_.vocab, width()}, kWeight);
    ValueName x = embedded(table);
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      x = block(fmt::format("bert.encoder.layer.{}", layer), x);
    }
    head(table, x);
    b_.output("logits", {symbolic("batch"), symbolic("sequence"), fixed(sizes_.vocab)});
    return b_.take();
  }

 private:
  std::int64_t width() const { return sizes_.embedding; }

  // [B, 1, 1, T] of 1 (attend) and 0 (do not) -> 0 and -10000, added to the scores.
  ValueName hidden_scores(const ValueName& mask) {
    const ValueName rows = b_.node("Unsqueeze", "mask_rows", {mask, b_.ints({1, 2})});
    const ValueName number = b_.node("Cast", "mask_number", {rows}, {{"to", std::int64_t{1}}});
    const ValueName hidden = b_.node("Sub", "mask_hidden", {b_.number(1.0F), number});
    return b_.node("Mul", "mask_scores", {hidden, b_.number(kHiddenScore)});
  }

  ValueName embedded(const ValueName& table) {
    b_.set_scope("bert/embeddings");
    const ValueName words = b_.node("Gather", "words", {table, ids_});
    const ValueName all =
        draw(b_, "bert.embeddings.position_embeddings.weight", {sizes_.context, width()}, kWeight);
    const ValueName length = b_.node("Shape", "length", {ids_}, {{"start", std::int64_t{1}}});
    const ValueName positions = leading_rows(b_, "positions", all, length);
    b_.describe(positions, {symbolic("sequence"), fixed(width())});
    ValueName x = b_.node("Add", "words_at_positions", {words, positions});
    if (sizes_.segments) {
      const ValueName kinds = draw(b_, "bert.embeddings.token_type_embeddings.weight",
                                   {kSegmentKinds, width()}, kWeight);
      const ValueName rows = b_.node("Gather", "segment_rows", {kinds, segments_});
      x = b_.node("Add", "in_segments", {x, rows});
    }
    return dropout(b_, "drop", norm("bert.embeddings.LayerNorm", x), sizes_.dropout);
  }

  ValueName block(const std::string& path, const ValueName& x) {
    b_.set_scope(scope_of(path) + "/attention");
    const ValueName attended = attention(path + ".attention", x);
    const ValueName middle = added("residual", x, path + ".attention.output", attended);
    b_.set_scope(scope_of(path));
    const ValueName hidden =
        linear(path + ".intermediate.dense", middle, width(), sizes_.feed_forward);
    const ValueName active = activation(b_, sizes_.activation, hidden);
    const ValueName fed = linear(path + ".output.dense", active, sizes_.feed_forward, width());
    return added("residual", middle, path + ".output", fed);
  }

  ValueName attention(const std::string& path, const ValueName& x) {
    const std::int64_t size = width() / sizes_.heads;
    const HeadLayout rows{.heads = sizes_.heads, .size = size};
    const HeadLayout columns{.heads = sizes_.heads, .size = size, .transposed = true};
    const ValueName q = linear(path + ".self.query", x, width(), width());
    const ValueName k = linear(path + ".self.key", x, width(), width());
    const ValueName v = linear(path + ".self.value", x, width(), width());
    const ValueName mixed =
        attend(b_, {.heads = sizes_.heads, .size = size, .dropout = sizes_.dropout, .mask = mask_},
               {.query = by_head(b_, "query", q, rows),
                .key = by_head(b_, "key", k, columns),
                .value = by_head(b_, "value", v, rows)});
    return linear(path + ".output.dense", mixed, width(), width());
  }

  // norm(x + dropout(y)): the norm comes after the sum.
  ValueName added(std::string_view label, const ValueName& x, const std::string& path,
                  const ValueName& y) {
    const ValueName sum = b_.node("Add", label, {x, dropout(b_, "drop", y, sizes_.dropout)});
    return norm(path + ".LayerNorm", sum);
  }

  void head(const ValueName& table, const ValueName& x) {
    b_.set_scope("cls/predictions");
    const std::string path = "cls.predictions";
    const ValueName dense_x = linear(path + ".transform.dense", x, width(), width());
    const ValueName active = activation(b_, sizes_.activation, dense_x);
    const ValueName ready = norm(path + ".transform.LayerNorm", active);
    const ValueName columns = b_.node("Transpose", "decoder", {table}, {{"perm", Ints{1, 0}}});
    const ValueName scores = b_.node("MatMul", "scores", {ready, columns});
    const ValueName bias = b_.filled(path + ".bias", {sizes_.vocab}, 0.0F);
    b_.result("Add", "logits", {scores, bias});
  }

  ValueName linear(const std::string& path, const ValueName& x, std::int64_t inputs,
                   std::int64_t outputs) {
    return dense(b_, path, x, {.inputs = inputs, .outputs = outputs, .weight = kWeight});
  }

  ValueName norm(const std::string& path, const ValueName& x) {
    return layer_norm(b_, path, x, {.width = width(), .epsilon = kBertNormEpsilon});
  }

  BertSizes sizes_;
  PlainBuilder b_;
  ValueName ids_;
  ValueName segments_;
  ValueName mask_;
};

PlainModel build_bert(const ModelArguments& arguments, std::uint64_t seed) {
  return Bert(bert_sizes(arguments), seed).build();
}

ModelArguments size_of_bert(std::int64_t layers, std::int64_t heads, std::int64_t embedding) {
  return {{"layers", layers},
          {"heads", heads},
          {"embedding", embedding},
          {"feed-forward", 4 * embedding}};
}

}  // namespace

ModelBuilder bert_builder() {
  return {
      .name = "bert",
      .doc =
          "Bidirectional transformer that fills in masked tokens; inputs ids and segments "
          "[batch, sequence].",
      .options =
          {{.name = "layers", .doc = "blocks", .value = 12, .maximum = 10000},
           {.name = "heads", .doc = "attention heads of a block", .value = 12},
           {.name = "embedding", .doc = "width; a multiple of the heads", .value = 768},
           {.name = "feed-forward", .doc = "width inside the feed-forward layers", .value = 3072},
           {.name = "vocab", .doc = "different tokens", .value = 30522},
           {.name = "context", .doc = "longest sequence, in tokens", .value = 512},
           {.name = "segments",
            .doc = "an input that says which of two texts a token is of",
            .value = true},
           {.name = "mask", .doc = "an input with 1 for tokens and 0 for padding", .value = false},
           {.name = "activation",
            .doc = "in the feed-forward layers",
            .value = std::string("gelu"),
            .choices = activation_names()},
           {.name = "dropout",
            .doc = "of embeddings, attention weights and residuals",
            .value = 0.1}},
      .sizes = {{.name = "base", .arguments = size_of_bert(12, 12, 768)},
                {.name = "large", .arguments = size_of_bert(24, 16, 1024)}},
      .build = build_bert};
}

}  // namespace trainscope
