// to_graph: names, kinds, sizes, float types, provenance, reports.
#include <doctest/doctest.h>

#include <algorithm>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

constexpr const char* kMlp = R"(<ir_version: 8, opset_import: ["" : 17]>
mlp (float[N, 3] x) => (float[N, 2] y)
<float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] bias = {0.5, -0.5}, int64[1] axes = {0},
 float[2] unread = {1, 1}>
{
  h = Gemm(x, w, bias)
  r = Relu(h)
  y = Mul(r, bias)
  s = ReduceSum(r, axes)
})";

Graph import_text(const std::string& text, const ImportOptions& options = {}) {
  Graph graph = to_graph(OnnxModel::parse_text(text), all_ops(), options);
  CHECK(verify(graph).empty());
  return graph;
}

Graph import_nodes(const std::string& nodes, const std::string& initializers = "") {
  static const Evaluate evaluate = evaluator(all_ops(), cpu_kernels());
  return import_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[2, 3] x) => (float[] y) <" +
          initializers + "> {" + nodes + "}",
      {.evaluate = &evaluate});
}

ValueKind kind_of(const Graph& graph, std::string_view name) {
  ValueId id = graph.find(name);
  REQUIRE(id != kNoValue);
  return graph.value(id).kind;
}

std::string refusal(const std::string& text, const ImportOptions& options, ErrorCode code) {
  OnnxModel model = OnnxModel::parse_text(text);
  std::optional<Error> error = error_of([&] { to_graph(model, all_ops(), options); });
  REQUIRE(error.has_value());
  CHECK(error->code() == code);
  return whole_text(*error);
}

bool contains(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("import: a model becomes a graph with the same names") {
  Graph graph = import_text(kMlp, {.dims = {{"N", 4}}});
  CHECK(graph.name == "mlp");
  CHECK(graph.opset == 17);
  CHECK(print(graph) ==
        "input x f32[4,3]\n"
        "parameter w f32[3,2]\n"
        "parameter bias f32[2]\n"
        "constant axes i64[1] {0}\n"
        "constant unread f32[2]\n"
        "h f32[4,2] = Gemm(x, w, bias)\n"
        "r f32[4,2] = Relu(h)\n"
        "y f32[4,2] = Mul(r, bias)\n"
        "s f32[1,2] = ReduceSum(r, axes)\n"
        "output y\n");
}

TEST_CASE("import: every node knows where it comes from") {
  onnx::ModelProto proto = small_model();
  proto.mutable_graph()->mutable_node(1)->clear_name();
  add_node(proto, "Relu", {"h"}, {"y2"}, "fc");      // a name that is taken
  add_node(proto, "Relu", {"h"}, {"y3"}, "Relu_1");  // the name that node 1 would be given
  Graph graph = to_graph(read_proto(proto), all_ops());
  std::vector<std::string> names;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    CHECK(node.provenance.pass == "import");
    CHECK(node.provenance.sources == SourceNames{node.name});
    names.push_back(node.name);
  }
  CHECK(names == std::vector<std::string>{"fc", "Relu_1_", "Relu_2", "Relu_1"});
}

TEST_CASE("import: facts of the model without building it") {
  OnnxModel model = OnnxModel::parse_text(kMlp);
  CHECK(model.name() == "mlp");
  CHECK(model.opset() == 17);
  CHECK(model.ir_version() == 8);
  CHECK(model.node_count() == 4);
  CHECK(model.op_counts().at("Relu") == 1);
  CHECK_FALSE(model.is_stage());
  REQUIRE(model.inputs().size() == 1);
  CHECK(model.inputs()[0].name == "x");
  CHECK(model.inputs()[0].dims->at(0).symbol == "N");
  CHECK(model.inputs()[0].dims->at(1).size == 3);
  REQUIRE(model.initializers().size() == 4);
  CHECK(model.initializers()[2].type == TensorType{DType::kI64, Shape{1}});
  CHECK(model.hash() == OnnxModel::parse_text(kMlp).hash());
  CHECK(model.hash() != OnnxModel::parse_text(std::string(kMlp) + " ").hash());
}

TEST_CASE("import: initializers are shared by all graphs of a model") {
  OnnxModel model = OnnxModel::parse_text(kMlp);
  Graph a = to_graph(model, all_ops(), {.dims = {{"N", 1}}});
  Graph b = to_graph(model, all_ops(), {.dims = {{"N", 9}}});
  CHECK(a.value(a.find("w")).data == b.value(b.find("w")).data);
  CHECK(a.value(a.find("w")).data == model.initializer("w"));
}

