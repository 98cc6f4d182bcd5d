// Ops that are functions of other ops.
#include <doctest/doctest.h>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

onnx::FunctionProto& add_function(onnx::ModelProto& model, std::string_view name) {
  onnx::FunctionProto& function = *model.add_functions();
  function.set_name(std::string(name));
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("b");
  auto& standard = *function.add_opset_import();
  standard.set_domain("");
  standard.set_version(17);
  auto& own = *function.add_opset_import();
  own.set_domain("mine");
  own.set_version(1);
  return function;
}

onnx::NodeProto& add_inner(onnx::FunctionProto& function, std::string_view op,
                           std::string_view domain, std::string_view input,
                           std::string_view output) {
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type(std::string(op));
  node.set_domain(std::string(domain));
  node.add_input(std::string(input));
  node.add_output(std::string(output));
  return node;
}

onnx::ModelProto model_calling(std::string_view function) {
  onnx::ModelProto model = small_model();
  auto& import = *model.add_opset_import();
  import.set_domain("mine");
  import.set_version(1);
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(1);
  node.set_op_type(std::string(function));
  node.set_domain("mine");
  return model;
}

std::string refusal(const onnx::ModelProto& model) {
  std::optional<Error> error = error_of([&model] { to_graph(read_proto(model), all_ops()); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  return whole_text(*error);
}

}  // namespace

TEST_CASE("functions: a function of the model is expanded where it is called") {
  onnx::ModelProto model = model_calling("Twice");
  onnx::FunctionProto& function = add_function(model, "Twice");
  function.add_attribute("how");
  add_inner(function, "Relu", "", "a", "t");
  onnx::NodeProto& cast = add_inner(function, "Cast", "", "t", "b");
  onnx::AttributeProto& to = add_attribute(cast, "to", onnx::AttributeProto::INT);
  to.set_ref_attr_name("how");
  add_attribute(*model.mutable_graph()->mutable_node(1), "how", onnx::AttributeProto::INT).set_i(1);
  Graph graph = to_graph(read_proto(model), all_ops());
  CHECK(verify(graph).empty());
  CHECK(print(graph).find("act/t f32[2,2] = Relu(h)\ny f32[2,2] = Cast(act/t) to=1\n") !=
        std::string::npos);
  // The node that the model's author knows.
  CHECK(graph.node(graph.last()).provenance.sources == SourceNames{"act"});
}

TEST_CASE("functions: an output that is an input becomes an Identity") {
  onnx::ModelProto model = model_calling("Pass");
  onnx::FunctionProto& function = add_function(model, "Pass");
  function.set_output(0, "a");
  Graph graph = to_graph(read_proto(model), all_ops());
  CHECK(print(graph).find("y f32[2,2] = Identity(h)") != std::string::npos);
}

TEST_CASE("functions: recursion and doubling end in a message") {
  SUBCASE("a function that calls itself") {
    onnx::ModelProto model = model_calling("Self");
    add_inner(add_function(model, "Self"), "Self", "mine", "a", "b");
    CHECK(refusal(model).find("node 'act' (Self): function bodies nest deeper than 32") !=
          std::string::npos);
  }
  SUBCASE("two that call each other") {
    onnx::ModelProto model = model_calling("Ping");
    add_inner(add_function(model, "Ping"), "Pong", "mine", "a", "b");
    add_inner(add_function(model, "Pong"), "Ping", "mine", "a", "b");
    CHECK(refusal(model).find("function bodies nest deeper than 32") != std::string::npos);
  }
  SUBCASE("bodies that double 25 times") {
    onnx::ModelProto model = model_calling("F0");
    for (int i = 0; i < 25; ++i) {
      onnx::FunctionProto& function = add_function(model, "F" + std::to_string(i));
      std::string next = "F" + std::to_string(i + 1);
      add_inner(function, next, "mine", "a", "t");
      add_inner(function, next, "mine", "t", "b");
    }
    add_inner(add_function(model, "F25"), "Relu", "", "a", "b");
    CHECK(refusal(model).find("function bodies expand to more than 500000 nodes") !=
          std::string::npos);
  }
}

TEST_CASE("functions: malformed ones are refused") {
  onnx::ModelProto model = model_calling("Twice");
  onnx::FunctionProto& function = add_function(model, "Twice");
  SUBCASE("twice") {
    add_inner(function, "Relu", "", "a", "b");
    onnx::FunctionProto copy = function;
    *model.add_functions() = copy;
    CHECK(refusal(model).find("the function is given twice\nfunction 'Twice'") !=
          std::string::npos);
  }
  SUBCASE("a dangling input") {
    add_inner(function, "Relu", "", "z", "b");
    CHECK(refusal(model).find("reads 'z', which nothing produces\nfunction 'Twice'") !=
          std::string::npos);
  }
  SUBCASE("an output that nothing makes") {
    CHECK(refusal(model).find("output 'b': nothing produces it") != std::string::npos);
  }
  SUBCASE("an op that does not exist") {
    add_inner(function, "Nothing", "", "a", "b");
    add_inner(function, "Unheard", "", "a", "c");
    CHECK(refusal(model).find("the model needs 2 ops that cannot be imported:\n"
                              "  Nothing (opset 17, 1 node): there is no such op; act\n"
                              "  Unheard (opset 17, 1 node): there is no such op; act") !=
          std::string::npos);
  }
}

TEST_CASE("functions: ONNX's own bodies stand in for ops without a row") {
  static const Evaluate evaluate = evaluator(all_ops(), cpu_kernels());
  REQUIRE(all_ops().find("MeanVarianceNormalization") == nullptr);
  OnnxModel model = OnnxModel::parse_text(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y) { y = MeanVarianceNormalization(x) })");
  CHECK(missing_ops(model, all_ops()).empty());
  Graph graph = to_graph(model, all_ops(), {.evaluate = &evaluate});
  CHECK(verify(graph).empty());
  CHECK(graph.node_count() > 3);
  for (NodeId id : graph.order()) {
    CHECK(graph.node(id).provenance.sources == SourceNames{"MeanVarianceNormalization_0"});
  }
}

}  // namespace trainscope::test
