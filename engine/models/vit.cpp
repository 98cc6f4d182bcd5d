// vit: Dosovitskiy et al. 2020, a transformer over the patches of an image.
//
// Initial weights: google-research/vision_transformer, models_vit.py: Xavier-uniform dense weights,
// biases 0 but normal with 1e-6 in the feed-forward layers, positions normal with 0.02, class token
// and head 0; the patches' convolution has Flax's default, a truncated normal of variance 1 /
// fan-in. Names are torchvision's; dense weights are stored [in, out].
#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/models/activation.h"
#include "engine/models/arguments.h"
#include "engine/models/attention.h"
#include "engine/models/layers.h"

namespace trainscope {
namespace {

constexpr Initial kPosition{.kind = Initial::Kind::kNormal, .size = 0.02};
constexpr Initial kFeedForwardBias{.kind = Initial::Kind::kNormal, .size = 1e-6};
constexpr double kVitNormEpsilon = 1e-6;
constexpr double kTruncatedShare = 0.87962566103423978;  // deviation that truncation at 2 leaves

struct VitSizes {
  std::int64_t layers, heads, embedding, feed_forward, patch, image, channels, classes;
  double dropout;
  std::int64_t patches() const { return (image / patch) * (image / patch); }
};

VitSizes vit_sizes(const ModelArguments& arguments) {
  check_multiple(arguments, "embedding", "heads");
  check_multiple(arguments, "image", "patch");
  const VitSizes sizes{.layers = integer(arguments, "layers"),
                       .heads = integer(arguments, "heads"),
                       .embedding = integer(arguments, "embedding"),
                       .feed_forward = integer(arguments, "feed-forward"),
                       .patch = integer(arguments, "patch"),
                       .image = integer(arguments, "image"),
                       .channels = integer(arguments, "channels"),
                       .classes = integer(arguments, "classes"),
                       .dropout = argument<double>(arguments, "dropout")};
  check_dropout(sizes.dropout);
  return sizes;
}

// Glorot, Bengio 2010, equation 16.
Initial xavier(std::int64_t inputs, std::int64_t outputs) {
  return {.kind = Initial::Kind::kUniform,
          .size = std::sqrt(6.0 / static_cast<double>(inputs + outputs))};
}

class Vit {
 public:
  Vit(const VitSizes& sizes, std::uint64_t seed) : sizes_(sizes), b_("vit", seed) {}

  PlainModel build() {
    const ModelDim side = fixed(sizes_.image);
    const ValueName image =
        b_.input("x", DType::kF32, {symbolic("batch"), fixed(sizes_.channels), side, side});
    ValueName x = dropout(b_, "drop", tokens(image), sizes_.dropout);
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      x = block(fmt::format("encoder.layers.encoder_layer_{}", layer), x);
    }
    b_.set_scope("");
    // Norms act on each token alone: that of the class is enough.
    const ValueName first =
        b_.node("Gather", "class", {x, b_.integer(0)}, {{"axis", std::int64_t{1}}});
    linear(b_, "heads.head", norm("encoder.ln", first),
           {.inputs = sizes_.embedding, .outputs = sizes_.classes, .result = "logits"});
    b_.output("logits", {symbolic("batch"), fixed(sizes_.classes)});
    return b_.take();
  }

 private:
  // [B, 1 + patches, width]: the class token, then each patch as a vector, at their positions.
  ValueName tokens(const ValueName& image) {
    const std::int64_t d = sizes_.embedding;
    const std::int64_t fan_in = sizes_.channels * sizes_.patch * sizes_.patch;
    const double deviation = 1.0 / std::sqrt(static_cast<double>(fan_in)) / kTruncatedShare;
    const ValueName grid =
        conv(b_, "conv_proj", image,
             {.inputs = sizes_.channels,
              .outputs = d,
              .kernel = sizes_.patch,
              .stride = sizes_.patch,
              .weight = {.kind = Initial::Kind::kTruncatedNormal, .size = deviation},
              .bias = Initial{}});
    const ValueName columns = b_.node("Reshape", "patch_columns", {grid, b_.ints({0, d, -1})});
    const ValueName patches = b_.node("Transpose", "patches", {columns}, {{"perm", Ints{0, 2, 1}}});
    const ValueName batch = b_.node("Shape", "batch", {image}, {{"end", std::int64_t{1}}});
    const ValueName shape =
        b_.node("Concat", "class_shape", {batch, b_.ints({1, d})}, {{"axis", std::int64_t{0}}});
    const ValueName token = b_.filled("class_token", {1, 1, d}, 0.0F);
    const ValueName tokens_of_class = b_.node("Expand", "class_tokens", {token, shape});
    b_.describe(tokens_of_class, {symbolic("batch"), fixed(1), fixed(d)});
    const ValueName all =
        b_.node("Concat", "tokens", {tokens_of_class, patches}, {{"axis", std::int64_t{1}}});
    const ValueName positions =
        draw(b_, "encoder.pos_embedding", {1, 1 + sizes_.patches(), d}, kPosition);
    return b_.node("Add", "placed", {all, positions});
  }

