// Files of recorded stages whose metadata are hostile: kinds, updates, gradients and notes that do
// not fit the graph beside them.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "engine/ir/builder.h"
#include "engine/onnx/export.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

using onnx::ModelProto;

TensorType matrix() { return {.dtype = DType::kF32, .shape = Shape{2, 3}}; }

// y = x * w with a loss, a gradient of w and updates of w and of the moment.
ModelProto stage_model() {
  Graph graph;
  graph.name = "step";
  Builder b(graph, all_ops());
  b.set_provenance({.sources = {"mul"}, .pass = "import"});
  const ValueId x = b.input("x", matrix());
  const ValueId n = b.input("n", {.dtype = DType::kI64, .shape = Shape{2}});
  Value w;
  w.name = "w";
  w.type = matrix();
  w.kind = ValueKind::kParameter;
  w.data = std::make_shared<const Tensor>(matrix());
  const ValueId parameter = graph.add_value(std::move(w));
  const ValueId moment = b.state("moment", matrix(), nullptr);
  const ValueId y = b("Mul", {x, parameter});
  const ValueId loss = b("ReduceSum", {y}, {{"keepdims", std::int64_t{0}}});
  const ValueId gradient = b("Identity", {x});
  const ValueId next = b("Sub", {parameter, gradient});
  const ValueId next_moment = b("Add", {moment, gradient});
  graph.outputs = {y};
  graph.loss = loss;
  graph.gradients = {{.of = parameter, .gradient = gradient}};
  graph.updates = {{.state = parameter, .value = next}, {.state = moment, .value = next_moment}};
  static_cast<void>(n);
  REQUIRE(verify(graph).empty());
  ModelProto model;
  REQUIRE(model.ParseFromString(onnx_bytes(graph)));
  return model;
}

// The text `from` of the metadata (or of a node's note) becomes `to`.
struct HostileText {
  const char* from;
  const char* to;
  const char* fragment;
};

const HostileText kMetadata[] = {
    {"\"format\":1", "\"format\":0", "format 0 is not known, 1 is"},
    {"\"format\":1", "\"format\":-1", "format -1 is not known"},
    {"\"format\":1", "\"format\":4294967297", "format"},
    {"\"format\":1", "\"format\":\"1\"", "key 'format': expected an integer"},
    {"\"format\":1", "\"format\":1,\"format\":1", "duplicate key 'format'"},
    {"\"format\":1,", "", "key 'format' is missing"},
    {"\"name\":\"step\"", "\"name\":null", "key 'name': expected a string"},
    {"\"name\":\"step\",", "", "key 'name' is missing"},
    {"\"values\":", "\"value\":", "key 'values' is missing"},
    {"[\"x\",\"input\"]", "[\"x\"]", "metadata 'ai.trainscope.stage'"},
    {"[\"x\",\"input\"]", "[\"x\",1]", "expected a string, found an integer"},
    {"[\"x\",\"input\"]", "\"x\"", "expected an array, found a string"},
    {"[\"x\",\"input\"]", "[\"x\",\"output\"]", "'output' is not known here"},
    {"[\"x\",\"input\"]", "[\"x\",\"\\u001b[2J\"]", "'\\x1b[2J' is not known here"},
    {"[\"x\",\"input\"]", "[\"x\",\"constant\"]", "'x': a constant needs an initializer"},
    {"[\"x\",\"input\"]", "[\"x\",\"parameter\"]", "stage input 'x' is not an input"},
    {"[\"x\",\"input\"]", "[\"n\",\"input\"]", "stage value 'n' is given twice"},
    {"[\"x\",\"input\"],", "", "the stage lists 3 values, the model has 4"},
    {"[\"x\",\"input\"]", "[\"x\",\"input\"],[\"z\",\"input\"]",
     "stage value 'z' is not in the model"},
    {"[\"w\",\"parameter\"]", "[\"w\",\"input\"]", "'w': an initializer cannot be an input"},
    {"[\"w\",\"parameter\"]", "[\"w\",\"constant\"]",
     "'w' is updated, but is neither parameter nor state"},
    {"\"inputs\":[\"x\",", "\"inputs\":[\"x\",\"x\",", "stage input 'x' is not an input, or given"},
    {"\"inputs\":[\"x\",", "\"inputs\":[\"y\",", "stage input 'y' is not in the graph"},
    {"\"inputs\":[\"x\",", "\"inputs\":[\"moment\",", "stage input 'moment' is not an input"},
    {"\"inputs\":[\"x\",", "\"inputs\":[[],", "expected a string, found an array"},
    {"\"outputs\":[\"Mul\"]", "\"outputs\":[\"nothing\"]",
     "stage output 'nothing' is not in the graph"},
    {"\"outputs\":[\"Mul\"]", "\"outputs\":\"Mul\"", "expected an array, found a string"},
    {"\"updates\":[[\"w\",\"Sub\"]", "\"updates\":[[\"x\",\"Sub\"]",
     "'x' is updated, but is neither parameter nor state"},
    {"\"updates\":[[\"w\",\"Sub\"]", "\"updates\":[[\"v\",\"Sub\"]",
     "updated value 'v' is not in the graph"},
    {"\"updates\":[[\"w\",\"Sub\"]", "\"updates\":[[\"w\",\"v\"]",
     "new value 'v' is not in the graph"},
    {"\"updates\":[[\"w\",\"Sub\"]", "\"updates\":[[\"w\",\"n\"]",
     "'w' is f32[2,3], its new value 'n' is i64[2]"},
    {"\"updates\":[[\"w\",\"Sub\"]", "\"updates\":[[\"moment\",\"Sub\"]",
     "'moment' is updated twice"},
    {"\"updates\":[[\"w\",\"Sub\"]", "\"updates\":[[\"Mul\",\"Sub\"]",
     "'Mul' is updated, but is neither parameter nor state"},
    {"\"gradients\":[[\"w\",\"Identity\"]]", "\"gradients\":[[\"w\",\"n\"]]",
     "gradient 'n' has another type than 'w'"},
    {"\"gradients\":[[\"w\",\"Identity\"]]", "\"gradients\":[[\"v\",\"Identity\"]]",
     "value 'v' is not in the graph"},
    {"\"gradients\":[[\"w\",\"Identity\"]]", "\"gradients\":[{}]", "expected an array"},
    {"\"loss\":\"ReduceSum\"", "\"loss\":\"none\"", "loss 'none' is not in the graph"},
    {"\"loss\":\"ReduceSum\"", "\"loss\":[]", "key 'loss': expected a string"},
    {"}", "", "JSON, line 1"},
    {"}", "}}", "JSON, line 1"},
};

