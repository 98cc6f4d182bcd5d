// lenet: LeNet-5 of LeCun et al. 1998, with ReLU, max pools and full connections, as it is written
// today.
//
// Initial weights: the defaults of torch.nn.Conv2d and torch.nn.Linear, weights and biases uniform
// within 1 / sqrt(fan-in) (the paper's 2.4 / fan-in was meant for its scaled tanh). Names are those
// of a torch.nn.Sequential.
#include "engine/core/error.h"
#include "engine/models/arguments.h"
#include "engine/models/layers.h"

namespace trainscope {
namespace {

constexpr std::int64_t kKernel = 5;
constexpr std::int64_t kLeastImage = 16;  // 16 -> 12 -> 6 -> 2 -> 1

std::int64_t halved(std::int64_t side) { return (side - kKernel + 1) / 2; }

struct Stage {
  std::string path;
  std::int64_t inputs, outputs;
};

ValueName convolved(PlainBuilder& b, const ValueName& x, const Stage& stage) {
  const Initial initial = torch_default(stage.inputs * kKernel * kKernel);
  const ValueName y = conv(b, stage.path, x,
                           {.inputs = stage.inputs,
                            .outputs = stage.outputs,
                            .kernel = kKernel,
                            .weight = initial,
                            .bias = initial});
  return max_pool(b, stage.path + "/pool", b.node("Relu", stage.path + "/relu", {y}));
}

ValueName connected(PlainBuilder& b, const ValueName& x, const Stage& stage,
                    std::string_view result = {}) {
  const Initial initial = torch_default(stage.inputs);
  return linear(b, stage.path, x,
                {.inputs = stage.inputs,
                 .outputs = stage.outputs,
                 .weight = initial,
                 .bias = initial,
                 .result = result});
}

PlainModel build_lenet(const ModelArguments& arguments, std::uint64_t seed) {
  const std::int64_t image = integer(arguments, "image");
  const std::int64_t channels = integer(arguments, "channels");
  const std::int64_t classes = integer(arguments, "classes");
  require(image >= kLeastImage, ErrorCode::kUsage, "--image is {}, expected {} at least", image,
          kLeastImage);
  PlainBuilder b("lenet", seed);
  const ModelDim side = fixed(image);
  ValueName x = b.input("x", DType::kF32, {symbolic("batch"), fixed(channels), side, side});
  x = convolved(b, x, {.path = "0", .inputs = channels, .outputs = 6});
  x = convolved(b, x, {.path = "3", .inputs = 6, .outputs = 16});
  x = b.node("Flatten", "flat", {x});
  const std::int64_t last = halved(halved(image));
  x = connected(b, x, {.path = "7", .inputs = 16 * last * last, .outputs = 120});
  x = connected(b, b.node("Relu", "7/relu", {x}), {.path = "9", .inputs = 120, .outputs = 84});
  x = b.node("Relu", "9/relu", {x});
  connected(b, x, {.path = "11", .inputs = 84, .outputs = classes}, "logits");
  b.output("logits", {symbolic("batch"), fixed(classes)});
  return b.take();
}

}  // namespace

ModelBuilder lenet_builder() {
  return {
      .name = "lenet",
      .doc = "Two convolutions and three dense layers; input x [batch, CHANNELS, IMAGE, IMAGE].",
      .options = {{.name = "image", .doc = "side of the image, in pixels", .value = 32},
                  {.name = "channels", .doc = "of the image", .value = 1},
                  {.name = "classes", .doc = "different answers", .value = 10}},
      .build = build_lenet};
}

}  // namespace trainscope
