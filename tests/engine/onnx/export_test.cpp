// write_onnx: a stage goes out and comes back the same.
#include "engine/onnx/export.h"

#include <doctest/doctest.h>

#include "engine/core/file.h"
#include "engine/ir/builder.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

Tensor numbers(Shape shape, float first) {
  Tensor tensor({.dtype = DType::kF32, .shape = shape});
  for (float& each : tensor.values<float>()) each = first++;
  return tensor;
}

// A training step in small: forward, loss, a gradient, an update, a state without elements.
Graph training_step() {
  Graph graph;
  graph.name = "step";
  Builder b(graph, all_ops());
  b.set_provenance({.sources = {"fc"}, .pass = "import"});
  ValueId x = b.input("x", {.dtype = DType::kF32, .shape = Shape{2, 3}});
  Value w;
  w.name = "w";
  w.type = {.dtype = DType::kF32, .shape = Shape{2, 3}};
  w.kind = ValueKind::kParameter;
  w.data = std::make_shared<const Tensor>(numbers(Shape{2, 3}, 1));
  ValueId parameter = graph.add_value(std::move(w));
  ValueId half = b.scalar(0.5, DType::kF32);
  ValueId y = b("Mul", {x, parameter});
  ValueId loss = b("ReduceSum", {y}, {{"keepdims", std::int64_t{0}}});
  ValueId moment = b.state("moment", {.dtype = DType::kF32, .shape = Shape{2, 3}}, nullptr);
  ValueId label = b.input("label", {.dtype = DType::kI64, .shape = Shape{2}});
  b.set_phase(Phase::kBackward);
  b.set_prefix("grad/");
  b.set_provenance({.sources = {"fc", "loss \"1\"\n"}, .pass = "differentiate"});
  ValueId gradient = b("Identity", {x});
  b.set_phase(Phase::kUpdate);
  b.set_prefix("update/");
  ValueId next_moment = b("Add", {b("Mul", {moment, half}), gradient});
  ValueId next = b("Sub", {parameter, next_moment});
  graph.outputs = {y, x};
  graph.loss = loss;
  graph.gradients = {{.of = parameter, .gradient = gradient}};
  graph.updates = {{.state = parameter, .value = next}, {.state = moment, .value = next_moment}};
  static_cast<void>(label);
  REQUIRE(verify(graph).empty());
  return graph;
}

Graph read_back(const Graph& graph, const ExportOptions& options = {}) {
  OnnxModel model = read_bytes(onnx_bytes(graph, options));
  CHECK(model.is_stage());
  Graph back = to_graph(model, all_ops());
  CHECK(verify(back).empty());
  return back;
}

std::string kinds_and_data(const Graph& graph) {
  std::string text;
  for (ValueId v : graph.live_values()) {
    const Value& value = graph.value(v);
    if (value.kind == ValueKind::kNode) continue;
    text += value.name + " " + std::string(name_of(value.kind)) + (value.data ? " data;" : ";");
  }
  return text;
}

// What read_back of a graph with this change in its file leads to.
std::string refusal(void (*damage)(onnx::ModelProto&)) {
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(onnx_bytes(training_step())));
  damage(model);
  std::optional<Error> error = error_of([&model] { to_graph(read_proto(model), all_ops()); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  return whole_text(*error);
}

void replace_in_metadata(onnx::ModelProto& model, const std::string& from, const std::string& to) {
  std::string& text = *model.mutable_metadata_props(0)->mutable_value();
  std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
}

// In the doc_string of the first node.
void change_note(onnx::ModelProto& model, const std::string& from, const std::string& to) {
  std::string& text = *model.mutable_graph()->mutable_node(0)->mutable_doc_string();
  REQUIRE(text.find(from) != std::string::npos);
  text.replace(text.find(from), from.size(), to);
}

bool contains(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("export: a stage comes back with everything that ONNX has no field for") {
  Graph graph = training_step();
  Graph back = read_back(graph);
  CHECK(print(back) == print(graph));
  CHECK(hash_of(back) == hash_of(graph));
  CHECK(back.name == "step");
  CHECK(kinds_and_data(back) == kinds_and_data(graph));
  NodeId a = graph.first();
  for (NodeId b = back.first(); b != kNoNode; b = back.node(b).next, a = graph.node(a).next) {
    CHECK(back.node(b).name == graph.node(a).name);
    CHECK(back.node(b).phase == graph.node(a).phase);
    CHECK(back.node(b).provenance.pass == graph.node(a).provenance.pass);
    CHECK(back.node(b).provenance.sources == graph.node(a).provenance.sources);
  }
  const Tensor& w = *back.value(back.find("w")).data;
  CHECK(w.values<float>()[5] == 6.0F);
  CHECK(back.value(back.find("moment")).data == nullptr);
  // And again: what is written depends on the graph alone.
  CHECK(onnx_bytes(back) == onnx_bytes(graph));
}

TEST_CASE("export: nodes and values keep their serials, gradients what they are of") {
  Graph graph = training_step();
  const ValueId w = graph.find("w");
  const ValueId gradient = graph.gradients[0].gradient;
  graph.value(gradient).gradient_of = Serials{graph.value(w).serial, Serial{77}};
  graph.node(graph.value(gradient).producer).provenance.backward_of =
      graph.node(graph.first()).serial;
  Builder(graph, all_ops()).constant(numbers(Shape{1}, 1), "spare");
  const Graph back = read_back(graph);
  for (ValueId v : graph.live_values()) {
    const Value& value = graph.value(v);
    CAPTURE(value.name);
    const Value& read = back.value(back.find(value.name));
    CHECK(read.serial == value.serial);
    CHECK(read.gradient_of == value.gradient_of);
  }
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Node& read = back.node(back.find_node(node.name));
    CHECK(read.serial == node.serial);
    CHECK(read.provenance.backward_of == node.provenance.backward_of);
  }
  CHECK(back.last_serial() == graph.last_serial());
}

TEST_CASE("export: a stage of a program that knew no serials gets new ones") {
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(onnx_bytes(training_step())));
  std::string& text = *model.mutable_metadata_props(0)->mutable_value();
  const std::size_t ids = text.find("\"value_serials\"");
  text.erase(ids, text.find(']', ids) + 2 - ids);
  const Graph back = to_graph(read_proto(model), all_ops());
  CHECK(verify(back).empty());
  CHECK(print(back) == print(training_step()));
}

