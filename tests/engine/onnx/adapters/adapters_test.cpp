// Nodes of other opsets become nodes of opset 17 that mean the same.
#include "engine/onnx/adapters/adapters.h"

#include <doctest/doctest.h>
#include <onnx/defs/schema.h>

#include <set>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

// Imports one node (or a few) on x f32[2,3,4] of an opset; the printed nodes, a line each.
struct Imported {
  std::string nodes;
  Shape result;
};

Imported import_at(int opset, const std::string& body, const std::string& initializers = "",
                   const std::string& result_shape = "[]") {
  static const Evaluate evaluate = evaluator(all_ops(), cpu_kernels());
  std::string text = "<ir_version: 7, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" +
                     "g (float[2, 3, 4] x) => (float" + result_shape + " y) <" + initializers +
                     "> {" + body + "}";
  Graph graph = to_graph(OnnxModel::parse_text(text), all_ops(), {.evaluate = &evaluate});
  CHECK(verify(graph).empty());
  std::string printed = print(graph);
  Imported imported{.nodes = {}, .result = graph.value(graph.find("y")).type.shape};
  std::size_t begin = 0;
  while (begin < printed.size()) {
    std::size_t end = printed.find('\n', begin);
    std::string line = printed.substr(begin, end - begin);
    if (line.find(" = ") != std::string::npos) imported.nodes += line + "\n";
    begin = end + 1;
  }
  return imported;
}

