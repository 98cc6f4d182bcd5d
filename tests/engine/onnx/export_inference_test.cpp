// export_inference: what is left of a training model when it is to be used.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "engine/core/file.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/onnx/export.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

constexpr const char* kNet = R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 3, 4] x, int64[N] labels) => (float[N, 3, 4] y, float[N, 3, 4] d, float[] loss)
<float[3] scale = {1, 2, 3}, float[3] shift = {0, 1, 0}, float[3] mean = {0, 1, 0},
 float[3] var = {1, 4, 1}, float ratio = {0.5}, bool train = {1}, float[3] kept = {7, 7, 7},
 int64 half = {2}>
{
  n, m, v = BatchNormalization<training_mode = 1>(x, scale, shift, mean, var)
  d1, mask = Dropout(n, ratio, train)
  d2 = Dropout(d1, ratio, train)
  y = Relu(d2)
  d = Dropout(y, ratio, train)
  f = Cast<to = 1>(labels)
  s = ReduceSum(f)
  loss = Mul(s, ratio)
})";

InferenceOptions trained() {
  InferenceOptions options;
  options.drop_outputs = {"loss"};
  options.tensor = [](std::string_view name) -> SharedTensor {
    if (name != "scale") return nullptr;
    // As a f64 run would give it.
    Tensor tensor({.dtype = DType::kF64, .shape = Shape{3}});
    std::ranges::fill(tensor.values<double>(), 0.25);
    return std::make_shared<const Tensor>(std::move(tensor));
  };
  return options;
}

onnx::ModelProto exported(const std::string& text, const InferenceOptions& options) {
  ScratchFolder folder;
  std::filesystem::path path = folder / "out.onnx";
  export_inference(OnnxModel::parse_text(text), path, options);
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(read_file(path, 1 << 20)));
  read_proto(model);  // our own validation
  return model;
}

std::string nodes_of(const onnx::ModelProto& model) {
  std::string text;
  for (const onnx::NodeProto& node : model.graph().node()) {
    text += node.op_type() + "(";
    for (const std::string& input : node.input()) text += input + " ";
    text += ")";
    for (const std::string& output : node.output()) text += " " + output;
    text += "; ";
  }
  return text;
}

std::vector<std::string> names_of(const auto& list) {
  std::vector<std::string> names;
  for (const auto& each : list) names.push_back(each.name());
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("inference export: dropout, loss and batch statistics are gone, names are not") {
  onnx::ModelProto model = exported(kNet, trained());
  CHECK(nodes_of(model) ==
        "BatchNormalization(x scale shift mean var ) n; Relu(n ) y; Identity(y ) d; ");
  CHECK(model.graph().node(0).attribute(0).i() == 0);
  CHECK(names_of(model.graph().input()) == Names{"x"});
  CHECK(names_of(model.graph().output()) == Names{"y", "d"});
  // Never read before: it stays. Only dropout and loss read `ratio` and `train`: they go.
  CHECK(names_of(model.graph().initializer()) ==
        Names{"scale", "shift", "mean", "var", "kept", "half"});
  const auto& dim = model.graph().input(0).type().tensor_type().shape().dim(0);
  CHECK(dim.dim_param() == "N");
  CHECK(model.opset_import(0).version() == 17);
}

TEST_CASE("inference export: trained elements in the type of the model, others unchanged") {
  onnx::ModelProto proto = exported(kNet, trained());
  OnnxModel model = read_proto(proto);
  CHECK(model.initializer("scale")->dtype() == DType::kF32);
  CHECK(model.initializer("scale")->values<float>()[2] == 0.25F);
  CHECK(model.initializer("var")->values<float>()[1] == 4.0F);
  CHECK(model.initializer("half")->values<std::int64_t>()[0] == 2);
}

TEST_CASE("inference export: statistics and masks that something reads are still there") {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[2, 3] x) => (float[2, 3] y, float[3] m, bool[2, 3] mask)
<float[3] scale = {1, 2, 3}, float[3] shift = {0, 1, 0}, float[3] mean = {0, 1, 0},
 float[3] var = {1, 4, 1}, float ratio = {0.5}, bool train = {1}>
{
  n, m, v = BatchNormalization<training_mode = 1>(x, scale, shift, mean, var)
  y, mask = Dropout(n, ratio, train)
})";
  CHECK(nodes_of(exported(text, {})) ==
        "Identity(mean ) m; BatchNormalization(x scale shift mean var ) n; "
        "Dropout(n ratio ) y mask; ");
}