TEST_CASE("export: values of a stage can be kept besides its outputs") {
  OnnxModel model = read_bytes(onnx_bytes(training_step()));
  Graph graph = to_graph(model, all_ops(), {.keep_values = {"update/Mul"}});
  REQUIRE(graph.outputs.size() == 3);
  CHECK(graph.value(graph.outputs[2]).name == "update/Mul");
}

TEST_CASE("export: attributes keep every digit") {
  Graph graph;
  Builder b(graph, all_ops());
  b.set_provenance({.sources = {"n"}, .pass = "import"});
  ValueId x = b.input("x", {.dtype = DType::kF32, .shape = Shape{2, 2}});
  ValueId y = b("Gemm", {x, x}, {{"alpha", 1.0 / 3.0}, {"beta", 0.5}});
  graph.outputs = {y};
  Graph back = read_back(graph);
  CHECK(back.node(back.first()).attributes == graph.node(graph.first()).attributes);
  CHECK(print(back) == print(graph));
}

TEST_CASE("export: an attribute of an older stage gets the name that it has now") {
  Graph graph;
  Builder b(graph, all_ops());
  b.set_provenance({.sources = {"n"}, .pass = "import"});
  const ValueId x = b.input("x", {.dtype = DType::kBF16, .shape = Shape{2, 2}});
  graph.outputs = {b("BatchMatMul", {x, x}, {{"upcast", std::int64_t{1}}})};
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(onnx_bytes(graph)));
  onnx::AttributeProto& attribute = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0);
  REQUIRE(attribute.name() == "upcast");
  attribute.set_name("wide");
  const Graph back = to_graph(read_proto(model), all_ops());
  CHECK(print(back) == print(graph));
  CHECK(back.value(back.outputs[0]).type.dtype == DType::kF32);
}

