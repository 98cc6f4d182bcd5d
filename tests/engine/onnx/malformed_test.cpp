// Malformed and hostile models: each is refused with the documented code and a message that names
// the culprit.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::TensorProto;

GraphProto& graph(ModelProto& m) { return *m.mutable_graph(); }
TensorProto& weight(ModelProto& m) { return *graph(m).mutable_initializer(0); }
onnx::NodeProto& gemm(ModelProto& m) { return *graph(m).mutable_node(0); }
onnx::TypeProto& type_of_x(ModelProto& m) { return *graph(m).mutable_input(0)->mutable_type(); }

void set_dims(TensorProto& tensor, std::initializer_list<std::int64_t> dims) {
  tensor.clear_dims();
  for (std::int64_t dim : dims) tensor.add_dims(dim);
}

void add_opset(ModelProto& m, const char* domain, std::int64_t version) {
  auto& import = *m.add_opset_import();
  import.set_domain(domain);
  import.set_version(version);
}

// A constant of shape [n, n, ...] made by the model itself.
void add_filled(ModelProto& m, std::initializer_list<std::int64_t> dims) {
  *graph(m).add_initializer() =
      int_tensor("dims", {static_cast<std::int64_t>(dims.size())}, std::vector(dims));
  add_node(m, "ConstantOfShape", {"dims"}, {"filled"}, "fill");
}

