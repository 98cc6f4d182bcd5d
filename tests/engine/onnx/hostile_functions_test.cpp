// Functions of a model that call too deep, too often or with what does not fit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::ModelProto;

void import_opset(FunctionProto& function, const char* domain, std::int64_t version) {
  auto& import = *function.add_opset_import();
  import.set_domain(domain);
  import.set_version(version);
}

// A function "mine.NAME" of a to b.
FunctionProto& add_function(ModelProto& m, const std::string& name) {
  FunctionProto& function = *m.add_functions();
  function.set_name(name);
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("b");
  import_opset(function, "", 17);
  import_opset(function, "mine", 1);
  return function;
}

onnx::NodeProto& add_inner(FunctionProto& function, const std::string& op, const std::string& input,
                           const std::string& output, const char* domain = "") {
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type(op);
  node.set_domain(domain);
  node.add_input(input);
  node.add_output(output);
  return node;
}

FunctionProto& function(ModelProto& m) { return *m.mutable_functions(0); }
onnx::NodeProto& inner(ModelProto& m) { return *function(m).mutable_node(0); }
onnx::NodeProto& call(ModelProto& m) { return *m.mutable_graph()->mutable_node(1); }

// The small model whose second node calls F0(a) = Relu(a).
ModelProto calling_model() {
  ModelProto model = small_model();
  auto& import = *model.add_opset_import();
  import.set_domain("mine");
  import.set_version(1);
  call(model).set_op_type("F0");
  call(model).set_domain("mine");
  add_inner(add_function(model, "F0"), "Relu", "a", "b");
  return model;
}

// F0 calls F1 `times`, that calls F2 as often, ... the last one is Relu.
void make_levels(ModelProto& m, int levels, int times) {
  m.clear_functions();
  for (int level = 0; level < levels; ++level) {
    FunctionProto& made = add_function(m, fmt::format("F{}", level));
    for (int i = 0; i < times; ++i) {
      add_inner(made, fmt::format("F{}", level + 1), i == 0 ? "a" : fmt::format("t{}", i),
                i + 1 == times ? "b" : fmt::format("t{}", i + 1), "mine");
    }
  }
  add_inner(add_function(m, fmt::format("F{}", levels)), "Relu", "a", "b");
}

// A field that the packaged library does not know.
void add_unknown(FunctionProto& f, int number) {
  f.mutable_unknown_fields()->AddLengthDelimited(number, "x");
}