TEST_CASE("import: symbols are bound by name or by an input's whole shape") {
  const std::string two =
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[N, T] x, float[N, T] z) => (float[N, T] y) { y = Add(x, z) }";
  auto shape_of = [&two](const ImportOptions& options) {
    Graph graph = import_text(two, options);
    return graph.value(graph.find("y")).type.shape;
  };
  CHECK(shape_of({.dims = {{"N", 2}, {"T", 5}}}) == Shape{2, 5});
  CHECK(shape_of({.shapes = {{"z", {2, 5}}}}) == Shape{2, 5});
  CHECK(shape_of({.dims = {{"N", 2}}, .shapes = {{"x", {2, 5}}}}) == Shape{2, 5});
  CHECK(shape_of({.dims = {{"N", 0}, {"T", 5}}}) == Shape{0, 5});

  std::string open = refusal(two, {}, ErrorCode::kUsage);
  CHECK(contains(open, "input 'x': dimension 0 'N'\n  input 'x': dimension 1 'T'"));
  CHECK(contains(open, "--batch N, --seq N or --shape NAME=DIMS"));
  CHECK(contains(refusal(two, {.dims = {{"N", 2}, {"M", 5}}}, ErrorCode::kUsage),
                 "no input of the model has a dimension 'M'"));
  CHECK(contains(refusal(two, {.shapes = {{"w", {2, 5}}}}, ErrorCode::kUsage),
                 "the model has no input 'w'"));
  CHECK(contains(refusal(two, {.shapes = {{"x", {2}}}}, ErrorCode::kUsage),
                 "1 dimensions given, the model has 2"));
  CHECK(contains(refusal(two, {.dims = {{"N", 3}}, .shapes = {{"x", {2, 5}}}}, ErrorCode::kUsage),
                 "size 2, but 'N' is 3 elsewhere"));
  CHECK(contains(refusal(two, {.dims = {{"N", -3}, {"T", 1}}}, ErrorCode::kUsage), "negative"));
  CHECK(contains(refusal(kMlp, {.shapes = {{"x", {2, 4}}}}, ErrorCode::kUsage),
                 "dimension 1 is 3 in the model, 4 was given"));
}

TEST_CASE("import: patterns decide what is trained") {
  ImportOptions options{.dims = {{"N", 4}}};
  SUBCASE("frozen wins over trainable") {
    options.trainable = {"*"};
    options.frozen = {"b*s"};
    Graph graph = import_text(kMlp, options);
    CHECK(kind_of(graph, "w") == ValueKind::kParameter);
    CHECK(kind_of(graph, "bias") == ValueKind::kConstant);
    CHECK(kind_of(graph, "axes") == ValueKind::kConstant);
  }
  SUBCASE("only what is asked for") {
    options.trainable = {"bias"};
    Graph graph = import_text(kMlp, options);
    CHECK(kind_of(graph, "w") == ValueKind::kConstant);
    CHECK(kind_of(graph, "bias") == ValueKind::kParameter);
  }
  SUBCASE("a pattern that matches nothing") {
    options.frozen = {"biass"};
    std::string text = refusal(kMlp, options, ErrorCode::kUsage);
    CHECK(contains(text, "frozen pattern 'biass' matches no initializer"));
    CHECK(contains(text, "did you mean 'bias'?"));
  }
}

TEST_CASE("import: what shapes and ratios depend on is constant, running statistics are states") {
  Graph graph = to_graph(OnnxModel::parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 4] x) => (float[2, 3, 4] y)
<float[3] scale = {1, 1, 1}, float[3] shift = {0, 0, 0}, float[3] mean = {0, 0, 0},
 float[3] var = {1, 1, 1}, float ratio = {0.5}, bool train = {1}>
{
  n, m, v = BatchNormalization<training_mode = 1>(x, scale, shift, mean, var)
  y = Dropout(n, ratio, train)
})"),
                         all_ops(), {.frozen = {"mean", "var"}});
  CHECK(kind_of(graph, "scale") == ValueKind::kParameter);
  CHECK(kind_of(graph, "mean") == ValueKind::kState);
  CHECK(kind_of(graph, "var") == ValueKind::kState);
  CHECK(kind_of(graph, "ratio") == ValueKind::kConstant);
  CHECK(kind_of(graph, "train") == ValueKind::kConstant);
  CHECK(graph.updates.empty());  // the pass training_form decides about them
}