  ValueName block(const std::string& path, const ValueName& x) {
    b_.set_scope(scope_of(path) + "/self_attention");
    const ValueName attended = attention(path + ".self_attention", norm(path + ".ln_1", x));
    const ValueName middle = added(x, attended);
    b_.set_scope(scope_of(path) + "/mlp");
    return added(middle, mlp(path + ".mlp", norm(path + ".ln_2", middle)));
  }

  ValueName added(const ValueName& x, const ValueName& y) {
    return b_.node("Add", "residual", {x, dropout(b_, "drop", y, sizes_.dropout)});
  }

  ValueName attention(const std::string& path, const ValueName& x) {
    const std::int64_t size = sizes_.embedding / sizes_.heads;
    const HeadLayout rows{.heads = sizes_.heads, .size = size};
    const HeadLayout columns{.heads = sizes_.heads, .size = size, .transposed = true};
    const ValueName q = projection(path + ".query", x);
    const ValueName k = projection(path + ".key", x);
    const ValueName v = projection(path + ".value", x);
    const ValueName mixed = attend(b_, {.heads = sizes_.heads, .size = size},
                                   {.query = by_head(b_, "query", q, rows),
                                    .key = by_head(b_, "key", k, columns),
                                    .value = by_head(b_, "value", v, rows)});
    return projection(path + ".out_proj", mixed);
  }

  ValueName projection(const std::string& path, const ValueName& x) {
    const std::int64_t d = sizes_.embedding;
    return dense(b_, path, x, {.inputs = d, .outputs = d, .weight = xavier(d, d)});
  }

  ValueName mlp(const std::string& path, const ValueName& x) {
    const std::int64_t d = sizes_.embedding, inner = sizes_.feed_forward;
    const ValueName hidden = dense(
        b_, path + ".0", x,
        {.inputs = d, .outputs = inner, .weight = xavier(d, inner), .bias = kFeedForwardBias});
    const ValueName active =
        dropout(b_, "inner_drop", activation(b_, "gelu", hidden), sizes_.dropout);
    return dense(
        b_, path + ".3", active,
        {.inputs = inner, .outputs = d, .weight = xavier(inner, d), .bias = kFeedForwardBias});
  }

  ValueName norm(const std::string& path, const ValueName& x) {
    return layer_norm(b_, path, x, {.width = sizes_.embedding, .epsilon = kVitNormEpsilon});
  }

  VitSizes sizes_;
  PlainBuilder b_;
};

PlainModel build_vit(const ModelArguments& arguments, std::uint64_t seed) {
  return Vit(vit_sizes(arguments), seed).build();
}

ModelArguments size_of_vit(std::int64_t layers, std::int64_t heads, std::int64_t embedding,
                           std::int64_t patch) {
  return {{"layers", layers},
          {"heads", heads},
          {"embedding", embedding},
          {"feed-forward", 4 * embedding},
          {"patch", patch}};
}

}  // namespace

// Sizes: table 1 of the paper, and S and Ti of Touvron et al. 2020 (DeiT); the number is the
// patch.
ModelBuilder vit_builder() {
  return {.name = "vit",
          .doc = "Transformer over image patches; input x [batch, CHANNELS, IMAGE, IMAGE].",
          .options = {{.name = "layers", .doc = "blocks", .value = 12, .maximum = 10000},
                      {.name = "heads", .doc = "attention heads of a block", .value = 12},
                      {.name = "embedding", .doc = "width; a multiple of the heads", .value = 768},
                      {.name = "feed-forward",
                       .doc = "width inside the feed-forward layers",
                       .value = 3072},
                      {.name = "patch", .doc = "side of a patch, in pixels", .value = 16},
                      {.name = "image", .doc = "side of the image, in pixels", .value = 224},
                      {.name = "channels", .doc = "of the image", .value = 3},
                      {.name = "classes", .doc = "different answers", .value = 1000},
                      {.name = "dropout",
                       .doc = "of embeddings, attention weights and residuals",
                       .value = 0.0}},
          .sizes = {{.name = "base", .arguments = size_of_vit(12, 12, 768, 16)},
                    {.name = "small", .arguments = size_of_vit(12, 6, 384, 16)},
                    {.name = "tiny", .arguments = size_of_vit(12, 3, 192, 16)},
                    {.name = "large", .arguments = size_of_vit(24, 16, 1024, 16)}},
          .build = build_vit};
}

}  // namespace trainscope
