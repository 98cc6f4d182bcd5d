// What exporters merged, folded and left out: files of both PyTorch exporters, and texts.
#include "engine/onnx/initializers/restore.h"

#include <doctest/doctest.h>
#include <onnx/defs/parser.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/onnx/parameters.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

using Names = std::vector<std::string>;

OnnxModel exported(const std::string& name) {
  return OnnxModel::read(std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/exporters/" + name);
}

Names names_of(const ParameterChoices& choices, InitializerRole role) {
  Names names;
  for (const InitializerChoice& choice : choices.initializers) {
    if (choice.role == role) names.push_back(choice.name);
  }
  std::ranges::sort(names);
  return names;
}

Names trained(const OnnxModel& model, const ImportOptions& options = {}) {
  return names_of(choose_parameters(model, options), InitializerRole::kTrained);
}

OnnxModel text_model(const std::string& body) {
  return OnnxModel::parse_text("<ir_version: 8, opset_import: [\"\" : 17]>\ng " + body);
}

}  // namespace

TEST_CASE("restore: merged norms are two again, under PyTorch's names") {
  const OnnxModel model = exported("twoln.onnx");
  CHECK(trained(model) == trained(exported("twoln-noopt.onnx")));
  CHECK(trained(model).size() == 10);
  REQUIRE(restored_initializers(model).size() == 2);
  CHECK(restored_initializers(model)[0].name == "3.weight");
  CHECK(restored_initializers(model)[0].from == "1.weight");
  CHECK(choose_parameters(model, {}).faults.empty());
}

TEST_CASE("restore: a scale that is also a running variance is a parameter and a state") {
  const ParameterChoices choices = choose_parameters(exported("bn_shared.onnx"), {});
  CHECK(names_of(choices, InitializerRole::kTrained) ==
        Names{"0.bias", "0.weight", "2.bias", "2.weight", "3.bias", "3.weight"});
  CHECK(names_of(choices, InitializerRole::kState) == Names{"2.running_mean", "2.running_var"});
}

TEST_CASE("restore: a fused batch norm is a fault that names the call that keeps it") {
  const OnnxModel fused = exported("convbn.onnx");
  const ParameterChoices choices = choose_parameters(fused, {});
  REQUIRE(choices.faults.size() == 1);
  CHECK(choices.faults[0].message.find("'2'") != std::string::npos);
  CHECK(choices.faults[0].hint.find("optimize=False") != std::string::npos);
  CHECK_THROWS_AS(require_trainable(fused, {}), Error);
  CHECK_NOTHROW(require_trainable(fused, {.trainable = {"4.*"}}));
  CHECK_NOTHROW(require_trainable(exported("convbn-noopt.onnx"), {}));
  CHECK(trained(exported("convbn-noopt.onnx")).size() == 6);
}

TEST_CASE("restore: without marks the roles show that a statistic is merged with a scale") {
  const OnnxModel model = text_model(R"((float[2,3] x) => (float[2,3] y)
<float[3] weight = {1,1,1}, float[3] bias = {0,0,0}>
{ y = BatchNormalization(x, weight, bias, bias, weight) })");
  const ParameterChoices choices = choose_parameters(model, {});
  CHECK(names_of(choices, InitializerRole::kTrained) == Names{"bias", "weight"});
  CHECK(names_of(choices, InitializerRole::kState) == Names{"running_mean", "running_var"});
}

TEST_CASE("restore: norms of several modules that share a fresh scale are named") {
  const auto notes = [](const std::string& first, const std::string& second, const std::string& w) {
    onnx::ModelProto proto;
    const std::string text =
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,3] x) => (float[2,3] y) <float[3] w "
        "= {" +
        w +
        "}, float[3] b = {0,0,0}> { a = LayerNormalization(x, w, b)  "
        "y = LayerNormalization(a, w, b) }";
    REQUIRE(onnx::OnnxParser(text.c_str()).Parse(proto).IsOK());
    proto.mutable_graph()->mutable_node(0)->set_name(first);
    proto.mutable_graph()->mutable_node(1)->set_name(second);
    return choose_parameters(read_proto(proto), {}).notes;
  };
  const std::vector<ParameterFault> two =
      notes("/n1/LayerNormalization", "/n2/LayerNormalization", "1,1,1");
  REQUIRE(two.size() == 1);
  CHECK(two[0].text().find("2 norms share the scale 'w' and train it as one "
                           "('/n1/LayerNormalization', '/n2/LayerNormalization')") == 0);
  CHECK(notes("", "", "1,1,1").size() == 1);
  CHECK(notes("/n/LayerNormalization", "/n_1/LayerNormalization", "1,1,1").empty());
  CHECK(notes("/n1/LayerNormalization", "/n2/LayerNormalization", "1,2,1").empty());
}

