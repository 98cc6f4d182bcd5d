// unet: Ronneberger et al. 2015, an encoder and a decoder joined at each scale, for a class per
// pixel. Its convolutions are padded, so that the answer has the image's size.
//
// Initial weights: section 3 of the paper: normal with sqrt(2 / fan-in), biases 0. The 2x2
// up-convolution, whose windows do not overlap, is a 1x1 convolution to four times the channels and
// a rearrangement: a matmul without scattered sums.
#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/models/arguments.h"
#include "engine/models/layers.h"

namespace trainscope {
namespace {

struct UnetSizes {
  std::int64_t depth, width, image, channels, classes;
  double dropout;
};

UnetSizes unet_sizes(const ModelArguments& arguments) {
  const UnetSizes sizes{.depth = integer(arguments, "depth"),
                        .width = integer(arguments, "width"),
                        .image = integer(arguments, "image"),
                        .channels = integer(arguments, "channels"),
                        .classes = integer(arguments, "classes"),
                        .dropout = argument<double>(arguments, "dropout")};
  const std::int64_t step = std::int64_t{1} << sizes.depth;
  require(sizes.image % step == 0, ErrorCode::kUsage,
          "--image {} cannot be halved {} times (--depth): it must be a multiple of {}",
          sizes.image, sizes.depth, step);
  check_dropout(sizes.dropout);
  return sizes;
}

Initial he_normal(std::int64_t fan_in) {
  return {.kind = Initial::Kind::kNormal, .size = std::sqrt(2.0 / static_cast<double>(fan_in))};
}

class Unet {
 public:
  Unet(const UnetSizes& sizes, std::uint64_t seed) : sizes_(sizes), b_("unet", seed) {}

  PlainModel build() {
    const ModelDim side = fixed(sizes_.image);
    ValueName x =
        b_.input("x", DType::kF32, {symbolic("batch"), fixed(sizes_.channels), side, side});
    std::vector<ValueName> skips;
    for (std::int64_t level = 0; level < sizes_.depth; ++level) {
      x = encoded(level, x);
      skips.push_back(x);
      x = max_pool(b_, "pool", x);
    }
    x = encoded(sizes_.depth, x);
    for (std::int64_t level = sizes_.depth - 1; level >= 0; --level) {
      x = decoded(level, x, skips[static_cast<std::size_t>(level)]);
    }
    conv(b_, "last", x,
         {.inputs = sizes_.width,
          .outputs = sizes_.classes,
          .weight = he_normal(sizes_.width),
          .bias = Initial{},
          .result = "logits"});
    b_.output("logits", {symbolic("batch"), fixed(sizes_.classes), side, side});
    return b_.take();
  }

 private:
  std::int64_t channels_at(std::int64_t level) const { return sizes_.width << level; }

  // The dropout is at the end of the encoder (section 3.1): its two deepest levels.
  ValueName encoded(std::int64_t level, const ValueName& x) {
    const std::string path = fmt::format("down.{}", level);
    const std::int64_t inputs = level == 0 ? sizes_.channels : channels_at(level - 1);
    const ValueName y = twice(path, x, {.inputs = inputs, .outputs = channels_at(level)});
    return level + 1 < sizes_.depth ? y : dropout(b_, "drop", y, sizes_.dropout);
  }

  ValueName decoded(std::int64_t level, const ValueName& x, const ValueName& skip) {
    const std::string path = fmt::format("up.{}", level);
    b_.set_scope(scope_of(path));
    const ValueName larger = upsampled(level, x);
    const ValueName both = b_.node("Concat", "both", {skip, larger}, {{"axis", std::int64_t{1}}});
    return twice(path, both, {.inputs = 2 * channels_at(level), .outputs = channels_at(level)});
  }

  // [B, 2 C, S, S] -> [B, C, 2 S, 2 S]
  ValueName upsampled(std::int64_t level, const ValueName& x) {
    const std::string path = fmt::format("up.{}.upconv", level);
    const std::int64_t c = channels_at(level);
    const std::int64_t side = sizes_.image >> (level + 1);
    const ValueName quads =
        conv(b_, path, x, {.inputs = 2 * c, .outputs = 4 * c, .weight = he_normal(2 * c)});
    const ValueName windows =
        b_.node("Reshape", "windows", {quads, b_.ints({0, c, 2, 2, side, side})});
    const ValueName rows =
        b_.node("Transpose", "rows", {windows}, {{"perm", Ints{0, 1, 4, 2, 5, 3}}});
    const ValueName image =
        b_.node("Reshape", "larger", {rows, b_.ints({0, c, 2 * side, 2 * side})});
    const ValueName bias = b_.filled(path + ".bias", {c, 1, 1}, 0.0F);
    return b_.node("Add", "larger_bias", {image, bias});
  }

  // 3x3 and ReLU, two times; leaves the path as the scope.
  struct Channels {
    std::int64_t inputs, outputs;
  };
  ValueName twice(const std::string& path, const ValueName& x, const Channels& channels) {
    b_.set_scope(scope_of(path));
    const ValueName first = b_.node("Relu", "relu_1", {padded(path + ".conv1", x, channels)});
    const Channels same{.inputs = channels.outputs, .outputs = channels.outputs};
    return b_.node("Relu", "relu_2", {padded(path + ".conv2", first, same)});
  }

  ValueName padded(const std::string& path, const ValueName& x, const Channels& channels) {
    return conv(b_, path, x,
                {.inputs = channels.inputs,
                 .outputs = channels.outputs,
                 .kernel = 3,
                 .pad = 1,
                 .weight = he_normal(9 * channels.inputs),
                 .bias = Initial{}});
  }

  UnetSizes sizes_;
  PlainBuilder b_;
};

PlainModel build_unet(const ModelArguments& arguments, std::uint64_t seed) {
  return Unet(unet_sizes(arguments), seed).build();
}

}  // namespace

ModelBuilder unet_builder() {
  return {
      .name = "unet",
      .doc =
          "A class for each pixel; input x [batch, CHANNELS, IMAGE, IMAGE], logits [batch, "
          "CLASSES, IMAGE, IMAGE] (class_axis=1).",
      .options =
          {{.name = "depth", .doc = "times that the image is halved", .value = 4, .maximum = 8},
           {.name = "width", .doc = "channels of the first stage", .value = 64, .maximum = 1 << 16},
           {.name = "image", .doc = "side of the image, in pixels", .value = 256},
           {.name = "channels", .doc = "of the image", .value = 1},
           {.name = "classes", .doc = "different answers", .value = 2},
           {.name = "dropout", .doc = "at the end of the encoder", .value = 0.0}},
      .build = build_unet};
}

}  // namespace trainscope