TEST_CASE("import: Constant nodes become constants") {
  Graph graph = import_nodes(R"(
    a = Constant<value_float = 1.5>()
    b = Constant<value = float[3] {1, 2, 3}>()
    c = Constant<value_ints = [2, 3]>()
    t = Mul(x, a)
    u = Add(t, b)
    y = Reshape(u, c))");
  CHECK(print(graph).find("constant a f32[] {1.5}\nconstant b f32[3]\nconstant c i64[2] {2,3}") !=
        std::string::npos);
  CHECK(graph.node_count() == 3);
}

TEST_CASE("import: shape arithmetic is known before the run") {
  Graph graph = import_nodes(R"(
    s = Shape(x)
    first = Gather(s, zero)
    rest = Gather(s, one)
    n = Mul(first, rest)
    flat = Unsqueeze(n, axis)
    y = Reshape(x, flat))",
                             "int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}");
  CHECK(graph.value(graph.find("y")).type.shape == Shape{6});
}

TEST_CASE("import: the f64 oracle") {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, int64[2] i) => (float[2] y)
<float[2] w = {0.1, 2}, int64[1] dims = {2}> {
  c = Constant<value_float = 0.1>()
  f = Cast<to = 1>(i)
  z = ConstantOfShape(dims)
  o = ConstantOfShape<value = float[1] {1}>(dims)
  a = Mul(x, w)
  b = Add(a, c)
  d = Add(b, f)
  e = Add(d, z)
  y = Add(e, o)
})";
  Graph graph = import_text(text, {.float_type = DType::kF64});
  for (const char* name : {"x", "w", "c", "f", "z", "o", "y"}) {
    CAPTURE(name);
    CHECK(graph.value(graph.find(name)).type.dtype == DType::kF64);
  }
  CHECK(graph.value(graph.find("i")).type.dtype == DType::kI64);
  // float32's 0.1, exactly.
  CHECK(graph.value(graph.find("w")).data->values<double>()[0] == static_cast<double>(0.1F));
}

TEST_CASE("import: values to keep become outputs") {
  Graph graph = import_text(kMlp, {.dims = {{"N", 4}}, .keep_values = {"h", "y"}});
  REQUIRE(graph.outputs.size() == 2);
  CHECK(graph.value(graph.outputs[1]).name == "h");
  std::string text = refusal(kMlp, {.dims = {{"N", 4}}, .keep_values = {"hh"}}, ErrorCode::kUsage);
  CHECK(contains(text, "the model has no value 'hh'"));
}

TEST_CASE("import: inputs that are known become constants") {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x, int64[2] shape) => (float[N, M] y) { y = Reshape(x, shape) })";
  CHECK(
      contains(refusal(text, {}, ErrorCode::kBadInput), "input 1 depends on the data of the run"));
  auto shape = std::make_shared<const Tensor>(Tensor::ints(Ints{3, 2}));
  Graph graph = import_text(text, {.known_inputs = {{"shape", shape}}});
  CHECK(kind_of(graph, "shape") == ValueKind::kConstant);
  CHECK(graph.inputs.size() == 1);
  CHECK(graph.value(graph.find("y")).type.shape == Shape{3, 2});
  // As f64: floats among them are upcast as the model's own.
  auto x =
      std::make_shared<const Tensor>(Tensor(TensorType{.dtype = DType::kF32, .shape = {2, 3}}));
  Graph upcast =
      import_text(text, {.float_type = DType::kF64, .known_inputs = {{"shape", shape}, {"x", x}}});
  CHECK(upcast.value(upcast.find("x")).data->dtype() == DType::kF64);

  CHECK(contains(refusal(text, {.known_inputs = {{"shap", shape}}}, ErrorCode::kUsage),
                 "the model has no input 'shap'\n"));
  CHECK(contains(refusal(text, {.known_inputs = {{"shape", x}}}, ErrorCode::kUsage),
                 "input 'shape' is i64[2], the given one is f32[2,3]"));
}

TEST_CASE("import: the names of all declared inputs, those with a default too") {
  OnnxModel model = OnnxModel::parse_text(R"(<ir_version: 3, opset_import: ["" : 17]>
g (float[2] w = {1, 2}, float[2] x) => (float[2] y) { y = Add(x, w) })");
  CHECK(model.inputs().size() == 1);
  CHECK(model.declared_inputs() == std::vector<std::string>{"w", "x"});
}