const HostileText kNotes[] = {
    {"\"phase\":\"forward\"", "\"phase\":\"forwards\"", "'forwards' is not known here"},
    {"\"phase\":\"forward\"", "\"phase\":0", "key 'phase': expected a string"},
    {"\"phase\":\"forward\",", "", "key 'phase' is missing"},
    {"\"pass\":\"import\"", "\"pass\":\"\"", "the pass has no name"},
    {"\"pass\":\"import\",", "", "key 'pass' is missing"},
    {"\"sources\":[\"mul\"]", "\"sources\":\"mul\"", "expected an array"},
    {"\"sources\":[\"mul\"]", "\"sources\":[1]", "expected a string, found an integer"},
    {"\"sources\":[\"mul\"]", "\"source\":[\"mul\"]", "key 'sources' is missing"},
    {"\"sources\":[\"mul\"]", "\"sources\":[\"mul\"],\"exact\":[1.5]", "expected an object"},
    {"\"sources\":[\"mul\"]", "\"sources\":[\"mul\"],\"exact\":{\"alpha\":\"1.5\"}",
     "expected a number"},
    {"\"sources\":[\"mul\"]", "\"sources\":[\"mul\"],\"exact\":{\"alpha\":1.5}",
     "attribute 'alpha' is not supported"},
    {"\"sources\":[\"mul\"]", "\"sources\":[\"mul\"],\"exact\":{\"alpha\":[[1.5]]}",
     "expected a number"},
    {"{", "[", "JSON, line 1"},
};

std::string changed(std::string text, const HostileText& change) {
  const std::size_t at = text.find(change.from);
  REQUIRE_MESSAGE(at != std::string::npos, change.from, " in ", text);
  return text.replace(at, std::string_view(change.from).size(), change.to);
}

}  // namespace

TEST_CASE("hostile stages: the stage they are made from is fine") {
  CHECK_FALSE(error_of([] { to_graph(read_proto(stage_model()), all_ops()); }).has_value());
}

TEST_CASE("hostile stages: metadata") {
  for (const HostileText& each : kMetadata) {
    ModelProto model = stage_model();
    std::string& text = *model.mutable_metadata_props(0)->mutable_value();
    text = changed(text, each);
    check_refused(each.to, bytes_of(model), each.fragment);
  }
}

TEST_CASE("hostile stages: notes of nodes") {
  for (const HostileText& each : kNotes) {
    ModelProto model = stage_model();
    onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
    node.set_doc_string(changed(node.doc_string(), each));
    check_refused(each.to, bytes_of(model), each.fragment);
  }
}

TEST_CASE("hostile stages: the metadata as a whole") {
  const BrokenModel cases[] = {
      {"deep",
       [](ModelProto& m) { m.mutable_metadata_props(0)->set_value(std::string(100'000, '[')); },
       "nested deeper than 64 levels"},
      {"empty", [](ModelProto& m) { m.mutable_metadata_props(0)->clear_value(); }, "JSON, line 1"},
      {"not UTF-8", [](ModelProto& m) { m.mutable_metadata_props(0)->set_value("{\"\xff\":1}"); },
       "ill-formed UTF-8"},
      {"twice", [](ModelProto& m) { *m.add_metadata_props() = m.metadata_props(0); },
       "the model describes its stage twice"},
      {"no note", [](ModelProto& m) { m.mutable_graph()->mutable_node(1)->clear_doc_string(); },
       "doc_string of node 'ReduceSum'"},
      {"a deep note",
       [](ModelProto& m) {
         m.mutable_graph()->mutable_node(0)->set_doc_string(std::string(100'000, '{'));
       },
       "doc_string of node 'Mul'"},
      {"without the value that is updated",
       [](ModelProto& m) {
         m.mutable_graph()->mutable_node(3)->set_output(0, "other");
         for (auto& output : *m.mutable_graph()->mutable_output()) {
           if (output.name() == "Sub") output.set_name("other");
         }
       },
       "new value 'Sub' is not in the graph"},
  };
  check_refused(cases, stage_model());
}

}  // namespace trainscope::test