const BrokenModel kCases[] = {
    // --- the model ---
    {"no IR version", [](ModelProto& m) { m.clear_ir_version(); }, "IR version 0 is too old"},
    {"IR version 2", [](ModelProto& m) { m.set_ir_version(2); }, "IR version 2 is too old"},
    {"negative IR version", [](ModelProto& m) { m.set_ir_version(-1); }, "IR version -1"},
    {"no graph", [](ModelProto& m) { m.clear_graph(); }, "the model has no graph"},
    {"no opset", [](ModelProto& m) { m.clear_opset_import(); }, "imports no opset"},
    {"opset 0", [](ModelProto& m) { m.mutable_opset_import(0)->set_version(0); },
     "imports opset 0 of domain ''"},
    {"opset of the future", [](ModelProto& m) { m.mutable_opset_import(0)->set_version(1000); },
     "imports opset 1000 of domain '', the newest known one is"},
    {"opset beyond int", [](ModelProto& m) { m.mutable_opset_import(0)->set_version(1LL << 40); },
     "imports opset 1099511627776"},
    {"opset twice", [](ModelProto& m) { add_opset(m, "ai.onnx", 17); }, "imports domain '' twice"},
    {"our own opset of the future", [](ModelProto& m) { add_opset(m, "ai.trainscope", 2); },
     "imports opset 2 of domain 'ai.trainscope', the newest known one is 1"},
    {"escape in a domain", [](ModelProto& m) { add_opset(m, "a\x1b[2J", 1); },
     "operator set domain 'a\\x1b[2J': the name holds a control character"},
    {"line end in the graph's name", [](ModelProto& m) { graph(m).set_name("a\nb"); },
     "graph 'a\\nb': the name holds a control character"},
    // --- inputs and outputs ---
    {"no outputs", [](ModelProto& m) { graph(m).clear_output(); }, "the graph has no outputs"},
    {"output that nothing makes", [](ModelProto& m) { graph(m).mutable_output(0)->set_name("z"); },
     "output 'z': nothing produces it"},
    {"output twice", [](ModelProto& m) { *graph(m).add_output() = graph(m).output(0); },
     "output 'y' is given twice"},
    {"input twice", [](ModelProto& m) { *graph(m).add_input() = graph(m).input(0); },
     "input 'x' is given twice"},
    {"input without a name", [](ModelProto& m) { graph(m).mutable_input(0)->clear_name(); },
     "input: the name is empty"},
    {"input without a type", [](ModelProto& m) { graph(m).mutable_input(0)->clear_type(); },
     "input 'x': has no type"},
    {"sequence as input",
     [](ModelProto& m) { type_of_x(m).mutable_sequence_type()->mutable_elem_type(); },
     "input 'x': is a sequence"},
    {"input of undefined type",
     [](ModelProto& m) { type_of_x(m).mutable_tensor_type()->set_elem_type(0); },
     "input 'x': element type undefined"},
    {"input of type 99",
     [](ModelProto& m) { type_of_x(m).mutable_tensor_type()->set_elem_type(99); },
     "input 'x': element type type 99"},
    {"float16 input", [](ModelProto& m) { type_of_x(m).mutable_tensor_type()->set_elem_type(10); },
     "must have one element type, are f16[2,3] and f32[3,2]"},
    {"negative dimension of an input",
     [](ModelProto& m) {
       *graph(m).mutable_input(0) = value_info("x", {-2, 3});
     },
     "input 'x': has a negative dimension: -2"},
    {"input of 2^64 elements",
     [](ModelProto& m) {
       *graph(m).mutable_input(0) = value_info("x", {1LL << 32, 1LL << 32});
     },
     "input 'x': is too large"},
    {"input of 2^63-1 elements",
     [](ModelProto& m) {
       *graph(m).mutable_input(0) = value_info("x", {std::numeric_limits<std::int64_t>::max()});
     },
     "input 'x': is too large"},
    {"huge dimension beside a zero",
     [](ModelProto& m) {
       *graph(m).mutable_input(0) = value_info("x", {0, 1LL << 62, 1LL << 62});
     },
     "input 'x': is too large"},
    {"input with 9 dimensions",
     [](ModelProto& m) {
       *graph(m).mutable_input(0) = value_info("x", {1, 1, 1, 1, 1, 1, 1, 1, 1});
     },
     "input 'x': has 9 dimensions, at most 8"},
    {"input without a shape",
     [](ModelProto& m) { type_of_x(m).mutable_tensor_type()->clear_shape(); },
     "input 'x': not even the number of dimensions", ErrorCode::kUsage},
    {"unbound symbol",
     [](ModelProto& m) {
       type_of_x(m).mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
     },
     "input 'x': dimension 0 'N'", ErrorCode::kUsage},
    {"dimension that says nothing",
     [](ModelProto& m) {
       type_of_x(m).mutable_tensor_type()->mutable_shape()->mutable_dim(0)->clear_value();
     },
     "input 'x': dimension 0", ErrorCode::kUsage},
    {"line end in a symbol",
     [](ModelProto& m) {
       type_of_x(m).mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("a\nb");
     },
     "input 'x': dimension 'a\\nb': the name holds a control character"},
    {"declared output type is wrong",
     [](ModelProto& m) {
       *graph(m).mutable_output(0) = value_info("y", {2, 2}, 11);
     },
     "output 'y' is declared as f64, but the nodes give f32[2,2]"},
    {"declared output shape is wrong",
     [](ModelProto& m) {
       *graph(m).mutable_output(0) = value_info("y", {2, 7});
     },
     "output 'y' is declared with shape [2,7], but the nodes give f32[2,2]"},
    {"declared output rank is wrong",
     [](ModelProto& m) { *graph(m).mutable_output(0) = value_info("y", {2}); },
     "output 'y' is declared with shape [2]"},
    {"input that contradicts the initializer of its name",
     [](ModelProto& m) {
       *graph(m).add_input() = value_info("w", {3, 3});
     },
     "input 'w' is declared with another type"},
    // --- initializers ---
    {"initializer without a name", [](ModelProto& m) { weight(m).clear_name(); },
     "initializer: the name is empty"},
    {"initializer twice", [](ModelProto& m) { *graph(m).add_initializer() = weight(m); },
     "initializer 'w' is given twice"},
    {"raw data too short", [](ModelProto& m) { weight(m).mutable_raw_data()->pop_back(); },
     "initializer 'w': is f32[3,2] and needs 24 bytes, but raw_data has 23"},
    {"raw data too long", [](ModelProto& m) { weight(m).mutable_raw_data()->append(4, 'x'); },
     "but raw_data has 28"},
    {"no data", [](ModelProto& m) { weight(m).clear_raw_data(); },
     "initializer 'w': is f32[3,2], but has no data"},
    {"typed data too short",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       weight(m).add_float_data(1);
     },
     "initializer 'w': is f32[3,2] with 6 elements, but float_data holds 1"},
    {"typed data in the wrong field",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       for (int i = 0; i < 6; ++i) weight(m).add_int64_data(i);
     },
     "initializer 'w': is f32[3,2], but its elements are in int64_data"},
    {"raw and typed data", [](ModelProto& m) { weight(m).add_float_data(1); },
     "initializer 'w': has both float_data and raw_data"},
    {"negative dimension",
     [](ModelProto& m) {
       set_dims(weight(m), {-3, -2});
     },
     "initializer 'w': has a negative dimension: [-3,-2]"},
    {"2^32 x 2^32",
     [](ModelProto& m) {
       set_dims(weight(m), {1LL << 32, 1LL << 32});
     },
     "initializer 'w': is too large"},
    {"size that wraps to the right one",
     [](ModelProto& m) {
       set_dims(weight(m), {(1LL << 62) + 3, 4, 2});
     },
     "initializer 'w': is too large"},
    {"12 dimensions",
     [](ModelProto& m) {
       set_dims(weight(m), {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 2});
     },
     "initializer 'w': has 12 dimensions"},
    {"float16 initializer", [](ModelProto& m) { weight(m).set_data_type(TensorProto::FLOAT16); },
     "is f16[3,2] and needs 12 bytes, but raw_data has 24"},
    {"int8 initializer", [](ModelProto& m) { weight(m).set_data_type(TensorProto::INT8); },
     "is i8[3,2] and needs 6 bytes, but raw_data has 24"},
    {"float8 initializer", [](ModelProto& m) { weight(m).set_data_type(19); },
     "is f8e5m2[3,2] and needs 6 bytes, but raw_data has 24"},
    {"complex initializer", [](ModelProto& m) { weight(m).set_data_type(TensorProto::COMPLEX64); },
     "initializer 'w': element type complex64 is not supported"},
    {"string initializer", [](ModelProto& m) { weight(m).set_data_type(TensorProto::STRING); },
     "initializer 'w': element type string is not supported"},
    {"initializer of type -5", [](ModelProto& m) { weight(m).set_data_type(-5); },
     "initializer 'w': element type type -5"},
    {"segment", [](ModelProto& m) { weight(m).mutable_segment()->set_begin(0); },
     "initializer 'w': tensors in segments"},
    {"sparse initializer",
     [](ModelProto& m) { graph(m).add_sparse_initializer()->mutable_values()->set_name("sparse"); },
     "initializer 'sparse': sparse tensors are not supported"},
    {"initializer that is an output of a node",
     [](ModelProto& m) { *graph(m).add_initializer() = float_tensor("h", {1}, {1}); },
     "node 'fc' (Gemm): produces 'h', which is an input or initializer already"},
    // --- nodes and edges ---
    {"cycle",
     [](ModelProto& m) {
       gemm(m).set_input(0, "back");
       add_node(m, "Relu", {"y"}, {"back"}, "loop");
     },
     "is part of a cycle"},
    {"self loop", [](ModelProto& m) { gemm(m).set_input(0, "h"); },
     "node 'fc' (Gemm): reads its own output 'h'"},
    {"unsorted nodes", [](ModelProto& m) { graph(m).mutable_node()->SwapElements(0, 1); },
     "node 'act' (Relu): reads 'h' before node 'fc' (Gemm) produces it"},
    {"dangling input", [](ModelProto& m) { gemm(m).set_input(1, "nowhere"); },
     "node 'fc' (Gemm): reads 'nowhere', which nothing produces"},
    {"output produced twice", [](ModelProto& m) { add_node(m, "Relu", {"x"}, {"h"}, "again"); },
     "node 'again' (Relu): produces 'h', which node 'fc' (Gemm) produces already"},
    {"output of the name of an input",
     [](ModelProto& m) { add_node(m, "Relu", {"h"}, {"x"}, "again"); },
     "node 'again' (Relu): produces 'x', which is an input or initializer already"},
    {"node without outputs", [](ModelProto& m) { gemm(m).clear_output(); },
     "node 'fc' (Gemm): has no outputs"},
    {"node whose outputs are all left out",
     [](ModelProto& m) { add_node(m, "Relu", {"x"}, {""}, "idle"); },
     "node 'idle' (Relu): has no outputs"},
    {"node without an op", [](ModelProto& m) { gemm(m).clear_op_type(); },
     "node 'fc' (): the name is empty"},
    {"domain that is not imported", [](ModelProto& m) { gemm(m).set_domain("com.microsoft"); },
     "node 'fc' (Gemm): is in domain 'com.microsoft', of which the model imports no opset"},
    {"unknown op", [](ModelProto& m) { gemm(m).set_op_type("Gemmm"); },
     "Gemmm (opset 17, 1 node): there is no such op; fc"},
    {"known op of an unknown domain",
     [](ModelProto& m) {
       add_opset(m, "com.microsoft", 1);
       gemm(m).set_domain("com.microsoft");
     },
     "com.microsoft.Gemm (opset 1, 1 node): there is no such op; fc"},
    {"our own op that we do not have",
     [](ModelProto& m) {
       add_opset(m, "ai.trainscope", 1);
       gemm(m).set_op_type("Nothing");
       gemm(m).set_domain("ai.trainscope");
     },
     "ai.trainscope.Nothing (opset 1, 1 node): there is no such op; fc"},
    {"invalid UTF-8 in a value name",
     [](ModelProto& m) {
       gemm(m).set_output(0, "h\xff");
       graph(m).mutable_node(1)->set_input(0, "h\xff");
     },
     "node 'fc' (Gemm) 'h\\xff': the name is not valid UTF-8"},
    {"terminal escape in a node name", [](ModelProto& m) { gemm(m).set_name("\x1b]0;owned\x07"); },
     "node '\\x1b]0;owned\\x07': the name holds a control character"},
    {"NUL in an initializer name",
     [](ModelProto& m) { weight(m).set_name(std::string("w\0x", 3)); },
     "initializer 'w\\x00x': the name holds a control character"},
    {"name of a megabyte", [](ModelProto& m) { weight(m).set_name(std::string(1 << 20, 'w')); },
     "the name is longer than 4 KiB"},
    // --- attributes ---
    {"attribute without a name", [](ModelProto& m) { gemm(m).mutable_attribute(0)->clear_name(); },
     "node 'fc' (Gemm): an attribute has no name"},
    {"attribute twice", [](ModelProto& m) { *gemm(m).add_attribute() = gemm(m).attribute(0); },
     "node 'fc' (Gemm): attribute 'alpha' is given twice"},
    {"attribute without a type", [](ModelProto& m) { gemm(m).mutable_attribute(0)->clear_type(); },
     "attribute 'alpha' has no known type"},
    {"attribute with two values", [](ModelProto& m) { gemm(m).mutable_attribute(0)->add_ints(3); },
     "attribute 'alpha' is of type FLOAT, but holds a value of type INTS"},
    {"attribute of another type",
     [](ModelProto& m) { add_attribute(gemm(m), "transA", AttributeProto::STRING).set_s("yes"); },
     "attribute 'transA' must be an integer"},
    {"attribute that the op does not have",
     [](ModelProto& m) { add_attribute(gemm(m), "fast", AttributeProto::INT).set_i(1); },
     "node 'fc' (Gemm of opset 17): attribute 'fast' is not supported"},
    {"reference to an attribute of a function",
     [](ModelProto& m) { gemm(m).mutable_attribute(0)->set_ref_attr_name("other"); },
     "attribute 'alpha' refers to 'other', which only functions may do"},
    {"NaN attribute", [](ModelProto& m) { gemm(m).mutable_attribute(0)->set_f(std::nanf("")); },
     "attribute 'alpha' is nan, a finite number was expected"},
    {"infinite attribute", [](ModelProto& m) { gemm(m).mutable_attribute(0)->set_f(HUGE_VALF); },
     "attribute 'alpha' is inf, a finite number was expected"},
    {"tensor attribute without a tensor",
     [](ModelProto& m) {
       add_attribute(add_node(m, "Constant", {}, {"c"}), "value", AttributeProto::TENSOR);
     },
     "node 2 (Constant): attribute 'value' holds no tensor"},
    {"constant whose bytes are short",
     [](ModelProto& m) {
       auto& a = add_attribute(add_node(m, "Constant", {}, {"c"}), "value", AttributeProto::TENSOR);
       *a.mutable_t() = float_tensor("", {4}, {1, 2});
     },
     "attribute 'value': is f32[4] and needs 16 bytes, but raw_data has 8"},
    {"constant without a value", [](ModelProto& m) { add_node(m, "Constant", {}, {"c"}, "empty"); },
     "node 'empty' (Constant of opset 17)"},
    {"constant of strings",
     [](ModelProto& m) {
       auto& node = add_node(m, "Constant", {}, {"c"}, "words");
       add_attribute(node, "value_strings", AttributeProto::STRINGS).add_strings("a");
     },
     "attribute 'value_strings' is of type STRINGS, which is not supported"},
    // --- what the ops refuse ---
    {"shapes that do not fit",
     [](ModelProto& m) {
       set_dims(weight(m), {2, 3});
     },
     "Gemm 'fc'"},
    {"types that do not fit",
     [](ModelProto& m) {
       *graph(m).mutable_input(0) = value_info("x", {2, 3}, 7);
     },
     "Gemm 'fc'"},
    {"too few inputs", [](ModelProto& m) { gemm(m).clear_input(); }, "0 inputs given"},
    {"too many inputs", [](ModelProto& m) { graph(m).mutable_node(1)->add_input("x"); },
     "2 inputs given"},
    {"required input left out", [](ModelProto& m) { gemm(m).set_input(0, ""); },
     "input 0 is required but left out"},
    {"too many outputs", [](ModelProto& m) { graph(m).mutable_node(1)->add_output("z"); },
     "2 outputs asked for"},
    {"axis out of range",
     [](ModelProto& m) {
       add_attribute(add_node(m, "Softmax", {"x"}, {"s"}, "soft"), "axis", AttributeProto::INT)
           .set_i(5);
     },
     "Softmax 'soft'"},
    {"filled tensor of 2^80 bytes",
     [](ModelProto& m) {
       add_filled(m, {1LL << 40, 1LL << 40});
     },
     "ConstantOfShape 'fill'"},
    {"filled tensor of negative size", [](ModelProto& m) { add_filled(m, {-4}); },
     "ConstantOfShape 'fill'"},
    {"shape that depends on the data",
     [](ModelProto& m) {
       *graph(m).add_input() = value_info("to", {1}, TensorProto::INT64);
       add_node(m, "Reshape", {"x", "to"}, {"r"}, "resh");
     },
     "Reshape 'resh'"},
    {"reshape to another count",
     [](ModelProto& m) {
       *graph(m).add_initializer() = int_tensor("to", {1}, {7});
       add_node(m, "Reshape", {"x", "to"}, {"r"}, "resh");
     },
     "Reshape 'resh'"},
};

void read_and_build(const ModelProto& model) { to_graph(read_proto(model), all_ops()); }

}  // namespace

TEST_CASE("malformed models: the model they are made from is fine") {
  CHECK_FALSE(error_of([] { read_and_build(small_model()); }).has_value());
}

TEST_CASE("malformed models: each is refused with its message and code") {
  check_refused(kCases, small_model());
}

}  // namespace trainscope::test