bool contains(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("adapters: axes and sizes move from attributes to inputs") {
  CHECK(import_at(11, "y = Unsqueeze<axes = [0, 4]>(x)").result == Shape{1, 2, 3, 4, 1});
  CHECK(import_at(11, "u = Unsqueeze<axes = [1]>(x) y = Squeeze<axes = [1]>(u)").result ==
        Shape{2, 3, 4});
  CHECK(import_at(11, "y = ReduceSum<axes = [1], keepdims = 0>(x)").result == Shape{2, 4});
  CHECK(import_at(11, "y = ReduceSum<keepdims = 0>(x)").result == Shape{});
  CHECK(import_at(11, "a, y = Split<axis = 2, split = [1, 3]>(x)").result == Shape{2, 3, 3});
  CHECK(import_at(11, "a, y = Split<axis = 2>(x)").result == Shape{2, 3, 2});
  CHECK(import_at(9, "y = Slice<starts = [1], ends = [9], axes = [2]>(x)").result ==
        Shape{2, 3, 3});
  CHECK(import_at(9, "y = Slice<starts = [0, 1], ends = [1, 3]>(x)").result == Shape{1, 2, 4});
  CHECK(import_at(10, "y = Pad<pads = [0, 0, 1, 0, 0, 2], value = 1.5>(x)").result ==
        Shape{2, 3, 7});
  CHECK(import_at(4, "y = Reshape<shape = [6, -1]>(x)").result == Shape{6, 4});
}

TEST_CASE("adapters: a softmax over all axes from one on") {
  Imported flat = import_at(11, "y = Softmax(x)");
  CHECK(flat.result == Shape{2, 3, 4});
  CHECK(contains(flat.nodes, "f32[2,12] = Reshape(x,"));
  CHECK(contains(flat.nodes, "f32[2,12] = Softmax("));
  CHECK(contains(flat.nodes, "y f32[2,3,4] = Reshape("));
  // The last axis alone needs no detour, negative or not.
  CHECK(import_at(11, "y = Softmax<axis = 2>(x)").nodes == "y f32[2,3,4] = Softmax(x) axis=-1\n");
  CHECK(import_at(11, "y = LogSoftmax<axis = -1>(x)").nodes ==
        "y f32[2,3,4] = LogSoftmax(x) axis=-1\n");
  CHECK(contains(import_at(11, "y = LogSoftmax<axis = 0>(x)").nodes, "f32[1,24] = LogSoftmax("));
  // Opset 13 means what it says.
  CHECK(import_at(13, "y = Softmax<axis = 1>(x)").nodes == "y f32[2,3,4] = Softmax(x) axis=1\n");
}

TEST_CASE("adapters: dropout and batch norm of old say their mode") {
  Imported dropout = import_at(10, "y, mask = Dropout<ratio = 0.25>(x)");
  CHECK(contains(dropout.nodes, "Dropout(x, "));
  const std::string statistics =
      "float[3] s = {1, 1, 1}, float[3] b = {0, 0, 0}, float[3] m = {0, 0, 0}, "
      "float[3] v = {1, 1, 1}";
  Imported trained = import_at(
      9, "y, m1, v1, ms, vs = BatchNormalization<momentum = 0.8>(x, s, b, m, v)", statistics);
  CHECK(contains(trained.nodes, "training_mode=1"));
  CHECK_FALSE(contains(trained.nodes, "ms"));
  Imported fixed = import_at(9, "y = BatchNormalization(x, s, b, m, v)", statistics);
  CHECK(contains(fixed.nodes, "training_mode=0"));
  Imported spatial = import_at(8, "y = BatchNormalization<spatial = 1>(x, s, b, m, v)", statistics);
  CHECK_FALSE(contains(spatial.nodes, "spatial"));
}

TEST_CASE("adapters: an output that later opsets lack must not be read") {
  std::optional<Error> error = error_of([] {
    import_at(9, "n, m1, v1, ms, vs = BatchNormalization(x, s, b, m, v) y = Relu(ms)",
              "float[3] s = {1, 1, 1}, float[3] b = {0, 0, 0}, float[3] m = {0, 0, 0}, "
              "float[3] v = {1, 1, 1}");
  });
  REQUIRE(error.has_value());
  CHECK(contains(whole_text(*error), "reads 'ms', an output that has no counterpart"));
}

TEST_CASE("adapters: opset 18 and later") {
  const std::string axes = "int64[2] axes = {0, -1}";
  Imported mean = import_at(18, "y = ReduceMean<keepdims = 0>(x, axes)", axes);
  CHECK(mean.result == Shape{3});
  CHECK(contains(mean.nodes, "ReduceMean(x) axes={0,-1} keepdims=0"));
  CHECK(import_at(18, "y = ReduceMean<keepdims = 0>(x)").result == Shape{});
  CHECK(
      contains(import_at(18, "y = ReduceMean<noop_with_empty_axes = 1>(x)").nodes, "Identity(x)"));
  CHECK(import_at(18, "a, y = Split<axis = 1, num_outputs = 2>(x)").result == Shape{2, 1, 4});
  CHECK(import_at(18, "y, a = Split<axis = 1, num_outputs = 2>(x)").result == Shape{2, 2, 4});
  Imported pad = import_at(18, "y = Pad(x, pads, , axes)", axes + ", int64[4] pads = {1, 0, 2, 3}");
  CHECK(pad.result == Shape{5, 3, 7});
  CHECK(import_at(21, "y = Cast<to = 1, saturate = 1>(x)").result == Shape{2, 3, 4});
  CHECK(import_at(21, "r = Relu(x) y = Transpose(r)").result == Shape{4, 3, 2});
}

TEST_CASE("adapters: ops that opset 17 does not have are ours") {
  CHECK(import_at(20, "y = Gelu<approximate = \"tanh\">(x)").nodes ==
        "y f32[2,3,4] = ts.Gelu(x) approximate='tanh'\n");
  CHECK(import_at(23, "y = RMSNormalization(x, w)", "float[4] w = {1, 2, 3, 4}").nodes ==
        "y f32[2,3,4] = ts.RMSNormalization(x, w)\n");
  CHECK(contains(import_at(23, "y = RMSNormalization(x, w)", "float[1] w = {2}").nodes,
                 " = ts.RMSNormalization(x, "));
  const Imported rotated =
      import_at(23, "y = RotaryEmbedding<num_heads = 2, rotary_embedding_dim = 2>(x, c, c)",
                "float[2,3,1] c = {1, 2, 3, 4, 5, 6}");
  CHECK(rotated.result == Shape{2, 3, 4});
  CHECK(contains(rotated.nodes, " = ts.RotaryEmbedding("));
  CHECK(import_at(24, "y = Swish(x)").nodes == "y f32[2,3,4] = ts.Swish(x)\n");
}

TEST_CASE("adapters: rotary positions that do not fit are refused") {
  const auto refusal = [](const std::string& dim, const std::string& table) {
    const std::optional<Error> error = error_of([&] {
      import_at(23,
                "y = RotaryEmbedding<num_heads = 2, rotary_embedding_dim = " + dim + ">(x, c, c)",
                table);
    });
    return error ? error->message() : "accepted";
  };
  const std::string fits = "float[2,3,1] c = {1, 2, 3, 4, 5, 6}";
  CHECK(contains(refusal("-2", fits), "-2 elements of a head of 2 are rotated"));
  CHECK(contains(refusal("1", fits), "1 elements of a head of 2 are rotated"));
  CHECK(contains(refusal("4", fits), "4 elements of a head of 2 are rotated"));
  CHECK(contains(refusal("2", "float[2,3,0] c = {}"), "has 0 columns, expected at least 1"));
}

TEST_CASE("adapters: a form nobody can convert is reported with op, node and opset") {
  onnx::ModelProto proto = small_model();
  proto.mutable_opset_import(0)->set_version(8);
  proto.mutable_graph()->mutable_node(1)->set_op_type("Erf");  // born in opset 9
  std::vector<MissingOp> missing = missing_ops(read_proto(proto), all_ops());
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].op == "Erf");
  CHECK(missing[0].opset == 8);
  CHECK(missing[0].why == "no conversion from opset 8 is known");
  CHECK(missing[0].nodes == std::vector<std::string>{"act"});
}

