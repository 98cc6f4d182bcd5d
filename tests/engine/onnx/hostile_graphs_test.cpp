// Graphs whose structure is hostile: nesting, cycles, lengths, attributes, wire types, and work
// that a few nodes ask for.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "engine/core/text.h"
#include "engine/onnx/warnings.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;

GraphProto& graph(ModelProto& m) { return *m.mutable_graph(); }
onnx::NodeProto& gemm(ModelProto& m) { return *graph(m).mutable_node(0); }
AttributeProto& alpha(ModelProto& m) { return *gemm(m).mutable_attribute(0); }

void add_opset(ModelProto& m, const char* domain, std::int64_t version) {
  auto& import = *m.add_opset_import();
  import.set_domain(domain);
  import.set_version(version);
}

// Relu after Relu from `first` on; the last one makes y, and the first one reads what it makes.
void make_ring(ModelProto& m, int count) {
  graph(m).clear_node();
  for (int i = 0; i < count; ++i) {
    const std::string made = i + 1 == count ? "y" : fmt::format("v{}", i + 1);
    add_node(m, "Relu", {i == 0 ? "y" : fmt::format("v{}", i)}, {made});
  }
}

const BrokenModel kEdges[] = {
    {"a node that reads itself twice",
     [](ModelProto& m) {
       gemm(m).set_input(0, "h");
       gemm(m).set_input(1, "h");
     },
     "node 'fc' (Gemm): reads its own output 'h'"},
    {"a cycle of two", [](ModelProto& m) { make_ring(m, 2); }, "is part of a cycle"},
    {"a cycle of three", [](ModelProto& m) { make_ring(m, 3); }, "is part of a cycle"},
    {"a cycle of a hundred thousand", [](ModelProto& m) { make_ring(m, 100'000); },
     "is part of a cycle"},
    {"a cycle beside the graph",
     [](ModelProto& m) {
       add_node(m, "Relu", {"p"}, {"q"}, "there");
       add_node(m, "Relu", {"q"}, {"p"}, "back");
     },
     "is part of a cycle"},
    {"two hundred thousand nodes in the wrong order",
     [](ModelProto& m) {
       graph(m).clear_node();
       for (int i = 200'000; i > 0; --i) {
         add_node(m, "Relu", {i == 1 ? "x" : fmt::format("v{}", i - 1)},
                  {i == 200'000 ? "y" : fmt::format("v{}", i)});
       }
     },
     "nodes must be sorted"},
    {"an output of a node twice", [](ModelProto& m) { gemm(m).add_output("h"); },
     "node 'fc' (Gemm): produces 'h', which node 'fc' (Gemm) produces already"},
    {"an output without a name", [](ModelProto& m) { graph(m).mutable_output(0)->clear_name(); },
     "output: the name is empty"},
    {"only missing inputs",
     [](ModelProto& m) {
       for (int i = 0; i < 3; ++i) gemm(m).set_input(i, "");
     },
     "0 inputs given"},
    {"a hundred thousand inputs",
     [](ModelProto& m) {
       for (int i = 0; i < 100'000; ++i) gemm(m).add_input("x");
     },
     "100003 inputs given"},
    {"a hundred thousand outputs",
     [](ModelProto& m) {
       for (int i = 0; i < 100'000; ++i) gemm(m).add_output(fmt::format("o{}", i));
     },
     "100001 outputs asked for"},
    {"a split into as many slices",
     [](ModelProto& m) {
       onnx::NodeProto& node = add_node(m, "Split", {"x"}, {}, "cut");
       for (int i = 0; i < 100'000; ++i) node.add_output(fmt::format("o{}", i));
     },
     "Split 'cut'"},
    {"no nodes at all", [](ModelProto& m) { graph(m).clear_node(); },
     "output 'y': nothing produces it"},
    {"an input of the name of an initializer of another rank",
     [](ModelProto& m) {
       *graph(m).add_input() = value_info("b", {2, 1});
     },
     "input 'b' is declared with another type"},
    {"an initializer twice under IR 3",
     [](ModelProto& m) {
       m.set_ir_version(3);
       *graph(m).add_initializer() = graph(m).initializer(1);
     },
     "initializer 'b' is given twice"},
};

const BrokenModel kAttributes[] = {
    {"type 99",
     [](ModelProto& m) { alpha(m).set_type(static_cast<AttributeProto::AttributeType>(14)); },
     "attribute 'alpha'"},
    {"text in place of a number",
     [](ModelProto& m) {
       alpha(m).set_type(AttributeProto::STRING);
       alpha(m).clear_f();
       alpha(m).set_s("1.0");
     },
     "attribute 'alpha' must be a number"},
    {"integers in place of one",
     [](ModelProto& m) { add_attribute(gemm(m), "transA", AttributeProto::INTS).add_ints(1); },
     "attribute 'transA' must be an integer"},
    {"number in place of integers",
     [](ModelProto& m) {
       add_attribute(add_node(m, "Transpose", {"x"}, {"t"}, "turn"), "perm", AttributeProto::INT)
           .set_i(0);
     },
     "attribute 'perm' must be"},
    {"tensor in place of a number",
     [](ModelProto& m) {
       alpha(m).clear_f();
       alpha(m).set_type(AttributeProto::TENSOR);
       *alpha(m).mutable_t() = float_tensor("", {1}, {1});
     },
     "attribute 'alpha' must be a number"},
    {"minus infinity", [](ModelProto& m) { alpha(m).set_f(-HUGE_VALF); },
     "attribute 'alpha' is -inf, a finite number was expected"},
    {"NaN in a list",
     [](ModelProto& m) {
       auto& node = add_node(m, "Resize", {"x"}, {"r"}, "grow");
       add_attribute(node, "cubic_coeff_a", AttributeProto::FLOATS).add_floats(std::nanf(""));
     },
     "attribute 'cubic_coeff_a' is nan"},
    {"two values, one of them a graph", [](ModelProto& m) { alpha(m).mutable_g()->set_name("g"); },
     "is of type FLOAT, but holds a value of type GRAPH"},
    {"a graph where none belongs",
     [](ModelProto& m) {
       add_attribute(gemm(m), "body", AttributeProto::GRAPH).mutable_g()->set_name("g");
     },
     "attribute 'body' is of type GRAPH, which is not supported"},
    {"graphs",
     [](ModelProto& m) { add_attribute(gemm(m), "all", AttributeProto::GRAPHS).add_graphs(); },
     "attribute 'all' is of type GRAPHS, which is not supported"},
    {"a type", [](ModelProto& m) { add_attribute(gemm(m), "kind", AttributeProto::TYPE_PROTO); },
     "attribute 'kind' is of type TYPE_PROTO, which is not supported"},
    {"a sparse tensor",
     [](ModelProto& m) {
       auto& node = add_node(m, "Constant", {}, {"c"}, "thin");
       add_attribute(node, "sparse_value", AttributeProto::SPARSE_TENSOR).mutable_sparse_tensor();
     },
     "attribute 'sparse_value' is of type SPARSE_TENSOR, which is not supported"},
    {"a constant tensor of 2^62 elements",
     [](ModelProto& m) {
       auto& a = add_attribute(add_node(m, "Constant", {}, {"c"}, "big"), "value",
                               AttributeProto::TENSOR);
       *a.mutable_t() = float_tensor("", {1LL << 31, 1LL << 31}, {1});
     },
     "attribute 'value': is too large"},
    {"a constant tensor in a file, of a model without one",
     [](ModelProto& m) {
       auto& a = add_attribute(add_node(m, "Constant", {}, {"c"}, "far"), "value",
                               AttributeProto::TENSOR);
       *a.mutable_t() = float_tensor("", {1}, {1});
       a.mutable_t()->clear_raw_data();
       a.mutable_t()->set_data_location(onnx::TensorProto::EXTERNAL);
       auto& entry = *a.mutable_t()->add_external_data();
       entry.set_key("location");
       entry.set_value("../../etc/passwd");
     },
     "the model was not read from a file"},
    {"two values of a constant",
     [](ModelProto& m) {
       auto& node = add_node(m, "Constant", {}, {"c"}, "two");
       add_attribute(node, "value_int", AttributeProto::INT).set_i(1);
       add_attribute(node, "value_float", AttributeProto::FLOAT).set_f(1);
     },
     "2 attributes are given"},
    {"a constant with an input",
     [](ModelProto& m) {
       auto& node = add_node(m, "Constant", {"x"}, {"c"}, "fed");
       add_attribute(node, "value_int", AttributeProto::INT).set_i(1);
     },
     "a constant has one output and no inputs"},
    {"a hundred thousand attributes",
     [](ModelProto& m) {
       for (int i = 0; i < 100'000; ++i) {
         add_attribute(gemm(m), fmt::format("a{}", i), AttributeProto::INT).set_i(i);
       }
     },
     "attribute 'a0' is not supported"},
    {"an attribute's name of a megabyte",
     [](ModelProto& m) {
       add_attribute(gemm(m), std::string(1 << 20, 'a'), AttributeProto::INT).set_i(1);
     },
     "(1048576 bytes)' is not supported"},
};

const BrokenModel kVersions[] = {
    {"opset -1", [](ModelProto& m) { m.mutable_opset_import(0)->set_version(-1); },
     "imports opset -1 of domain ''"},
    {"opset 2^63-1",
     [](ModelProto& m) { m.mutable_opset_import(0)->set_version(9223372036854775807LL); },
     "imports opset 9223372036854775807"},
    {"one beyond the newest opset",
     [](ModelProto& m) { m.mutable_opset_import(0)->set_version(29); },
     "imports opset 29 of domain '', the newest known one is 28"},
    {"both names of ONNX's domain", [](ModelProto& m) { add_opset(m, "ai.onnx", 16); },
     "imports domain '' twice"},
    {"a domain twice",
     [](ModelProto& m) {
       add_opset(m, "com.example", 1);
       add_opset(m, "com.example", 2);
     },
     "imports domain 'com.example' twice"},
    {"only another domain",
     [](ModelProto& m) { m.mutable_opset_import(0)->set_domain("ai.trainscope"); },
     "imports opset 17 of domain 'ai.trainscope', the newest known one is 1"},
    {"ops of no imported domain",
     [](ModelProto& m) {
       m.mutable_opset_import(0)->set_domain("com.example");
       m.mutable_opset_import(0)->set_version(1);
     },
     "is in domain '', of which the model imports no opset"},
    {"machine learning ops",
     [](ModelProto& m) {
       add_opset(m, "ai.onnx.ml", 3);
       gemm(m).set_domain("ai.onnx.ml");
       gemm(m).set_op_type("TreeEnsembleClassifier");
     },
     "ai.onnx.ml.TreeEnsembleClassifier (opset 3, 1 node): classical machine learning is not "
     "trained "
     "here; fc"},
    {"an op that opset 5 lacks",
     [](ModelProto& m) {
       m.mutable_opset_import(0)->set_version(5);
       gemm(m).set_op_type("Einsum");
     },
     "Einsum (opset 5, 1 node): no conversion from opset 5 is known; fc"},
    {"two ops that there are not",
     [](ModelProto& m) {
       add_node(m, "Twirl", {"x"}, {"t"}, "turns");
       add_node(m, "Grind", {"x"}, {"g"}, "mill");
     },
     "the model needs 2 ops that cannot be imported:\n  Grind (opset 17, 1 node): there is no such "
     "op; mill\n  Twirl (opset 17, 1 node): there is no such op; turns"},
};

// The small model with its graph's bytes followed by a node that holds these bytes.
std::string with_node_bytes(std::string_view node) {
  return bytes_of(small_model()) + embedded('\x3a', embedded('\x0a', node));
}

}  // namespace

TEST_CASE("hostile graphs: edges and cycles") { check_refused(kEdges, small_model()); }
TEST_CASE("hostile graphs: attributes") { check_refused(kAttributes, small_model()); }
TEST_CASE("hostile graphs: versions and domains") { check_refused(kVersions, small_model()); }

TEST_CASE("hostile graphs: messages nested 5000 deep, in every way that nests") {
  const std::string broken = "is not an ONNX model, or it is damaged";
  // node > attribute (5) > type_protos (14, the type in it) > sequence (4) > element (1) > ...
  std::string type;
  for (int i = 0; i < 5000; ++i) type = embedded('\x22', embedded('\x0a', type));
  check_refused("sequences of sequences", with_node_bytes(embedded('\x2a', embedded('\x72', type))),
                broken);
  type.clear();
  for (int i = 0; i < 5000; ++i) type = embedded('\x4a', embedded('\x0a', type));
  check_refused("optionals of optionals", with_node_bytes(embedded('\x2a', embedded('\x72', type))),
                broken);
  // The type of a graph input: graph (7) > input (11) > type (2).
  check_refused(
      "an input of optionals of optionals",
      bytes_of(small_model()) + embedded('\x3a', embedded('\x5a', embedded('\x12', type))), broken);
  std::string graphs;
  for (int i = 0; i < 5000; ++i) {
    graphs = embedded('\x0a', embedded('\x2a', embedded('\x5a', graphs)));  // lists of graphs (11)
  }
  check_refused("lists of graphs", bytes_of(small_model()) + embedded('\x3a', graphs), broken);
  // Groups, which nobody uses any more, begin without a length.
  check_refused("groups", bytes_of(small_model()) + std::string(100'000, '\x0b'), broken);
}

TEST_CASE("hostile graphs: fields of the wrong wire type or cut short") {
  const std::string small = bytes_of(small_model());
  // An unknown field is skipped: what it replaces is missing, or the bytes do not fit together.
  ModelProto without_graph = small_model();
  without_graph.clear_graph();
  check_refused("graph as a number", bytes_of(without_graph) + "\x38\x01", "has no graph");
  check_refused("IR version as text", "\x0a\x01\x38", "IR version 0 is too old");
  check_refused("a varint of eleven bytes", small + "\x08" + std::string(11, '\xff'),
                "damaged or cut short");
  check_refused("a length beyond the end", small + "\x3a\x7f", "damaged or cut short");
  check_refused("a length of 2^32 - 1", small + "\x3a\xff\xff\xff\xff\x0f", "damaged or cut short");
  check_refused("field number 0", small + std::string(2, '\0'), "damaged or cut short");
  check_refused("an end of a group that never began", small + "\x3c", "damaged or cut short");
  check_refused("wire type 7", small + "\x3f", "damaged or cut short");
}

TEST_CASE("hostile graphs: a hundred thousand nodes take no recursion and little time") {
  ModelProto model = small_model();
  graph(model).clear_node();
  add_node(model, "Relu", {"x"}, {"v0"});
  for (int i = 1; i < 100'000; ++i) {
    add_node(model, i % 2 == 0 ? "Relu" : "Neg", {fmt::format("v{}", i - 1)},
             {fmt::format("v{}", i)});
  }
  *graph(model).mutable_output(0) = value_info("v99999", {2, 3});
  const std::string bytes = bytes_of(model);
  const Evaluate evaluate = known_values();
  const ResourceWatch watch;
  CHECK(to_graph(read_bytes(bytes), all_ops(), {.evaluate = &evaluate}).node_count() == 100'000);
  CHECK(watch.problem() == "");
}

namespace {

// Imports a model whose values are all known before the run; none may cost more than the limits.
void check_cheap(const ModelProto& model) {
  const Evaluate evaluate = known_values();
  const ResourceWatch watch;
  const std::optional<Error> error =
      error_of([&] { to_graph(read_proto(model), all_ops(), {.evaluate = &evaluate}); });
  CHECK_MESSAGE(!error, (error ? whole_text(*error) : ""));
  CHECK(watch.problem() == "");
}

}  // namespace

TEST_CASE("hostile graphs: values that are known before the run cost little") {
  // Each would take tens of GiB or hours when it is computed.
  check_cheap(text_model("int64[2] s={1,1}, int64[2] r={0,4294967296}",
                         "o = ConstantOfShape(s) y = Tile(o, r)"));
  check_cheap(text_model("int64[2] s={256,256}",
                         "o = ConstantOfShape(s) "
                         "y = Einsum<equation=\"ab,cd,ac,bd->a\">(o, o, o, o)"));
  check_cheap(text_model("int64[4] s={1,1,256,256}",
                         "o = ConstantOfShape(s) "
                         "y = Conv<pads=[128,128,127,127]>(o, o)"));
  check_cheap(text_model(
      "int64[5] s={1,1,1,1,1}",
      "o = ConstantOfShape(s) y = MaxPool<kernel_shape=[2147483647,2147483647,2147483647], "
      "pads=[1073741823,1073741823,1073741823,1073741823,1073741823,1073741823]>(o)"));
  std::string many = "o = ConstantOfShape(s) ";
  for (int i = 0; i < 20'000; ++i) many += fmt::format("v{} = ConstantOfShape(s) ", i);
  check_cheap(text_model("int64[1] s={65536}", many + "y = Relu(o)"));
  // Shape arithmetic goes on when there is nothing left for the rest.
  check_cheap(text_model("float[6] x, int64[1] s={65536}, int64[2] a={1,2}, int64[2] b={1,1}",
                         many + "to = Add(a, b) y = Reshape(x, to)"));
  many = "m0 = ConstantOfShape(s) ";
  for (int i = 0; i < 5'000; ++i) many += fmt::format("m{} = MatMul(m{}, m{}) ", i + 1, i, i);
  check_cheap(text_model("int64[2] s={256,256}", many + "y = Relu(m5000)"));
}

// A newer format may only have added what is left out here; nothing else about the model is trusted
// more than before.
TEST_CASE("hostile graphs: an IR version that is not known yet is read with a warning") {
  CHECK(warnings_of(read_proto(small_model())).empty());
  for (const std::int64_t version : {std::int64_t{15}, std::int64_t{9223372036854775807}}) {
    ModelProto model = small_model();
    model.set_ir_version(version);
    const OnnxModel read = read_proto(model);
    REQUIRE(warnings_of(read).size() == 1);
    CHECK(warnings_of(read)[0].find(fmt::format("IR version {} is newer", version)) == 0);
    CHECK(to_graph(read, all_ops()).node_count() ==
          to_graph(read_proto(small_model()), all_ops()).node_count());
  }
}

}  // namespace trainscope::test