TEST_CASE("restore: a batch norm whose running statistics are those of its last batch is named") {
  const auto notes = [](const std::string& momentum, const std::string& producer) {
    onnx::ModelProto proto;
    const std::string text =
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,3] x) => (float[2,3] y) <float[3] w "
        "= {1,2,1}, float[3] b = {0,0,0}, float[3] m = {0,1,0}, float[3] v = {1,1,2}> { y, n, o = "
        "BatchNormalization <training_mode = 1, momentum = " +
        momentum + "> (x, w, b, m, v) }";
    REQUIRE(onnx::OnnxParser(text.c_str()).Parse(proto).IsOK());
    proto.set_producer_name(producer);
    return choose_parameters(read_proto(proto), {}).notes;
  };
  REQUIRE(notes("0.0", "pytorch").size() == 1);
  CHECK(notes("0.0", "pytorch")[0].message.find("momentum=None") != std::string::npos);
  CHECK(notes("0.9", "pytorch").empty());
  CHECK(notes("0.0", "other").empty());
}

TEST_CASE("restore: a scale that is another norm's running variance is a parameter and a state") {
  const OnnxModel model = text_model(R"((float[2,3] x) => (float[2,3] y)
<float[3] w = {1,1,1}, float[3] b = {0,0,0}, float[3] s = {2,2,2}, float[3] m = {0,1,0}>
{ a = BatchNormalization(x, w, b, m, s)  y = BatchNormalization(a, s, b, m, w) })");
  const ParameterChoices choices = choose_parameters(model, {});
  CHECK(names_of(choices, InitializerRole::kTrained) == Names{"b", "s", "w"});
  CHECK(names_of(choices, InitializerRole::kState).size() == 3);
}

TEST_CASE("restore: an Identity of another exporter ties what it stands between") {
  onnx::ModelProto proto;
  REQUIRE(onnx::OnnxParser("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2,2] x) => "
                           "(float[2,2] y) <float[2,2] table = {1,2,3,4}> "
                           "{ head = Identity(table)  a = MatMul(x, table)  y = MatMul(a, head) }")
              .Parse(proto)
              .IsOK());
  proto.mutable_graph()->mutable_node(0)->set_name("Identity_3");
  proto.set_producer_name("tf2onnx");
  CHECK(trained(read_proto(proto)) == Names{"table"});
  proto.set_producer_name("pytorch");
  CHECK(trained(read_proto(proto)) == Names{"head", "table"});
}

TEST_CASE("restore: an embedding and its folded transpose are one parameter") {
  const auto read = [](const std::string& elements) {
    onnx::ModelProto proto;
    const std::string text =
        "<ir_version: 8, opset_import: [\"\" : 17]> g (int64[2] x) => (float[2,2] y) "
        "<float[2,3] table = {1,2,3,4,5,6}, float[3,2] w = {" +
        elements + "}> { e = Gather(table, x)  y = MatMul(e, w) }";
    REQUIRE(onnx::OnnxParser(text.c_str()).Parse(proto).IsOK());
    proto.mutable_graph()->mutable_initializer(1)->set_name("onnx::MatMul_8");
    proto.mutable_graph()->mutable_node(1)->set_input(1, "onnx::MatMul_8");
    return read_proto(proto);
  };
  CHECK(trained(read("1,4,2,5,3,6")) == Names{"table"});
  CHECK(trained(read("1,4,2,5,3,7")) == Names{"onnx::MatMul_8", "table"});
}

TEST_CASE("restore: a convolution's weight that the exporter made is a fault") {
  onnx::ModelProto proto;
  REQUIRE(onnx::OnnxParser("<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,1,2] x) => "
                           "(float[1,1,2] y) <float[1,1,1] w = {2}> { y = Conv(x, w) }")
              .Parse(proto)
              .IsOK());
  proto.mutable_graph()->mutable_initializer(0)->set_name("onnx::Conv_9");
  proto.mutable_graph()->mutable_node(0)->set_input(1, "onnx::Conv_9");
  const ParameterChoices choices = choose_parameters(read_proto(proto), {});
  REQUIRE(choices.faults.size() == 1);
  CHECK(choices.faults[0].hint.find("do_constant_folding=False") != std::string::npos);
}

TEST_CASE("stops: what is detached is found by place or by name, else it is a fault") {
  const auto faults = [](const std::string& first, const std::string& second) {
    onnx::ModelProto proto;
    std::ifstream file(std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/exporters/detached.onnx",
                       std::ios::binary);
    REQUIRE(proto.ParseFromIstream(&file));
    for (onnx::NodeProto& node : *proto.mutable_graph()->mutable_node()) {
      if (node.name() != "node_mul") continue;
      node.set_input(0, first);
      node.set_input(1, second);
    }
    return choose_parameters(read_proto(proto), {}).faults;
  };
  // mul(%tanh, %detach)
  CHECK(faults("tanh", "tanh").empty());
  CHECK(faults("linear", "tanh").empty());
  const std::vector<ParameterFault> unknown = faults("linear", "h.bias");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].message.find("the module detaches what 'node_mul' reads") == 0);
  CHECK(unknown[0].hint.find("optimize=False") != std::string::npos);
}