TEST_CASE("adapters: an op that was replaced needs the one that stands in for it") {
  OnnxModel model = OnnxModel::parse_text(R"(<ir_version: 7, opset_import: ["" : 9]>
g (float[1, 1, 2, 2] x, int64[1, 1, 2, 2] i) => (float[1, 1, 2, 2] y, float[1, 1, 4, 4] z)
<float[4] scales = {1, 1, 2, 2}> {
  y = Scatter(x, i, x)
  z = Upsample(x, scales)
})");
  std::vector<MissingOp> missing = missing_ops(model, OpTable());
  REQUIRE(missing.size() == 2);
  CHECK(missing[0].op == "Scatter");
  CHECK(missing[0].why == "there is no ScatterElements, which stands in for it");
  CHECK(missing[1].why == "there is no Resize, which stands in for it");
}

TEST_CASE("adapters: rows without a function claim no more than ONNX's schemas allow") {
  for (const AdapterRow& row : plain_rows()) {
    CAPTURE(row.op);
    CHECK((row.convert == nullptr));
    const onnx::OpSchema* old_form = onnx::OpSchemaRegistry::Schema(std::string(row.op), row.from);
    const onnx::OpSchema* new_form = onnx::OpSchemaRegistry::Schema(std::string(row.op), row.to);
    REQUIRE(old_form != nullptr);
    REQUIRE(new_form != nullptr);
    // Every input and attribute of the old form is one of the new form, at the same place.
    REQUIRE(old_form->inputs().size() <= new_form->inputs().size());
    for (const auto& [name, attribute] : old_form->attributes()) {
      CAPTURE(name);
      auto found = new_form->attributes().find(name);
      REQUIRE(found != new_form->attributes().end());
      CHECK(found->second.type == attribute.type);
      if (attribute.default_value.type() == found->second.default_value.type()) {
        CHECK(attribute.default_value.SerializeAsString() ==
              found->second.default_value.SerializeAsString());
      }
    }
  }
}

}  // namespace trainscope::test
