// Initializers and declared types with hostile sizes, elements and names, in every element type.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

using onnx::GraphProto;
using onnx::ModelProto;
using onnx::TensorProto;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

GraphProto& graph(ModelProto& m) { return *m.mutable_graph(); }
TensorProto& weight(ModelProto& m) { return *graph(m).mutable_initializer(0); }
onnx::NodeProto& gemm(ModelProto& m) { return *graph(m).mutable_node(0); }

void set_dims(TensorProto& tensor, std::initializer_list<std::int64_t> dims) {
  tensor.clear_dims();
  for (std::int64_t dim : dims) tensor.add_dims(dim);
}

void set_input(ModelProto& m, std::initializer_list<std::int64_t> dims) {
  *graph(m).mutable_input(0) = value_info("x", dims);
}

void set_output(ModelProto& m, std::initializer_list<std::int64_t> dims) {
  *graph(m).mutable_output(0) = value_info("y", dims);
}

// w[3,2] of another type, with so many bytes of raw data.
void set_raw(ModelProto& m, TensorProto::DataType type, std::size_t bytes) {
  weight(m).set_data_type(type);
  weight(m).set_raw_data(std::string(bytes, '\0'));
}

void set_sparse(ModelProto& m) {
  onnx::TypeProto& type = *graph(m).mutable_input(0)->mutable_type();
  type.mutable_sparse_tensor_type()->set_elem_type(1);
}

