// resnet: He et al. 2015, residual convolutional networks, in the form for ImageNet and in that for
// small images.
//
// Initial weights: torchvision's resnet.py, as He et al. 2015 ("Delving deep into rectifiers"):
// convolutions normal with sqrt(2 / fan-out), batch norms 1 and 0, the last layer torch's default.
// Names and the place of the stride (the 3x3 of a bottleneck) are torchvision's.
#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/models/arguments.h"
#include "engine/models/layers.h"

namespace trainscope {
namespace {

constexpr std::int64_t kExpansion = 4;  // outputs of a bottleneck over its width

struct ResnetSizes {
  Ints blocks;
  bool bottleneck, small_stem;
  std::int64_t width, image, channels, classes;
};

ResnetSizes resnet_sizes(const ModelArguments& arguments) {
  ResnetSizes sizes{.blocks = argument<Ints>(arguments, "blocks"),
                    .bottleneck = argument<bool>(arguments, "bottleneck"),
                    .small_stem = argument<std::string>(arguments, "stem") == "cifar",
                    .width = integer(arguments, "width"),
                    .image = integer(arguments, "image"),
                    .channels = integer(arguments, "channels"),
                    .classes = integer(arguments, "classes")};
  // Widths double from stage to stage.
  require(sizes.blocks.size() <= 8, ErrorCode::kUsage, "--blocks names {} stages, expected 1 to 8",
          sizes.blocks.size());
  return sizes;
}

class ResNet {
 public:
  ResNet(ResnetSizes sizes, std::uint64_t seed) : sizes_(std::move(sizes)), b_("resnet", seed) {}

  PlainModel build() {
    const ModelDim side = fixed(sizes_.image);
    ValueName x =
        b_.input("x", DType::kF32, {symbolic("batch"), fixed(sizes_.channels), side, side});
    x = stem(x);
    for (std::size_t stage = 0; stage < sizes_.blocks.size(); ++stage) {
      for (std::int64_t index = 0; index < sizes_.blocks[stage]; ++index) {
        const Block block{.path = fmt::format("layer{}.{}", stage + 1, index),
                          .width = sizes_.width << stage,
                          .stride = stage > 0 && index == 0 ? 2 : 1};
        x = residual(block, x);
      }
    }
    b_.set_scope("");
    const ValueName means = b_.node("GlobalAveragePool", "avgpool", {x});
    const ValueName flat = b_.node("Flatten", "flat", {means});
    const Initial initial = torch_default(channels_);
    linear(b_, "fc", flat,
           {.inputs = channels_,
            .outputs = sizes_.classes,
            .weight = initial,
            .bias = initial,
            .result = "logits"});
    b_.output("logits", {symbolic("batch"), fixed(sizes_.classes)});
    return b_.take();
  }

 private:
  // 7x7 and a pool for large images, 3x3 for small ones (section 4.2 of the paper).
  ValueName stem(const ValueName& x) {
    channels_ = sizes_.channels;
    const ConvForm form = sizes_.small_stem
                              ? ConvForm{.outputs = sizes_.width, .kernel = 3}
                              : ConvForm{.outputs = sizes_.width, .kernel = 7, .stride = 2};
    const ValueName active = b_.node("Relu", "relu", {conv_norm("conv1", "bn1", x, form)});
    channels_ = sizes_.width;
    if (sizes_.small_stem) return active;
    return max_pool(b_, "maxpool", active, {.kernel = 3, .stride = 2, .pad = 1});
  }

  struct Block {
    std::string path;
    std::int64_t width;
    std::int64_t stride;
  };
  ValueName residual(const Block& block, const ValueName& x) {
    const std::int64_t inputs = channels_;
    const std::int64_t outputs = sizes_.bottleneck ? kExpansion * block.width : block.width;
    b_.set_scope(scope_of(block.path));
    const ValueName body = sizes_.bottleneck ? bottleneck(block, x) : basic(block, x);
    ValueName skip = x;
    if (block.stride != 1 || inputs != outputs) {
      channels_ = inputs;
      skip = conv_norm(block.path + ".downsample.0", block.path + ".downsample.1", x,
                       {.outputs = outputs, .kernel = 1, .stride = block.stride});
    }
    channels_ = outputs;
    return b_.node("Relu", "relu_out", {b_.node("Add", "residual", {body, skip})});
  }