TEST_CASE("import: one report of all missing ops") {
  onnx::ModelProto proto = small_model();
  for (int i = 0; i < 12; ++i) {
    add_node(proto, "NoSuchOp", {"x"}, {"u" + std::to_string(i)});
  }
  add_node(proto, "NonMaxSuppression", {"x"}, {"boxes_out"}, "boxes");
  OnnxModel model = read_proto(proto);
  std::vector<MissingOp> missing = missing_ops(model, all_ops());
  REQUIRE(missing.size() == 2);
  CHECK(missing[0].op == "NoSuchOp");
  CHECK(missing[0].opset == 17);
  REQUIRE(missing[0].nodes.size() == 12);
  CHECK(missing[0].nodes[11] == "NoSuchOp_13");
  CHECK(missing[1].nodes == std::vector<std::string>{"boxes"});
  std::optional<Error> error = error_of([&model] { to_graph(model, all_ops()); });
  REQUIRE(error.has_value());
  CHECK(error->message() ==
        "the model needs 2 ops that cannot be imported:\n"
        "  NoSuchOp (opset 17, 12 nodes): there is no such op; NoSuchOp_2, NoSuchOp_3, NoSuchOp_4, "
        "NoSuchOp_5, NoSuchOp_6, NoSuchOp_7, NoSuchOp_8, NoSuchOp_9, NoSuchOp_10, NoSuchOp_11 "
        "and 2 more\n"
        "  NonMaxSuppression (opset 17, 1 node): it selects boxes after training; leave it to the "
        "caller; boxes");
}

TEST_CASE("import: typed data, bools and IR 3 inputs") {
  onnx::ModelProto proto = small_model();
  proto.set_ir_version(3);
  onnx::GraphProto& graph = *proto.mutable_graph();
  *graph.add_input() = value_info("w", {3, 2});
  *graph.add_input() = value_info("b", {2});
  onnx::TensorProto& w = *graph.mutable_initializer(0);
  w.clear_raw_data();
  for (int i = 1; i <= 6; ++i) w.add_float_data(static_cast<float>(i));
  onnx::TensorProto& flags = *graph.add_initializer();
  flags.set_name("flags");
  flags.set_data_type(onnx::TensorProto::BOOL);
  flags.add_dims(3);
  flags.set_raw_data(std::string("\x00\x07\x01", 3));
  OnnxModel model = read_proto(proto);
  CHECK(model.inputs().size() == 1);
  CHECK(model.initializer("w")->values<float>()[5] == 6.0F);
  const std::byte* bytes = model.initializer("flags")->data();
  CHECK((bytes[0] == std::byte{0} && bytes[1] == std::byte{1} && bytes[2] == std::byte{1}));
  CHECK(verify(to_graph(model, all_ops())).empty());
}

TEST_CASE("import: names with quotes, unicode and slashes stay as they are") {
  onnx::ModelProto proto = small_model();
  const std::string name = "/h.0/attn \"π\"/w:0";
  proto.mutable_graph()->mutable_initializer(0)->set_name(name);
  proto.mutable_graph()->mutable_node(0)->set_input(1, name);
  Graph graph = to_graph(read_proto(proto), all_ops());
  CHECK(kind_of(graph, name) == ValueKind::kParameter);
}

TEST_CASE("import: text that is no model") {
  std::optional<Error> error = error_of([] { OnnxModel::parse_text("agraph ("); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(contains(error->message(), "the model text cannot be parsed"));
}

TEST_CASE("import: a batch norm of five outputs is refused with the export that has none") {
  const auto error = error_of([] {
    const std::string text =
        "<ir_version: 9, opset_import: [\"\" : 17], producer_name: \"pytorch\"> g (float[2,3] x) "
        "=> "
        "(float[2,3] y) <float[3] w = {1,2,1}, float[3] b = {0,0,0}> "
        "{ y, m, v, s, t = BatchNormalization(x, w, b, b, w) }";
    to_graph(OnnxModel::parse_text(text), all_ops());
  });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(whole_text(*error).find("has 5 outputs, of which opset 17 knows 3") != std::string::npos);
  CHECK(whole_text(*error).find("track_running_stats") != std::string::npos);
}

}  // namespace trainscope::test