const BrokenModel kSizes[] = {
    {"dimension 2^31",
     [](ModelProto& m) {
       set_dims(weight(m), {1LL << 31, 2});
     },
     "initializer 'w': is f32[2147483648,2] and needs 17179869184 bytes, but raw_data has 24"},
    {"dimension 2^31 of an input",
     [](ModelProto& m) {
       set_input(m, {2, 1LL << 31});
     },
     "Gemm 'fc'"},
    {"2^32 x 2^32 of an output",
     [](ModelProto& m) {
       set_output(m, {1LL << 32, 1LL << 32});
     },
     "output 'y': is too large: [4294967296,4294967296]"},
    {"negative dimension of an output",
     [](ModelProto& m) {
       set_output(m, {2, -2});
     },
     "output 'y': has a negative dimension: -2"},
    {"2^63-1", [](ModelProto& m) { set_dims(weight(m), {kMost}); },
     "initializer 'w': is too large"},
    {"-2^63",
     [](ModelProto& m) {
       set_dims(weight(m), {kLeast, 1});
     },
     "initializer 'w': has a negative dimension: [-9223372036854775808,1]"},
    {"-1 x -6: a product of 6",
     [](ModelProto& m) {
       set_dims(weight(m), {-1, -6});
     },
     "initializer 'w': has a negative dimension"},
    {"2^62 x 2 x 2: bytes that wrap to 0",
     [](ModelProto& m) {
       set_dims(weight(m), {1LL << 62, 4});
     },
     "initializer 'w': is too large"},
    {"2^61 floats: bytes of 2^63", [](ModelProto& m) { set_dims(weight(m), {1LL << 61}); },
     "initializer 'w': is too large"},
    {"zero beside 2^62",
     [](ModelProto& m) {
       set_dims(weight(m), {0, 1LL << 62});
     },
     "initializer 'w': is too large"},
    {"zero elements, but data",
     [](ModelProto& m) {
       set_dims(weight(m), {0, 2});
     },
     "initializer 'w': is f32[0,2] and needs 0 bytes, but raw_data has 24"},
    {"no dimensions, but data of six", [](ModelProto& m) { weight(m).clear_dims(); },
     "initializer 'w': is f32[] and needs 4 bytes, but raw_data has 24"},
    {"nine dimensions",
     [](ModelProto& m) {
       set_dims(weight(m), {1, 1, 1, 1, 1, 1, 1, 3, 2});
     },
     "initializer 'w': has 9 dimensions, at most 8"},
    {"a hundred thousand dimensions",
     [](ModelProto& m) {
       for (int i = 0; i < 100'000; ++i) weight(m).add_dims(1);
     },
     "initializer 'w': has 100002 dimensions, at most 8"},
    {"input with a hundred thousand dimensions",
     [](ModelProto& m) {
       *graph(m).mutable_input(0) = value_info("x", std::vector<std::int64_t>(100'000, 1));
     },
     "input 'x': has 100000 dimensions, at most 8"},
    {"input of no elements",
     [](ModelProto& m) {
       set_input(m, {2, 0});
     },
     "Gemm 'fc'"},
    {"sparse input", [](ModelProto& m) { set_sparse(m); }, "input 'x': is a sequence"},
    {"optional input",
     [](ModelProto& m) {
       graph(m).mutable_input(0)->mutable_type()->mutable_optional_type()->mutable_elem_type();
     },
     "input 'x': is a sequence"},
    {"map as output",
     [](ModelProto& m) {
       graph(m).mutable_output(0)->mutable_type()->mutable_map_type()->set_key_type(7);
     },
     "output 'y': is a sequence"},
    {"output of type -1",
     [](ModelProto& m) {
       *graph(m).mutable_output(0) = value_info("y", {2, 2}, -1);
     },
     "output 'y': element type type -1"},
    {"output without a type", [](ModelProto& m) { graph(m).mutable_output(0)->clear_type(); },
     "output 'y': has no type"},
    {"segment up to 2^63-1", [](ModelProto& m) { weight(m).mutable_segment()->set_end(kMost); },
     "initializer 'w': tensors in segments"},
    {"sparse initializer without values",
     [](ModelProto& m) { graph(m).add_sparse_initializer()->add_dims(kMost); },
     "sparse tensors are not supported"},
};

const BrokenModel kElements[] = {
    {"f64, raw, short", [](ModelProto& m) { set_raw(m, TensorProto::DOUBLE, 47); },
     "is f64[3,2] and needs 48 bytes, but raw_data has 47"},
    {"f64, raw, long", [](ModelProto& m) { set_raw(m, TensorProto::DOUBLE, 56); },
     "needs 48 bytes, but raw_data has 56"},
    {"i32, raw, short", [](ModelProto& m) { set_raw(m, TensorProto::INT32, 20); },
     "is i32[3,2] and needs 24 bytes, but raw_data has 20"},
    {"i32, raw, long", [](ModelProto& m) { set_raw(m, TensorProto::INT32, 25); },
     "needs 24 bytes, but raw_data has 25"},
    {"i64, raw, short", [](ModelProto& m) { set_raw(m, TensorProto::INT64, 0); },
     "is i64[3,2] and needs 48 bytes, but raw_data has 0"},
    {"i64, raw, long", [](ModelProto& m) { set_raw(m, TensorProto::INT64, 49); },
     "needs 48 bytes, but raw_data has 49"},
    {"bool, raw, short", [](ModelProto& m) { set_raw(m, TensorProto::BOOL, 5); },
     "is bool[3,2] and needs 6 bytes, but raw_data has 5"},
    {"bool, raw, packed into bits", [](ModelProto& m) { set_raw(m, TensorProto::BOOL, 1); },
     "needs 6 bytes, but raw_data has 1"},
    {"f32, empty raw data", [](ModelProto& m) { set_raw(m, TensorProto::FLOAT, 0); },
     "needs 24 bytes, but raw_data has 0"},
    {"f32, typed, long",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       for (int i = 0; i < 7; ++i) weight(m).add_float_data(1);
     },
     "with 6 elements, but float_data holds 7"},
    {"f64, typed, short",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       weight(m).set_data_type(TensorProto::DOUBLE);
       weight(m).add_double_data(1);
     },
     "with 6 elements, but double_data holds 1"},
    {"i64, typed, long",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       weight(m).set_data_type(TensorProto::INT64);
       for (int i = 0; i < 9; ++i) weight(m).add_int64_data(i);
     },
     "with 6 elements, but int64_data holds 9"},
    {"i32 in int64_data",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       weight(m).set_data_type(TensorProto::INT32);
       for (int i = 0; i < 6; ++i) weight(m).add_int64_data(i);
     },
     "is i32[3,2], but its elements are in int64_data"},
    {"bool, typed, short",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       weight(m).set_data_type(TensorProto::BOOL);
       weight(m).add_int32_data(1);
     },
     "with 6 elements, but int32_data holds 1"},
    {"f32 in double_data",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       for (int i = 0; i < 6; ++i) weight(m).add_double_data(i);
     },
     "its elements are in double_data"},
    {"f32 in string_data",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       weight(m).add_string_data("1 2 3 4 5 6");
     },
     "its elements are in string_data"},
    {"elements in two fields",
     [](ModelProto& m) {
       weight(m).clear_raw_data();
       for (int i = 0; i < 6; ++i) weight(m).add_float_data(1);
       weight(m).add_int32_data(1);
     },
     "its elements are in int32_data"},
    {"raw data and uint64_data", [](ModelProto& m) { weight(m).add_uint64_data(1); },
     "has both uint64_data and raw_data"},
    {"uint8 where floats multiply", [](ModelProto& m) { set_raw(m, TensorProto::UINT8, 6); },
     "Gemm 'fc'"},
    {"int4 in as many bytes",
     [](ModelProto& m) { set_raw(m, static_cast<TensorProto::DataType>(22), 6); },
     "is i4[3,2] and needs 3 bytes, but raw_data has 6"},
    {"complex128", [](ModelProto& m) { set_raw(m, TensorProto::COMPLEX128, 96); },
     "element type complex128 is not supported"},
    {"type 2147483647", [](ModelProto& m) { weight(m).set_data_type(2147483647); },
     "element type type 2147483647"},
    {"no type", [](ModelProto& m) { weight(m).clear_data_type(); }, "element type undefined"},
    {"integers where floats multiply", [](ModelProto& m) { set_raw(m, TensorProto::INT32, 24); },
     "Gemm 'fc'"},
};