TEST_CASE("choose: exponents, fills, masks and single numbers are not what is trained") {
  const std::string body = R"((float[2,2] x, bool[2,2] m) => (float[2,2] y)
<float three = {3}, float low = {-1000000000}, float[2,2] mask = {0,-100000,0,0},
 float[2,2] ones = {1,0,1,1}, float val_4 = {2}, float logit_scale = {1}, float[2,2] w = {1,2,3,4}>
{ a = Pow(x, three)  b = Where(m, a, low)  c = Add(b, mask)  d = Mul(c, ones)  e = Mul(d, val_4)
  f = Mul(e, logit_scale)  y = MatMul(f, w) })";
  const OnnxModel model = text_model(body);
  const ParameterChoices choices = choose_parameters(model, {});
  CHECK(names_of(choices, InitializerRole::kConstant) ==
        Names{"low", "mask", "ones", "three", "val_4"});
  REQUIRE(choices.faults.size() == 1);
  CHECK(choices.faults[0].message.find("'logit_scale'") != std::string::npos);
  CHECK(choices.buffers_unknown);

  const auto decided = [&model](const ImportOptions& options) {
    CHECK(choose_parameters(model, options).faults.empty());
    return trained(model, options);
  };
  CHECK(decided({.frozen = {"logit_scale"}}) == Names{"w"});
  CHECK(decided({.trainable = {"logit_scale"}}) == Names{"logit_scale", "w"});
  CHECK(decided({.trainable = {"*"}}) == Names{"logit_scale", "w"});
  CHECK(decided({.trainable = {"w"}, .frozen = {"logit_scale"}}) == Names{"w"});
  CHECK(decided({.trainable = {"three"}, .frozen = {"logit_scale"}}) == Names{"three", "w"});
  CHECK(decided({.parameters = Names{"three"}}) == Names{"three"});
}

TEST_CASE("choose: scales of quantization are observed; --train NAME trains them") {
  const std::string body = R"((float[3,2] x) => (float[3,2] y)
<float[2,2] w = {1,2,3,4}, float[2] s = {0.1,0.2}, int8 z = {0}>
{ q = QuantizeLinear(w, s, z)  d = DequantizeLinear(q, s, z)  y = MatMul(x, d) })";
  const OnnxModel model = text_model(body);
  CHECK(names_of(choose_parameters(model, {}), InitializerRole::kTrained) == Names{"w"});
  ImportOptions with_scales;
  with_scales.trainable = {"s"};
  CHECK(names_of(choose_parameters(model, with_scales), InitializerRole::kTrained) ==
        Names{"s", "w"});
}

TEST_CASE("choose: statistics and scales of com.microsoft's training ops are not trained") {
  const OnnxModel model = OnnxModel::parse_text(
      R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
c (float[3,2] x) => (float[3,2] y)
<float[2] g = {1,2}, float[2] b = {0,1}, float[2] m = {0,1}, float[2] v = {1,2},
 float s = {0.1}, float z = {4.0}>
{ n, nm, nv, bm, bi = com.microsoft.BatchNormInternal(x, g, b, m, v)
  y, mask = com.microsoft.FakeQuant(n, s, z) })");
  const auto chosen = choose_parameters(model, {});
  CHECK(names_of(chosen, InitializerRole::kTrained) == Names{"b", "g"});
  CHECK(names_of(chosen, InitializerRole::kState) == Names{"m", "v"});
}

TEST_CASE("choose: masks of every kind, fills of a OneHot, and what only looks like a constant") {
  const std::string body = R"((double[2,2] x, int64[2] i) => (double[2,2] y)
<double[2,2] window = {0,-100,-100,0}, double[2,2] low = {0,-1000000000,0,0},
 double[2,2] upper = {0,1,0,0}, double[2] values = {0,1}, int64 depth = {2},
 double[2,2] small = {0,-3,-3,0}, double[2] Constant_scale = {1,2}>
{ a = Add(x, window)  b = Add(a, low)  c = Mul(b, upper)  h = OneHot(i, depth, values)
  d = Add(c, h)  e = Add(d, small)  y = Mul(e, Constant_scale) })";
  CHECK(trained(text_model(body)) == Names{"Constant_scale", "small"});
  const OnnxModel single = text_model(
      "(float[2] x) => (float[2] y) <float Constant_scale = {1}, float val_ = {1}, float "
      "Constant_3 = {1}> { a = Mul(x, Constant_scale)  b = Mul(a, val_)  y = Mul(b, Constant_3) }");
  CHECK(choose_parameters(single, {}).faults.size() == 2);
}

TEST_CASE("choose: a list names initializers that can be trained") {
  const auto refusal = [](const Names& names) {
    const auto error =
        error_of([&] { choose_parameters(exported("cube.onnx"), {.parameters = names}); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kUsage);
    return whole_text(*error);
  };
  CHECK(refusal({"l.weigth"}).find("did you mean 'l.weight'?") != std::string::npos);
  CHECK(trained(exported("cube.onnx"), {.parameters = Names{"l.weight"}}) == Names{"l.weight"});
  CHECK(trained(exported("cube.onnx")) == Names{"h.bias", "h.weight", "l.bias", "l.weight"});
  CHECK(names_of(choose_parameters(exported("buffer.onnx"), {}), InitializerRole::kBuffer) ==
        Names{"freq"});
}

}  // namespace trainscope::test