TEST_CASE("inference export: a norm in the form of com.microsoft's training is ONNX's") {
  constexpr const char* kText = R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
net (float[N, 3] x) => (float[N, 3] y)
<float[3] scale = {1, 2, 3}, float[3] shift = {0, 1, 0}, float[3] mean = {0, 1, 0},
 float[3] var = {1, 4, 1}>
{ y, m, v, bm, bi = com.microsoft.BatchNormInternal<epsilon = 0.1>(x, scale, shift, mean, var) })";
  const onnx::ModelProto model = exported(kText, {});
  CHECK(nodes_of(model) == "BatchNormalization(x scale shift mean var ) y; ");
  const onnx::NodeProto& node = model.graph().node(0);
  CHECK(node.domain().empty());
  REQUIRE(node.attribute_size() == 1);
  CHECK(node.attribute(0).name() == "epsilon");
}

TEST_CASE("inference export: older opsets keep their own form") {
  const std::string text = R"(<ir_version: 7, opset_import: ["" : 9]>
net (float[2, 3] x) => (float[2, 3] y)
<float[3] scale = {1, 2, 3}, float[3] shift = {0, 1, 0}, float[3] mean = {0, 1, 0},
 float[3] var = {1, 4, 1}>
{
  n, m, v, sm, sv = BatchNormalization(x, scale, shift, mean, var)
  y = Dropout<ratio = 0.5>(n)
})";
  onnx::ModelProto model = exported(text, {});
  CHECK(nodes_of(model) == "BatchNormalization(x scale shift mean var ) n; Identity(n ) y; ");
  CHECK(model.graph().node(0).attribute_size() == 0);
  CHECK(model.opset_import(0).version() == 9);
}

TEST_CASE("inference export: what cannot be asked for") {
  OnnxModel model = OnnxModel::parse_text(kNet);
  ScratchFolder folder;
  auto refusal = [&](const InferenceOptions& options) {
    std::optional<Error> error =
        error_of([&] { export_inference(model, folder / "out.onnx", options); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kUsage);
    return whole_text(*error);
  };
  CHECK(refusal({.drop_outputs = {"z"}}).find("the model has no output 'z'") != std::string::npos);
  CHECK(refusal({.drop_outputs = {"y", "d", "loss"}}).find("no output would be left") !=
        std::string::npos);
  CHECK(list_directory(folder.path()).empty());
}

TEST_CASE("inference export: the file computes what the model in inference computes") {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[2, 3, 4] x) => (float[2, 3, 4] y)
<float[3] scale = {1, 2, 3}, float[3] shift = {0, 1, 0}, float[3] mean = {0.5, 1, 0},
 float[3] var = {1, 4, 2}, float ratio = {0.5}>
{
  n = BatchNormalization(x, scale, shift, mean, var)
  d = Dropout(n, ratio)
  y = Relu(d)
})";
  auto output_of = [](const OnnxModel& model) {
    Graph graph = to_graph(model, all_ops());
    Tensor x({.dtype = DType::kF32, .shape = Shape{2, 3, 4}});
    std::mt19937 generator(3);
    std::normal_distribution<float> normal;
    for (float& each : x.values<float>()) each = normal(generator);
    ReferenceValues values = reference_run(graph, {{"x", x}}, evaluator(all_ops(), cpu_kernels()));
    std::span<const float> y = values.at("y").values<float>();
    return std::vector<float>(y.begin(), y.end());
  };
  std::vector<float> before = output_of(OnnxModel::parse_text(text));
  CHECK(std::ranges::any_of(before, [](float each) { return each > 0; }));
  CHECK(output_of(read_proto(exported(text, {}))) == before);
}

}  // namespace trainscope::test