const BrokenModel kRecursion[] = {
    {"calls itself",
     [](ModelProto& m) {
       inner(m).set_op_type("F0");
       inner(m).set_domain("mine");
     },
     "node 'act' (F0): function bodies nest deeper than 32"},
    {"calls itself twice",
     [](ModelProto& m) {
       function(m).clear_node();
       add_inner(function(m), "F0", "a", "t", "mine");
       add_inner(function(m), "F0", "t", "b", "mine");
     },
     "function bodies nest deeper than 32"},
    {"a ring of three",
     [](ModelProto& m) {
       make_levels(m, 2, 1);
       FunctionProto& last = *m.mutable_functions(2);
       last.mutable_node(0)->set_op_type("F0");
       last.mutable_node(0)->set_domain("mine");
     },
     "function bodies nest deeper than 32"},
    {"an op of ONNX that calls itself",
     [](ModelProto& m) {
       function(m).set_name("Relu");
       function(m).set_domain("");
       call(m).set_op_type("Relu");
       call(m).clear_domain();
     },
     "function bodies nest deeper than 32"},
    {"33 levels", [](ModelProto& m) { make_levels(m, 33, 1); },
     "function bodies nest deeper than 32"},
    {"ten thousand levels", [](ModelProto& m) { make_levels(m, 10'000, 1); },
     "function bodies nest deeper than 32"},
    {"100^4 nodes", [](ModelProto& m) { make_levels(m, 4, 100); },
     "function bodies expand to more than 500000 nodes"},
    {"long names in many bodies",
     [](ModelProto& m) {
       make_levels(m, 16, 2);
       call(m).set_name(std::string(3'500, 'n'));
     },
     "function bodies expand to names and attributes of more than 256 MiB"},
    {"names that bodies make too long",
     [](ModelProto& m) {
       make_levels(m, 16, 1);
       call(m).set_name(std::string(4'090, 'n'));
     },
     "function bodies expand to a name longer than 4 KiB: 'nnnn"},
    {"a megabyte of constants in many bodies",
     [](ModelProto& m) {
       make_levels(m, 16, 2);
       FunctionProto& last = *m.mutable_functions(16);
       onnx::NodeProto& node = *last.add_node();
       node.set_op_type("Constant");
       node.add_output("c");
       *add_attribute(node, "value", AttributeProto::TENSOR).mutable_t() =
           float_tensor("", {1 << 18}, std::vector<float>(1 << 18));
     },
     "function bodies expand to names and attributes of more than 256 MiB"},
};

const BrokenModel kCalls[] = {
    {"too many inputs", [](ModelProto& m) { call(m).add_input("x"); },
     "node 'act' (F0): 2 inputs given, the function has 1"},
    {"too many outputs", [](ModelProto& m) { call(m).add_output("z"); },
     "node 'act' (F0): 2 outputs asked for, the function has 1"},
    {"no input", [](ModelProto& m) { call(m).clear_input(); }, "0 inputs given, 1 to 1 expected"},
    {"an attribute that it does not have",
     [](ModelProto& m) { add_attribute(call(m), "fast", AttributeProto::INT).set_i(1); },
     "node 'act' (F0): the function has no attribute 'fast'"},
    {"a required attribute that the call leaves out",
     [](ModelProto& m) {
       function(m).add_attribute("axis");
       inner(m).set_op_type("Concat");
       add_attribute(inner(m), "axis", AttributeProto::INT).set_ref_attr_name("axis");
     },
     "attribute axis is missing"},
    {"an attribute of another type than the body needs",
     [](ModelProto& m) {
       function(m).add_attribute("axis");
       inner(m).set_op_type("Softmax");
       add_attribute(inner(m), "axis", AttributeProto::INT).set_ref_attr_name("axis");
       add_attribute(call(m), "axis", AttributeProto::STRING).set_s("last");
     },
     "attribute 'axis' must be an integer"},
    {"a hostile attribute that is handed on",
     [](ModelProto& m) {
       function(m).add_attribute("axis");
       inner(m).set_op_type("Softmax");
       add_attribute(inner(m), "axis", AttributeProto::INT).set_ref_attr_name("axis");
       add_attribute(call(m), "axis", AttributeProto::INT).set_i(9223372036854775807LL);
     },
     "axis 9223372036854775807 is outside"},
    {"a reference to an attribute in the graph",
     [](ModelProto& m) {
       add_attribute(call(m), "axis", AttributeProto::INT).set_ref_attr_name("axis");
     },
     "attribute 'axis' refers to 'axis', which only functions may do"},
    {"a function that is not there", [](ModelProto& m) { call(m).set_op_type("F1"); },
     "mine.F1 (opset 1, 1 node): there is no such op; act"},
    {"a function of a domain that is not imported",
     [](ModelProto& m) { call(m).set_domain("his"); },
     "is in domain 'his', of which the model imports no opset"},
};

const BrokenModel kBodies[] = {
    {"given twice", [](ModelProto& m) { *m.add_functions() = FunctionProto(m.functions(0)); },
     "the function is given twice\nfunction 'F0'"},
    {"without a name", [](ModelProto& m) { function(m).clear_name(); },
     "function: the name is empty"},
    {"an escape in the name", [](ModelProto& m) { function(m).set_name("F\x1b[2J"); },
     "function 'F\\x1b[2J': the name holds a control character"},
    {"an escape in the name of an input", [](ModelProto& m) { function(m).set_input(0, "a\n"); },
     "function input 'a\\n': the name holds a control character"},
    {"an input twice", [](ModelProto& m) { function(m).add_input("a"); }, "'a' is given twice"},
    {"an input without a name", [](ModelProto& m) { function(m).add_input(""); },
     "function input: the name is empty"},
    {"an output that nothing makes", [](ModelProto& m) { function(m).set_output(0, "z"); },
     "output 'z': nothing produces it\nfunction 'F0'"},
    {"a value of the graph", [](ModelProto& m) { inner(m).set_input(0, "h"); },
     "reads 'h', which nothing produces\nfunction 'F0'"},
    {"a cycle",
     [](ModelProto& m) {
       inner(m).set_input(0, "c");
       add_inner(function(m), "Relu", "b", "c");
     },
     "is part of a cycle\nfunction 'F0'"},
    {"a node that reads itself", [](ModelProto& m) { inner(m).set_input(0, "b"); },
     "reads its own output 'b'\nfunction 'F0'"},
    {"an output that is made twice",
     [](ModelProto& m) { add_inner(function(m), "Relu", "a", "b"); }, "produces 'b', which"},
    {"an output of the name of an input", [](ModelProto& m) { inner(m).set_output(0, "a"); },
     "produces 'a', which is an input or initializer already"},
    {"no opset", [](ModelProto& m) { function(m).clear_opset_import(); },
     "is in domain '', of which the model imports no opset"},
    {"an opset of the future",
     [](ModelProto& m) { function(m).mutable_opset_import(0)->set_version(1000); },
     "the function imports opset 1000 of domain ''"},
    {"an op that does not exist", [](ModelProto& m) { inner(m).set_op_type("Reluu"); },
     "Reluu (opset 17, 1 node): there is no such op; act"},
    {"a subgraph",
     [](ModelProto& m) {
       inner(m).set_op_type("If");
       add_attribute(inner(m), "then_branch", AttributeProto::GRAPH).mutable_g()->set_name("g");
     },
     "If (opset 17, 1 node): it is in the body of a function, where no graphs are read; act"},
    {"an attribute twice",
     [](ModelProto& m) {
       add_attribute(inner(m), "axis", AttributeProto::INT).set_i(0);
       add_attribute(inner(m), "axis", AttributeProto::INT).set_i(1);
     },
     "attribute 'axis' is given twice"},
    {"a shape that does not fit",
     [](ModelProto& m) {
       inner(m).set_op_type("Reshape");
       inner(m).add_input("a");
     },
     "must be int64"},
    {"default values of attributes", [](ModelProto& m) { add_unknown(function(m), 11); },
     "default values of attributes are not supported\nfunction 'F0'"},
    {"an overload", [](ModelProto& m) { add_unknown(function(m), 13); },
     "overloaded functions are not supported\nfunction 'F0'"},
};

}  // namespace

TEST_CASE("hostile functions: the model they are made from is fine") {
  CHECK_FALSE(error_of([] { to_graph(read_proto(calling_model()), all_ops()); }).has_value());
}

TEST_CASE("hostile functions: recursion and growth") { check_refused(kRecursion, calling_model()); }
TEST_CASE("hostile functions: calls") { check_refused(kCalls, calling_model()); }
TEST_CASE("hostile functions: bodies") { check_refused(kBodies, calling_model()); }

}  // namespace trainscope::test
