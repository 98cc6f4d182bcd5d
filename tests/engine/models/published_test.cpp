// Published sizes of the builders: parameters, shapes, and what they refuse.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "engine/core/error.h"
#include "engine/models/models.h"
#include "engine/session.h"

using namespace trainscope;

namespace {

std::int64_t parameters(std::string_view name, const ModelArguments& arguments) {
  return build_model(name, arguments, 1).parameters();
}

std::int64_t parameters(std::string_view name, const std::string& size) {
  return parameters(name, ModelArguments{{"size", size}});
}

const PlainInitializer& initializer(const PlainModel& model, std::string_view name) {
  const auto found = std::ranges::find(model.initializers, name, &PlainInitializer::name);
  REQUIRE(found != model.initializers.end());
  return *found;
}

double deviation(const PlainModel& model, std::string_view name) {
  const Tensor elements = initializer(model, name).elements();
  double squares = 0.0;
  for (const float element : elements.values<float>()) {
    squares += static_cast<double>(element) * static_cast<double>(element);
  }
  return std::sqrt(squares / static_cast<double>(elements.elements()));
}

float largest(const PlainModel& model, std::string_view name) {
  float most = 0.0F;
  const Tensor elements = initializer(model, name).elements();
  for (const float element : elements.values<float>()) most = std::max(most, std::fabs(element));
  return most;
}

std::optional<ErrorCode> refusal(std::string_view name, const ModelArguments& arguments) {
  try {
    build_model(name, arguments, 1);
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

// Graph of the imported model, with the shapes that the engine's own rules give.
Graph imported(std::string_view name, const ModelArguments& arguments,
               const std::map<std::string, std::int64_t>& dims) {
  const std::string bytes = onnx_bytes(build_model(name, arguments, 1));
  const OnnxModel model = OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
  CompileOptions options;
  options.import.dims = dims;
  options.training.mode = GraphMode::kInference;
  return build_stages(model, options).front().graph;
}

}  // namespace

TEST_CASE("models: published sizes have the published number of parameters") {
  // Radford et al. 2019, counted with the tied head.
  CHECK(parameters("gpt2", "124M") == 124'439'808);
  CHECK(parameters("gpt2", "355M") == 354'823'168);
  CHECK(parameters("gpt2", "774M") == 774'030'080);
  CHECK(parameters("gpt2", "1558M") == 1'557'611'200);
  // transformers' BertForMaskedLM.
  CHECK(parameters("bert", "base") == 109'514'298);
  CHECK(parameters("bert", "large") == 335'174'458);
  // TinyLlama and LLaMA 2.
  CHECK(parameters("llama", "1.1B") == 1'100'048'384);
  CHECK(parameters("llama", "7B") == 6'738'415'616);
  // torchvision's vit_b_16 and vit_l_16, timm's vit_small and vit_tiny.
  CHECK(parameters("vit", "base") == 86'567'656);
  CHECK(parameters("vit", "large") == 304'326'632);
  CHECK(parameters("vit", "small") == 22'050'664);
  CHECK(parameters("vit", "tiny") == 5'717'416);
  // torchvision's resnet18, 34, 50 and 101.
  CHECK(parameters("resnet", "18") == 11'689'512);
  CHECK(parameters("resnet", "34") == 21'797'672);
  CHECK(parameters("resnet", "50") == 25'557'032);
  CHECK(parameters("resnet", "101") == 44'549'160);
  CHECK(parameters("resnet", "18-cifar") == 11'173'962);
  CHECK(parameters("resnet", "50-cifar") == 23'520'842);
  CHECK(parameters("lenet", ModelArguments{}) == 61'706);
  CHECK(parameters("unet", ModelArguments{}) == 31'030'658);
}

TEST_CASE("models: the first size of a builder is its defaults") {
  for (const ModelBuilder& builder : model_builders()) {
    if (builder.sizes.empty()) continue;
    CAPTURE(builder.name);
    CHECK(parameters(builder.name, std::string(builder.sizes.front().name)) ==
          parameters(builder.name, ModelArguments{}));
  }
}

TEST_CASE("models: options given change a published size") {
  CHECK(parameters("gpt2", {{"size", std::string("355M")}, {"vocab", 50304}}) ==
        354'823'168 + 47 * 1024);
  CHECK(parameters("resnet", {{"size", std::string("18")}, {"classes", 10}}) ==
        11'689'512 - 990 * 513);
  CHECK(parameters("llama", {{"layers", 1}, {"tied", true}}) ==
        1'100'048'384 - 21 * 44'044'288 - 32000 * 2048);
}

TEST_CASE("models: sizes that do not exist or do not fit are usage errors") {
  CHECK(refusal("gpt2", {{"size", std::string("125M")}}) == ErrorCode::kUsage);
  CHECK(refusal("mlp", {{"size", std::string("base")}}) == ErrorCode::kUsage);
  CHECK(refusal("bert", {{"heads", 7}}) == ErrorCode::kUsage);
  CHECK(refusal("bert", {{"context", 1}}) == ErrorCode::kUsage);
  CHECK(refusal("bert", {{"dropout", 1.0}}) == ErrorCode::kUsage);
  CHECK(refusal("llama", {{"kv-heads", 5}}) == ErrorCode::kUsage);
  CHECK(refusal("llama", {{"heads", 2048}, {"kv-heads", 4}}) == ErrorCode::kUsage);  // odd heads
  CHECK(refusal("llama", {{"rope-base", 0.5}}) == ErrorCode::kUsage);
  CHECK(refusal("vit", {{"image", 225}}) == ErrorCode::kUsage);
  CHECK(refusal("vit", {{"heads", 5}}) == ErrorCode::kUsage);
  CHECK(refusal("vit", {{"dropout", -0.1}}) == ErrorCode::kUsage);
  CHECK(refusal("resnet", {{"stem", std::string("small")}}) == ErrorCode::kUsage);
  CHECK(refusal("resnet", {{"blocks", Ints(9, 1)}}) == ErrorCode::kUsage);
  CHECK(refusal("lenet", {{"image", 15}}) == ErrorCode::kUsage);
  CHECK(refusal("unet", {{"image", 200}}) == ErrorCode::kUsage);
  CHECK(refusal("unet", {{"image", 32}, {"depth", 3}, {"width", 2}}) == std::nullopt);
}

TEST_CASE("models: an unknown size is answered with the known ones") {
  const auto hint = [](const std::string& size) {
    try {
      build_model("resnet", {{"size", size}}, 1);
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string();
  };
  CHECK(hint("18-cifer").find("18-cifar") != std::string::npos);
  CHECK(hint("huge").find("one of 18, 34, 50") != std::string::npos);
}

TEST_CASE("models: initial weights as the sources of each builder say") {
  const PlainModel bert =
      build_model("bert", {{"layers", 1}, {"heads", 2}, {"embedding", 64}, {"vocab", 400}}, 3);
  CHECK(largest(bert, "bert.embeddings.word_embeddings.weight") <= 0.04F);
  CHECK(largest(bert, "bert.embeddings.word_embeddings.weight") > 0.0399F);
  CHECK(deviation(bert, "bert.embeddings.word_embeddings.weight") ==
        doctest::Approx(0.02 * 0.87962566).epsilon(0.02));
  CHECK(largest(bert, "bert.encoder.layer.0.attention.self.key.bias") == 0.0F);
  const PlainModel vit = build_model(
      "vit", {{"layers", 1}, {"heads", 2}, {"embedding", 64}, {"feed-forward", 256}}, 3);
  CHECK(largest(vit, "heads.head.weight") == 0.0F);
  CHECK(largest(vit, "class_token") == 0.0F);
  CHECK(deviation(vit, "encoder.pos_embedding") == doctest::Approx(0.02).epsilon(0.02));
  CHECK(deviation(vit, "conv_proj.weight") ==
        doctest::Approx(1.0 / std::sqrt(3.0 * 16 * 16)).epsilon(0.02));
  const std::string up = "encoder.layers.encoder_layer_0.mlp.0";
  CHECK(deviation(vit, up + ".weight") ==  // of a uniform: its bound / sqrt(3)
        doctest::Approx(std::sqrt(6.0 / 320.0 / 3.0)).epsilon(0.02));
  CHECK(deviation(vit, up + ".bias") == doctest::Approx(1e-6).epsilon(0.2));
  const PlainModel resnet = build_model("resnet", {}, 3);
  CHECK(deviation(resnet, "layer2.0.conv1.weight") ==
        doctest::Approx(std::sqrt(2.0 / (128 * 9))).epsilon(0.02));
  CHECK(largest(resnet, "layer2.0.bn1.weight") == 1.0F);
  CHECK(largest(resnet, "fc.weight") == doctest::Approx(1.0 / std::sqrt(512.0)).epsilon(0.001));
  const PlainModel llama =
      build_model("llama", {{"layers", 1}, {"embedding", 128}, {"vocab", 200}}, 3);
  CHECK(deviation(llama, "model.layers.0.mlp.up_proj.weight") ==
        doctest::Approx(0.02).epsilon(0.02));
  const PlainModel unet = build_model("unet", {{"width", 32}}, 3);
  CHECK(deviation(unet, "down.1.conv2.weight") ==
        doctest::Approx(std::sqrt(2.0 / (9 * 64))).epsilon(0.02));
}

TEST_CASE("models: shapes of logits and inputs as the engine reads them") {
  const auto shapes = [](std::string_view name, const ModelArguments& arguments,
                         const std::map<std::string, std::int64_t>& dims) {
    const Graph graph = imported(name, arguments, dims);
    REQUIRE(graph.outputs.size() == 1);
    CHECK(graph.value(graph.outputs.front()).name == "logits");
    return std::pair(graph.value(graph.inputs.front()).type.shape,
                     graph.value(graph.outputs.front()).type.shape);
  };
  const std::map<std::string, std::int64_t> batch{{"batch", 2}};
  const std::map<std::string, std::int64_t> tokens{{"batch", 2}, {"sequence", 5}};
  CHECK(shapes("bert", {{"layers", 1}, {"vocab", 40}}, tokens) ==
        std::pair(Shape{2, 5}, Shape{2, 5, 40}));
  CHECK(shapes("llama", {{"layers", 1}, {"vocab", 40}, {"embedding", 64}}, tokens) ==
        std::pair(Shape{2, 5}, Shape{2, 5, 40}));
  CHECK(shapes("vit", {{"layers", 1}}, batch) == std::pair(Shape{2, 3, 224, 224}, Shape{2, 1000}));
  CHECK(shapes("resnet", {{"size", std::string("18")}}, batch) ==
        std::pair(Shape{2, 3, 224, 224}, Shape{2, 1000}));
  CHECK(shapes("resnet", {{"size", std::string("18-cifar")}}, batch) ==
        std::pair(Shape{2, 3, 32, 32}, Shape{2, 10}));
  CHECK(shapes("lenet", {}, batch) == std::pair(Shape{2, 1, 32, 32}, Shape{2, 10}));
  CHECK(shapes("lenet", {{"image", 28}}, batch) == std::pair(Shape{2, 1, 28, 28}, Shape{2, 10}));
  CHECK(shapes("unet", {{"width", 4}, {"image", 64}}, batch) ==
        std::pair(Shape{2, 1, 64, 64}, Shape{2, 2, 64, 64}));
}

TEST_CASE("models: elements are made when they are written, once and one tensor at a time") {
  PlainModel model = build_model("lenet", {}, 1);
  std::vector<std::string> made;
  for (PlainInitializer& each : model.initializers) {
    each.elements = [make = each.elements, name = each.name, &made] {
      made.push_back(name);
      return make();
    };
  }
  const std::string bytes = onnx_bytes(model);
  CHECK(made.size() == model.initializers.size());
  for (std::size_t i = 0; i < made.size(); ++i) CHECK(made[i] == model.initializers[i].name);
  CHECK(bytes == onnx_bytes(build_model("lenet", {}, 1)));
}
