// A state_dict's names, from files of both PyTorch exporters and from texts.
#include "engine/onnx/torch_names.h"

#include <doctest/doctest.h>
#include <onnx/defs/parser.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/onnx/parameters.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

using Names = std::vector<std::string>;

OnnxModel read(const std::string& path) {
  return OnnxModel::read(std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/" + path);
}

TorchNames names_in(const std::string& path) { return torch_names(read(path), {}); }

template <typename List>
Names sorted_names(const List& list) {
  Names names;
  for (const auto& each : list) names.push_back(each.name);
  std::ranges::sort(names);
  return names;
}

std::map<std::string, TorchTensor> by_name(const TorchNames& names) {
  std::map<std::string, TorchTensor> tensors;
  for (const TorchTensor& tensor : names.tensors) tensors.emplace(tensor.name, tensor);
  return tensors;
}

// A file of the older exporter; `renamed` gives initializers, and nodes by "node OUTPUT", names
// that ONNX's text has no letters for.
OnnxModel script_model(const std::string& text, const std::map<std::string, std::string>& renamed) {
  onnx::ModelProto proto;
  const std::string whole = "<ir_version: 8, opset_import: [\"\" : 17]> g " + text;
  REQUIRE(onnx::OnnxParser(whole.c_str()).Parse(proto).IsOK());
  proto.set_producer_name("pytorch");
  const auto rename = [&renamed](std::string& name) {
    const auto found = renamed.find(name);
    if (found != renamed.end()) name = found->second;
  };
  for (onnx::TensorProto& tensor : *proto.mutable_graph()->mutable_initializer()) {
    rename(*tensor.mutable_name());
  }
  for (onnx::NodeProto& node : *proto.mutable_graph()->mutable_node()) {
    node.set_name("node " + node.output(0));
    rename(*node.mutable_name());
    for (std::string& input : *node.mutable_input()) rename(input);
  }
  return read_proto(proto);
}

}  // namespace

TEST_CASE("torch_names: marks tell the names, restored tensors have theirs") {
  for (const char* file : {"data/exporters/twoln.onnx", "data/exporters/twoln-noopt.onnx"}) {
    const TorchNames names = names_in(file);
    CHECK(sorted_names(names.tensors) == Names{"0.bias", "0.weight", "1.bias", "1.weight", "2.bias",
                                               "2.weight", "3.bias", "3.weight", "4.bias",
                                               "4.weight"});
    CHECK(names.lost.empty());
    CHECK(names.unread.empty());
  }
}

TEST_CASE("torch_names: running statistics are tensors, their counters are not in the file") {
  const TorchNames names = names_in("data/exporters/bn_shared.onnx");
  CHECK(sorted_names(names.tensors) == Names{"0.bias", "0.weight", "2.bias", "2.running_mean",
                                             "2.running_var", "2.weight", "3.bias", "3.weight"});
  CHECK(names.counters == Names{"2.num_batches_tracked"});
  CHECK(names_in("zoo/resnet/model.onnx").counters.size() == 16);
}

TEST_CASE("torch_names: a fused norm is lost, and so is the layer that it is part of") {
  const TorchNames names = names_in("data/exporters/convbn.onnx");
  CHECK(sorted_names(names.tensors) == Names{"4.bias", "4.weight"});
  CHECK(sorted_names(names.lost) ==
        Names{"1.bias", "1.weight", "2.bias", "2.running_mean", "2.running_var", "2.weight"});
}

TEST_CASE("torch_names: buffers that are not persistent are no tensors of a state_dict") {
  const OnnxModel llama = read("zoo/llama/model.onnx");
  const TorchNames names = torch_names(llama, {});
  CHECK(names.lost.empty());
  for (const std::string& name : sorted_names(names.tensors)) {
    CHECK(name.find("inv_freq") == std::string::npos);
  }
  CHECK(std::ranges::count(names.unread, "module.model.rotary_emb.inv_freq") == 0);
}

TEST_CASE("torch_names: what the forward pass does not need is said") {
  CHECK(names_in("zoo/dinov2/model.onnx").unread == Names{"module.dinov2.embeddings.mask_token"});
}

TEST_CASE("torch_names: the older exporter's folded weights by bias, module and op") {
  const auto tensors = by_name(names_in("data/exporters/folded-ts.onnx"));
  const auto layout = [&tensors](const std::string& name) { return tensors.at(name).layout; };
  CHECK(tensors.size() == 17);
  CHECK(layout("attention.in_proj_weight") == TorchLayout::kTransposed);
  CHECK(layout("attention.out_proj.weight") == TorchLayout::kSame);
  CHECK(layout("layers.0.weight") == TorchLayout::kTransposed);
  CHECK(layout("layers.1.weight") == TorchLayout::kTransposed);
  CHECK(layout("group.weight") == TorchLayout::kVector);
  CHECK(layout("group.bias") == TorchLayout::kVector);
  CHECK(layout("slope.weight") == TorchLayout::kVector);
  CHECK(tensors.at("head.weight").initializer == "table.weight");
  CHECK(tensors.at("shift").initializer == "shift");
}