  ValueName basic(const Block& block, const ValueName& x) {
    const ValueName y =
        numbered(block, 1, x, {.outputs = block.width, .kernel = 3, .stride = block.stride});
    return numbered(block, 2, b_.node("Relu", "relu_1", {y}),
                    {.outputs = block.width, .kernel = 3});
  }

  ValueName bottleneck(const Block& block, const ValueName& x) {
    ValueName y = numbered(block, 1, x, {.outputs = block.width, .kernel = 1});
    y = b_.node("Relu", "relu_1", {y});
    y = numbered(block, 2, y, {.outputs = block.width, .kernel = 3, .stride = block.stride});
    y = b_.node("Relu", "relu_2", {y});
    return numbered(block, 3, y, {.outputs = kExpansion * block.width, .kernel = 1});
  }

  struct ConvForm {
    std::int64_t outputs;
    std::int64_t kernel;
    std::int64_t stride = 1;
  };
  ValueName numbered(const Block& block, int number, const ValueName& x, const ConvForm& form) {
    const ValueName y = conv_norm(fmt::format("{}.conv{}", block.path, number),
                                  fmt::format("{}.bn{}", block.path, number), x, form);
    channels_ = form.outputs;
    return y;
  }

  // From channels_ on, which the caller moves.
  ValueName conv_norm(const std::string& conv_path, const std::string& norm_path,
                      const ValueName& x, const ConvForm& form) {
    const auto fan_out = static_cast<double>(form.outputs * form.kernel * form.kernel);
    const ValueName y =
        conv(b_, conv_path, x,
             {.inputs = channels_,
              .outputs = form.outputs,
              .kernel = form.kernel,
              .stride = form.stride,
              .pad = form.kernel / 2,
              .weight = {.kind = Initial::Kind::kNormal, .size = std::sqrt(2.0 / fan_out)}});
    return batch_norm(b_, norm_path, y, form.outputs);
  }

  ResnetSizes sizes_;
  PlainBuilder b_;
  std::int64_t channels_ = 0;  // of the value that comes next
};

PlainModel build_resnet(const ModelArguments& arguments, std::uint64_t seed) {
  return ResNet(resnet_sizes(arguments), seed).build();
}

ModelArguments size_of_resnet(Ints blocks, bool bottleneck) {
  return {{"blocks", std::move(blocks)}, {"bottleneck", bottleneck}};
}

ModelArguments small_form(ModelArguments arguments) {
  arguments.insert_or_assign("stem", std::string("cifar"));
  arguments.insert_or_assign("image", std::int64_t{32});
  arguments.insert_or_assign("classes", std::int64_t{10});
  return arguments;
}

}  // namespace

// Sizes: table 1 of the paper; with -cifar the same stages for images of 32 pixels and 10
// classes.
ModelBuilder resnet_builder() {
  const ModelArguments r18 = size_of_resnet({2, 2, 2, 2}, false);
  const ModelArguments r34 = size_of_resnet({3, 4, 6, 3}, false);
  const ModelArguments r50 = size_of_resnet({3, 4, 6, 3}, true);
  const ModelArguments r101 = size_of_resnet({3, 4, 23, 3}, true);
  return {.name = "resnet",
          .doc = "Residual convolutional network; input x [batch, CHANNELS, IMAGE, IMAGE].",
          .options = {{.name = "blocks",
                       .doc = "residual blocks of each stage",
                       .value = Ints{2, 2, 2, 2},
                       .maximum = 1000},
                      {.name = "bottleneck", .doc = "blocks of 1x1, 3x3, 1x1", .value = false},
                      {.name = "stem",
                       .doc = "7x7 and pool, or 3x3",
                       .value = std::string("imagenet"),
                       .choices = {"imagenet", "cifar"}},
                      {.name = "width",
                       .doc = "channels of the first stage",
                       .value = 64,
                       .maximum = 1 << 16},
                      {.name = "image", .doc = "side of the image, in pixels", .value = 224},
                      {.name = "channels", .doc = "of the image", .value = 3},
                      {.name = "classes", .doc = "different answers", .value = 1000}},
          .sizes = {{.name = "18", .arguments = r18},
                    {.name = "34", .arguments = r34},
                    {.name = "50", .arguments = r50},
                    {.name = "101", .arguments = r101},
                    {.name = "18-cifar", .arguments = small_form(r18)},
                    {.name = "50-cifar", .arguments = small_form(r50)}},
          .build = build_resnet};
}

}  // namespace trainscope