// Passes make names from names, so a stage of a model with the longest names has longer ones.
TEST_CASE("export: a stage is read back with names longer than a model's may be") {
  const auto with_name = [](std::size_t bytes) {
    Graph graph = training_step();
    graph.rename(graph.inputs[0], std::string(bytes, 'n'));
    return graph;
  };
  const Graph graph = with_name(8192);
  CHECK(print(read_back(graph)) == print(graph));
  const std::optional<Error> error = error_of([&] { read_back(with_name(8193)); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(error->message().find("the name is longer than 8 KiB") != std::string::npos);
}

TEST_CASE("export: elements may be given, and parameters left out") {
  Graph graph = training_step();
  ExportOptions options;
  options.tensor = [](std::string_view name) -> SharedTensor {
    if (name != "w" && name != "moment") return nullptr;
    return std::make_shared<const Tensor>(numbers(Shape{2, 3}, 10));
  };
  Graph given = read_back(graph, options);
  CHECK(given.value(given.find("w")).data->values<float>()[0] == 10.0F);
  CHECK(given.value(given.find("moment")).data->values<float>()[0] == 10.0F);
  Graph omitted = read_back(graph, {.weights = Weights::kOmit});
  CHECK(print(omitted) == print(graph));
  CHECK(omitted.value(omitted.find("w")).data == nullptr);
  CHECK(omitted.value(omitted.find("w")).kind == ValueKind::kParameter);
}

TEST_CASE("export: large elements go into a file beside the model") {
  ScratchFolder folder;
  Graph graph;
  Builder b(graph, all_ops());
  b.set_provenance({.sources = {"n"}, .pass = "import"});
  ValueId x = b.input("x", {.dtype = DType::kF32, .shape = Shape{1}});
  ValueId big = b.constant(numbers(Shape{40, 40}, 0), "big");
  ValueId bigger = b.constant(numbers(Shape{40, 50}, 7), "bigger");
  ValueId small = b.constant(numbers(Shape{1}, 3), "small");
  graph.outputs = {b("Mul", {b("Mul", {x, big}), small}), b("Mul", {x, bigger})};
  std::filesystem::path path = folder / "m.onnx";
  write_onnx(graph, path, {.weights = Weights::kExternal});
  CHECK(std::filesystem::file_size(folder / "m.onnx.data") == 8192 + 8000);
  CHECK(std::filesystem::file_size(path) < 4000);
  Graph back = to_graph(OnnxModel::read(path), all_ops());
  CHECK(print(back) == print(graph));
  CHECK(back.value(back.find("bigger")).data->values<float>()[1999] == 2006.0F);
  CHECK(list_directory(folder.path()) == std::vector<std::string>{"m.onnx", "m.onnx.data"});
}

TEST_CASE("export: a failed write leaves the old file") {
  ScratchFolder folder;
  std::filesystem::path path = folder / "m.onnx";
  write_onnx(training_step(), path);
  std::string before = read_file(path, 1 << 20);
  std::optional<Error> error =
      error_of([] { write_onnx(training_step(), "/nonexistent/folder/m.onnx"); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kIo);
  write_onnx(training_step(), path);
  CHECK(read_file(path, 1 << 20) == before);
}

TEST_CASE("export: damaged stage metadata is refused") {
  using Model = onnx::ModelProto;
  CHECK(contains(refusal([](Model& m) { m.mutable_metadata_props(0)->set_value("{"); }),
                 "metadata 'ai.trainscope.stage'"));
  CHECK(contains(refusal([](Model& m) { *m.add_metadata_props() = m.metadata_props(0); }),
                 "the model describes its stage twice"));
  CHECK(contains(refusal([](Model& m) { replace_in_metadata(m, "\"format\":1", "\"format\":2"); }),
                 "format 2 is not known"));
  CHECK(contains(refusal([](Model& m) { replace_in_metadata(m, "\"parameter\"", "\"input\""); }),
                 "'w': an initializer cannot be an input"));
  CHECK(contains(refusal([](Model& m) { replace_in_metadata(m, "\"state\"", "\"constant\""); }),
                 "'moment': a constant needs an initializer"));
  CHECK(contains(refusal([](Model& m) { replace_in_metadata(m, "\"state\"", "\"node\""); }),
                 "'node' is not known here"));
  CHECK(contains(refusal([](Model& m) { replace_in_metadata(m, "[\"w\",\"parameter\"],", ""); }),
                 "the stage lists"));
  CHECK(contains(refusal([](Model& m) {
                   replace_in_metadata(m, "[\"w\",\"parameter\"]", "[\"v\",\"parameter\"]");
                 }),
                 "stage value 'v' is not in the model"));
  CHECK(contains(
      refusal([](Model& m) { replace_in_metadata(m, "\"inputs\":[\"x\"", "\"inputs\":[\"w\""); }),
      "stage input 'w' is not an input"));
  CHECK(contains(refusal([](Model& m) { replace_in_metadata(m, "\"loss\":\"", "\"loss\":\"no"); }),
                 "is not in the graph"));
  CHECK(contains(refusal([](Model& m) {
                   replace_in_metadata(m, "\"updates\":[[\"w\"", "\"updates\":[[\"x\"");
                 }),
                 "'x' is updated, but is neither parameter nor state"));
  CHECK(contains(refusal([](Model& m) {
                   replace_in_metadata(m, "\"updates\":[[\"w\"", "\"updates\":[[\"moment\"");
                 }),
                 "'moment' is updated twice"));
  CHECK(contains(refusal([](Model& m) {
                   m.mutable_graph()->mutable_node(0)->set_doc_string("{\"phase\":\"sideways\"}");
                 }),
                 "'sideways' is not known here"));
  CHECK(contains(refusal([](Model& m) { change_note(m, "\"serial\":", "\"serial\":-"); }),
                 "is not in [1,"));
  CHECK(contains(refusal([](Model& m) { change_note(m, "\"serial\":", "\"serial\":9999999999"); }),
                 "is not in [1,"));
  CHECK(contains(
      refusal([](Model& m) { change_note(m, "\"serial\":", "\"backward_of\":1,\"serial\":"); }),
      "a forward node is no part of a gradient"));
  CHECK(contains(refusal([](Model& m) {
                   replace_in_metadata(m, "\"value_serials\":[1,2", "\"value_serials\":[1,1");
                 }),
                 "the serial 1 of 'w' is not its own"));
  CHECK(contains(refusal([](Model& m) {
                   replace_in_metadata(m, "\"value_serials\":[1,", "\"value_serials\":[");
                 }),
                 "values with"));
  CHECK(contains(refusal([](Model& m) {
                   replace_in_metadata(m, "\"gradient_of\":[", "\"gradient_of\":[[\"no\",1]");
                 }),
                 "gradient 'no' is not in the graph"));
  CHECK(contains(refusal([](Model& m) { m.mutable_graph()->mutable_node(0)->clear_doc_string(); }),
                 "doc_string of node"));
}

}  // namespace trainscope::test