const BrokenModel kNames[] = {
    {"escape in an input's name",
     [](ModelProto& m) { graph(m).mutable_input(0)->set_name("x\x1b[31m"); },
     "input 'x\\x1b[31m': the name holds a control character"},
    {"invalid UTF-8 in an input's name",
     [](ModelProto& m) { graph(m).mutable_input(0)->set_name("\xc3\x28"); },
     "the name is not valid UTF-8"},
    {"overlong UTF-8 in an output's name",
     [](ModelProto& m) { graph(m).mutable_output(0)->set_name("\xc0\xaf"); },
     "the name is not valid UTF-8"},
    {"half a surrogate in a node's name", [](ModelProto& m) { gemm(m).set_name("\xed\xa0\x80"); },
     "the name is not valid UTF-8"},
    {"beyond Unicode in an initializer's name",
     [](ModelProto& m) { weight(m).set_name("\xf5\x80\x80\x80"); }, "the name is not valid UTF-8"},
    {"bell in an op", [](ModelProto& m) { gemm(m).set_op_type("Gemm\x07"); },
     "'Gemm\\x07': the name holds a control character"},
    {"DEL in an output of a node", [](ModelProto& m) { gemm(m).set_output(0, "h\x7f"); },
     "'h\\x7f': the name holds a control character"},
    {"carriage return in the graph's name", [](ModelProto& m) { graph(m).set_name("a\rb"); },
     "graph 'a\\rb': the name holds a control character"},
    {"NUL in an output's name",
     [](ModelProto& m) { graph(m).mutable_output(0)->set_name(std::string("y\0", 2)); },
     "output 'y\\x00': the name holds a control character"},
    {"tab in a domain that is imported",
     [](ModelProto& m) {
       auto& import = *m.add_opset_import();
       import.set_domain("a\tb");
       import.set_version(1);
     },
     "operator set domain 'a\\tb'"},
    {"escape in the domain of a node", [](ModelProto& m) { gemm(m).set_domain("\x1b]0;x\x07"); },
     "is in domain '\\x1b]0;x\\x07', of which the model imports no opset"},
    {"escape in an attribute's name",
     [](ModelProto& m) { add_attribute(gemm(m), "\x1b[2J", onnx::AttributeProto::INT).set_i(1); },
     "attribute '\\x1b[2J' is not supported"},
    {"escape in a name that is read", [](ModelProto& m) { gemm(m).set_input(0, "\x1b[2J"); },
     "reads '\\x1b[2J', which nothing produces"},
    {"reordered text in a name that is read",
     [](ModelProto& m) { gemm(m).set_input(0, "a\u202eb"); },
     "reads 'a\\u{202e}b', which nothing produces"},
    {"control character in a symbol of an output",
     [](ModelProto& m) {
       auto& type = *graph(m).mutable_output(0)->mutable_type()->mutable_tensor_type();
       type.mutable_shape()->mutable_dim(0)->set_dim_param("N\x01");
     },
     "output 'y': dimension 'N\\x01': the name holds a control character"},
    {"a name of 4097 bytes", [](ModelProto& m) { gemm(m).set_name(std::string(4097, 'n')); },
     "(4097 bytes)': the name is longer than 4 KiB"},
    {"a result's name of 4097 bytes",
     [](ModelProto& m) { gemm(m).set_output(0, std::string(4097, 'n')); },
     "node 'fc' (Gemm) 'nnnn"},
    {"a symbol of 4097 bytes",
     [](ModelProto& m) {
       auto& type = *graph(m).mutable_input(0)->mutable_type()->mutable_tensor_type();
       type.mutable_shape()->mutable_dim(0)->set_dim_param(std::string(4097, 'N'));
     },
     "(4097 bytes)': the name is longer than 4 KiB"},
    {"the same name in two cases", [](ModelProto& m) { gemm(m).set_input(0, "X"); },
     "reads 'X', which nothing produces"},
};

}  // namespace

TEST_CASE("hostile tensors: sizes") { check_refused(kSizes, small_model()); }
TEST_CASE("hostile tensors: elements") { check_refused(kElements, small_model()); }
TEST_CASE("hostile tensors: names") { check_refused(kNames, small_model()); }

TEST_CASE("hostile tensors: an initializer of IR 3 need not be among the inputs") {
  ModelProto model = small_model();
  model.set_ir_version(3);
  CHECK_FALSE(error_of([&] { to_graph(read_proto(model), all_ops()); }).has_value());
}

}  // namespace trainscope::test