TEST_CASE("torch_names: a list of parameters finds folded and tied tensors by these names") {
  const OnnxModel model = read("data/exporters/folded-ts.onnx");
  CHECK(find_parameter(model, "attention.in_proj_weight").initializer.starts_with("onnx::MatMul"));
  CHECK(find_parameter(model, "group.bias").initializer.starts_with("onnx::Add"));
  CHECK(find_parameter(model, "head.weight").initializer == "table.weight");
  CHECK(find_parameter(model, "tail.weight").initializer.empty());
}

TEST_CASE("torch_names: what no name is known of is lost with the node that reads it") {
  const OnnxModel scaled =
      script_model("(float[2,3] x) => (float[2,3] y) <float[1,3] s = {1,2,3}> { y = Mul(x, s) }",
                   {{"s", "onnx::Mul_4"}, {"node y", "/Mul"}});
  const TorchNames names = torch_names(scaled, {});
  CHECK(names.tensors.empty());
  REQUIRE(names.lost.size() == 1);
  CHECK(names.lost[0].name == "onnx::Mul_4");
  CHECK(names.lost[0].reader == "/Mul");
  CHECK(torch_names(scaled, {.frozen = {"*"}}).lost.empty());
}

TEST_CASE("torch_names: of two folded weights of one module neither is named") {
  const std::string text =
      "(float[2,2] x) => (float[2,2] y) <float[2,2] a = {1,2,3,4}, float[2,2] b = {5,6,7,8}>"
      "{ h = MatMul(x, a)  y = MatMul(h, b) }";
  const std::map<std::string, std::string> names = {{"a", "onnx::MatMul_4"},
                                                    {"b", "onnx::MatMul_5"},
                                                    {"node h", "/mix/MatMul"},
                                                    {"node y", "/mix/MatMul_1"}};
  const OnnxModel one_module = script_model(text, names);
  CHECK(sorted_names(torch_names(one_module, {}).lost) ==
        Names{"onnx::MatMul_4", "onnx::MatMul_5"});
  std::map<std::string, std::string> apart = names;
  apart["node y"] = "/last/MatMul";
  CHECK(sorted_names(torch_names(script_model(text, apart), {}).tensors) ==
        Names{"last.weight", "mix.weight"});
}

TEST_CASE("torch_names: a layer under another path or at its second call is no tied layer") {
  const std::string text =
      "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}>"
      "{ h = Gemm <transB = 1> (x, w)  y = Gemm <transB = 1> (h, w) }";
  const auto names_of_calls = [&text](const std::string& second) {
    return sorted_names(torch_names(script_model(text, {{"w", "head.mix.weight"},
                                                        {"node h", "/head/mix/Gemm"},
                                                        {"node y", second}}),
                                    {})
                            .tensors);
  };
  for (const char* same : {"/mix/Gemm", "/head/mix_1/Gemm", "/tail/mix/Gemm", "/head/Gemm"}) {
    CAPTURE(same);
    CHECK(names_of_calls(same) == Names{"head.mix.weight"});
  }
  CHECK(names_of_calls("/tail/last/Gemm") == Names{"head.mix.weight", "tail.last.weight"});
}

TEST_CASE("torch_names: a trained constant of the graph has no name in the module") {
  const OnnxModel cube = read("data/exporters/cube.onnx");
  CHECK(torch_names(cube, {}).lost.empty());
  CHECK(sorted_names(torch_names(cube, {.trainable = {"val_1", "*.weight"}}).lost) ==
        Names{"val_1"});
}

TEST_CASE("torch_names: a model that PyTorch did not export has no names of it") {
  const OnnxModel model = OnnxModel::parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"hand\"> g (float[2] x) => "
      "(float[2] y) <float[2] w = {1,2}> { y = Mul(x, w) }");
  const auto error = error_of([&model] { torch_names(model, {}); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(whole_text(*error).find("it was written by 'hand'") != std::string::npos);
}

TEST_CASE("in_torch_layout: transposed, as a vector, in the model's type") {
  const OnnxModel model = read("data/exporters/folded-ts.onnx");
  for (const TorchTensor& tensor : torch_names(model, {}).tensors) {
    const SharedTensor own = model.initializer(tensor.initializer);
    const SharedTensor moved = in_torch_layout(model, tensor, own);
    CHECK(moved->dtype() == own->dtype());
    if (tensor.name == "attention.in_proj_weight") {
      CHECK(moved->shape() == Shape{24, 8});
      CHECK(moved->values<float>()[1] == own->values<float>()[24]);
    }
    if (tensor.name == "group.weight") CHECK(moved->shape() == Shape{8});
  }
}

}  // namespace trainscope::test
