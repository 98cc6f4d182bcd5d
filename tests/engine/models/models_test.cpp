// The builders: what they write, when they refuse.
#include "engine/models/models.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/core/error.h"

using namespace trainscope;

namespace {

const ModelArguments kSmall{{"layers", 2}, {"heads", 2},    {"embedding", 16},
                            {"vocab", 11}, {"context", 12}, {"bias", true}};

ModelArguments small_with(std::string_view name, OptionValue value) {
  ModelArguments arguments = kSmall;
  arguments.insert_or_assign(std::string(name), std::move(value));
  return arguments;
}

Tensor elements_of(const PlainModel& model, std::string_view name) {
  for (const PlainInitializer& each : model.initializers) {
    if (each.name == name) return each.elements();
  }
  FAIL("no initializer " << std::string(name));
  return {};
}

std::set<std::string> parameter_names(const PlainModel& model) {
  std::set<std::string> names;
  for (const PlainInitializer& each : model.initializers) names.insert(each.name);
  return names;
}

double deviation_of(const Tensor& tensor) {
  double sum = 0;
  double squares = 0;
  for (const float element : tensor.values<float>()) {
    sum += element;
    squares += static_cast<double>(element) * element;
  }
  const auto count = static_cast<double>(tensor.elements());
  return std::sqrt(squares / count - (sum / count) * (sum / count));
}

ErrorCode refusal(std::string_view name, const ModelArguments& arguments) {
  try {
    build_model(name, arguments, 1);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kRunFailed;
}

}  // namespace

TEST_CASE("models: what no builder has or takes is a usage error") {
  CHECK(refusal("gpt3", {}) == ErrorCode::kUsage);
  CHECK(refusal("mlp", {{"layers", 2}}) == ErrorCode::kUsage);
  CHECK(refusal("gpt2", small_with("layers", 0)) == ErrorCode::kUsage);
  CHECK(refusal("gpt2", small_with("vocab", std::int64_t{1} << 40)) == ErrorCode::kUsage);
  CHECK(refusal("gpt2", small_with("activation", std::string("swish"))) == ErrorCode::kUsage);
  CHECK(refusal("gpt2", small_with("heads", 3)) == ErrorCode::kUsage);
  CHECK(refusal("gpt2", small_with("context", 1)) == ErrorCode::kUsage);
  CHECK(refusal("gpt2", small_with("dropout", 1.0)) == ErrorCode::kUsage);
  CHECK(refusal("mlp", {{"dropout", 1.0}}) == ErrorCode::kUsage);
  CHECK(refusal("mlp", {{"dims", Ints{4}}}) == ErrorCode::kUsage);
  CHECK(refusal("mlp", {{"dims", Ints{4, 0, 2}}}) == ErrorCode::kUsage);
  CHECK(refusal("gpt2", kSmall) == ErrorCode::kRunFailed);  // nothing thrown
}

TEST_CASE("models: an error names the nearest builder and choice") {
  const auto hint = [](std::string_view name, const ModelArguments& arguments) {
    try {
      build_model(name, arguments, 1);
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string();
  };
  CHECK(hint("gtp2", {}).find("gpt2") != std::string::npos);
  CHECK(hint("mlp", {{"activation", std::string("rely")}}).find("relu") != std::string::npos);
}

TEST_CASE("gpt2: parameters have PyTorch's names and GPT-2's shapes") {
  const PlainModel model = build_model("gpt2", kSmall, 1);
  CHECK(model.initializers.size() == 2 + 2 * 12 + 2);
  CHECK(elements_of(model, "wte.weight").shape() == Shape{11, 16});
  CHECK(elements_of(model, "wpe.weight").shape() == Shape{12, 16});
  CHECK(elements_of(model, "h.1.ln_1.weight").shape() == Shape{16});
  CHECK(elements_of(model, "h.1.attn.c_attn.weight").shape() == Shape{16, 48});
  CHECK(elements_of(model, "h.1.attn.c_attn.bias").shape() == Shape{48});
  CHECK(elements_of(model, "h.1.attn.c_proj.weight").shape() == Shape{16, 16});
  CHECK(elements_of(model, "h.0.mlp.c_fc.weight").shape() == Shape{16, 64});
  CHECK(elements_of(model, "h.0.mlp.c_proj.weight").shape() == Shape{64, 16});
  CHECK(elements_of(model, "ln_f.bias").shape() == Shape{16});
  const auto bare = parameter_names(build_model("gpt2", small_with("bias", false), 1));
  CHECK(bare.size() == 2 + 2 * 6 + 1);
  for (const std::string& name : bare) CHECK(name.ends_with(".weight"));
}

TEST_CASE("gpt2: the published sizes are the defaults") {
  const ModelBuilder& gpt2 = model_builders().front();
  CHECK(gpt2.name == "gpt2");
  const std::map<std::string_view, std::int64_t> published{
      {"layers", 12}, {"heads", 12}, {"embedding", 768}, {"vocab", 50257}, {"context", 1024}};
  std::size_t checked = 0;
  for (const ModelOption& option : gpt2.options) {
    const auto* number = std::get_if<std::int64_t>(&option.value);
    if (number == nullptr) continue;
    CHECK(*number == published.at(option.name));
    ++checked;
  }
  CHECK(checked == published.size());
}

TEST_CASE("gpt2: initial weights as in the paper") {
  const PlainModel model = build_model(
      "gpt2", {{"layers", 2}, {"heads", 4}, {"embedding", 128}, {"vocab", 200}, {"context", 64}},
      7);
  CHECK(deviation_of(elements_of(model, "wte.weight")) == doctest::Approx(0.02).epsilon(0.02));
  CHECK(deviation_of(elements_of(model, "h.0.mlp.c_fc.weight")) ==
        doctest::Approx(0.02).epsilon(0.02));
  CHECK(deviation_of(elements_of(model, "h.1.mlp.c_proj.weight")) ==
        doctest::Approx(0.01).epsilon(0.02));  // 0.02 / sqrt(2 * 2 layers)
  CHECK(deviation_of(elements_of(model, "h.0.attn.c_proj.weight")) ==
        doctest::Approx(0.01).epsilon(0.02));
  const Tensor scales = elements_of(model, "ln_f.weight");
  const Tensor biases = elements_of(model, "ln_f.bias");
  for (const float scale : scales.values<float>()) CHECK(scale == 1.0F);
  for (const float bias : biases.values<float>()) CHECK(bias == 0.0F);
}

TEST_CASE("models: the seed decides every byte, biases leave the weights as they are") {
  const std::string bytes = onnx_bytes(build_model("gpt2", kSmall, 1));
  CHECK(bytes == onnx_bytes(build_model("gpt2", kSmall, 1)));
  CHECK(bytes != onnx_bytes(build_model("gpt2", kSmall, 2)));
  const PlainModel bare = build_model("gpt2", small_with("bias", false), 1);
  const PlainModel full = build_model("gpt2", kSmall, 1);
  for (const PlainInitializer& each : bare.initializers) {
    const Tensor elements = each.elements();
    const Tensor others = elements_of(full, each.name);
    CHECK(std::ranges::equal(elements.values<float>(), others.values<float>()));
  }
}

TEST_CASE("mlp: PyTorch's names and initial range") {
  const PlainModel model = build_model("mlp", {{"dims", Ints{25, 40, 30, 3}}}, 5);
  CHECK(parameter_names(model) ==
        std::set<std::string>{"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"});
  const Tensor weight = elements_of(model, "0.weight");
  CHECK(weight.shape() == Shape{40, 25});
  float most = 0;
  for (const float element : weight.values<float>()) most = std::max(most, std::fabs(element));
  CHECK(most <= 0.2F);  // 1 / sqrt(25)
  CHECK(most > 0.19F);
  CHECK(deviation_of(weight) == doctest::Approx(0.2 / std::sqrt(3.0)).epsilon(0.05));
  const PlainModel bare = build_model("mlp", {{"dims", Ints{4, 2}}, {"bias", false}}, 5);
  CHECK(parameter_names(bare) == std::set<std::string>{"0.weight"});
}

TEST_CASE("mlp: dropout follows each activation, and changes no parameter") {
  const auto build = [](double dropout) {
    return build_model("mlp", {{"dims", Ints{6, 5, 4, 3}}, {"dropout", dropout}}, 5);
  };
  const PlainModel model = build(0.25);
  std::vector<std::string> ops;
  for (const PlainNode& node : model.nodes) ops.push_back(node.op);
  CHECK(ops == std::vector<std::string>{"Gemm", "Relu", "Constant", "Dropout", "Gemm", "Relu",
                                        "Dropout", "Gemm"});
  CHECK(parameter_names(model) == parameter_names(build(0.0)));
  CHECK(build(0.0).nodes.size() == 5);
}
