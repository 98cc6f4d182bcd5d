// Forms of ops before opset 13 (batch norm: 14).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/adapters.h"

namespace trainscope {
namespace {

using Nodes = std::vector<SourceNode>;

// The value of attribute `name` as input `input`, if the node gives it.
void ints_to_input(ImportScope& scope, SourceNode& node, std::string_view name, std::size_t input) {
  if (!node.attributes.has(name)) return;
  Ints values = node.attributes.integers(name);
  node.attributes.erase(name);
  if (node.inputs.size() <= input) node.inputs.resize(input + 1);
  node.inputs[input] = scope.ints(values, fmt::format("{}/{}", node.name, name));
}

// A number as a scalar input of the type of input 0.
void number_to_input(ImportScope& scope, SourceNode& node, std::string_view name,
                     std::size_t input) {
  if (!node.attributes.has(name)) return;
  double number = node.attributes.number(name, 0);
  node.attributes.erase(name);
  if (node.inputs.size() <= input) node.inputs.resize(input + 1);
  node.inputs[input] = scope.constant(convert(Tensor::scalar(number), scope.type(node, 0).dtype),
                                      fmt::format("{}/{}", node.name, name));
}

Nodes axes_to_input(ImportScope& scope, SourceNode node) {
  node.opset = 13;
  ints_to_input(scope, node, "axes", 1);
  return {std::move(node)};
}

Nodes split_to_input(ImportScope& scope, SourceNode node) {
  node.opset = 13;
  ints_to_input(scope, node, "split", 1);
  return {std::move(node)};
}

Nodes shape_to_input(ImportScope& scope, SourceNode node) {
  node.opset = 5;
  ints_to_input(scope, node, "shape", 1);
  node.attributes.erase("consumed_inputs");
  return {std::move(node)};
}

Nodes slice_to_inputs(ImportScope& scope, SourceNode node) {
  node.opset = 10;
  ints_to_input(scope, node, "starts", 1);
  ints_to_input(scope, node, "ends", 2);
  ints_to_input(scope, node, "axes", 3);
  return {std::move(node)};
}

Nodes pad_to_inputs(ImportScope& scope, SourceNode node) {
  node.opset = 11;
  ints_to_input(scope, node, "pads", 1);
  number_to_input(scope, node, "value", 2);
  return {std::move(node)};
}

Nodes clip_to_inputs(ImportScope& scope, SourceNode node) {
  node.opset = 11;
  number_to_input(scope, node, "min", 1);
  number_to_input(scope, node, "max", 2);
  return {std::move(node)};
}

// Before opset 12 a Dropout has no training_mode: it drops.
Nodes dropout_to_inputs(ImportScope& scope, SourceNode node) {
  node.opset = 12;
  auto ratio = static_cast<float>(node.attributes.number("ratio", 0.5));
  bool training = node.attributes.integer("is_test", 0) == 0;
  node.attributes.erase("ratio");
  node.attributes.erase("is_test");
  node.inputs.resize(1);
  node.inputs.push_back(scope.constant(Tensor::scalar(ratio), node.name + "/ratio"));
  node.inputs.push_back(scope.constant(Tensor::scalar(training), node.name + "/training"));
  return {std::move(node)};
}

// Before opset 14 further outputs mean training; the saved statistics (outputs 3, 4) are gone.
Nodes batch_norm_with_mode(ImportScope& /*scope*/, SourceNode node) {
  require(node.attributes.integer("spatial", 1) == 1, ErrorCode::kBadInput,
          "node '{}' (BatchNormalization): spatial=0 of opset {} is not supported",
          printable(node.source), node.opset);
  node.attributes.erase("spatial");
  node.opset = 14;
  bool training = std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                              [](const std::string& name) { return !name.empty(); });
  node.outputs.resize(training ? std::min<std::size_t>(node.outputs.size(), 3) : 1);
  node.attributes.set("training_mode", std::int64_t{training});
  return {std::move(node)};
}

// Before opset 13 the softmax ran over all axes from `axis` on: Reshape, Softmax, Reshape back.
Nodes softmax_of_matrix(ImportScope& scope, SourceNode node) {
  Shape shape = scope.type(node, 0).shape;
  int axis = normalized_axis(node.attributes.integer("axis", 1), shape.rank);
  node.opset = 13;
  node.attributes.set("axis", std::int64_t{-1});
  if (axis == shape.rank - 1) return {std::move(node)};
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  for (int i = 0; i < shape.rank; ++i) (i < axis ? rows : columns) *= shape[i];

  auto reshape = [&](const std::string& from, const std::string& to, const Ints& dims) {
    SourceNode r{.op = "Reshape",
                 .domain = {},
                 .opset = 14,
                 .name = node.name + "/" + (dims.size() == 2 ? "flatten" : "unflatten"),
                 .source = node.source,
                 .inputs = {from, scope.ints(dims, node.name + "/shape")},
                 .outputs = {to},
                 .attributes = {{"allowzero", std::int64_t{1}}},
                 .depth = node.depth};
    return r;
  };
  std::string flat = scope.fresh(node.name + "/matrix");
  std::string result = scope.fresh(node.name + "/result");
  Nodes nodes{reshape(node.inputs[0], flat, {rows, columns})};
  SourceNode back = reshape(result, node.outputs[0], {shape.span().begin(), shape.span().end()});
  node.inputs = {flat};
  node.outputs = {result};
  nodes.push_back(std::move(node));
  nodes.push_back(std::move(back));
  return nodes;
}

constexpr AdapterRow kRows[] = {
    {"Squeeze", 1, 13, axes_to_input},
    {"Unsqueeze", 1, 13, axes_to_input},
    {"ReduceSum", 1, 13, axes_to_input},
    {"Split", 2, 13, split_to_input},
    {"Reshape", 1, 5, shape_to_input},
    {"Slice", 1, 10, slice_to_inputs},
    {"Pad", 2, 11, pad_to_inputs},
    {"Clip", 6, 11, clip_to_inputs},
    {"Dropout", 6, 12, dropout_to_inputs},
    {"BatchNormalization", 7, 14, batch_norm_with_mode},
    {"Softmax", 1, 13, softmax_of_matrix},
    {"LogSoftmax", 1, 13, softmax_of_matrix},
    // More element types, negative axes or clearer words, but no new meaning.
    {"Abs", 6, 13},
    {"Add", 7, 13},
    {"AveragePool", 7, 11},
    {"Cast", 6, 13},
    {"Ceil", 6, 13},
    {"Clip", 11, 13},
    {"Concat", 4, 13},
    {"Conv", 1, 11},
    {"Div", 7, 13},
    {"Dropout", 12, 13},
    {"Equal", 7, 13},
    {"Erf", 9, 13},
    {"Exp", 6, 13},
    {"Expand", 8, 13},
    {"Flatten", 1, 13},
    {"Floor", 6, 13},
    {"Gather", 1, 13},
    {"Gemm", 7, 13},
    {"Greater", 7, 13},
    {"Identity", 1, 13},
    {"Less", 7, 13},
    {"Log", 6, 13},
    {"MatMul", 1, 13},
    {"Max", 8, 13},
    {"MaxPool", 1, 12},
    {"Mean", 8, 13},
    {"Min", 8, 13},
    {"Mul", 7, 13},
    {"Neg", 6, 13},
    {"Pad", 11, 13},
    {"Pow", 7, 13},
    {"Reciprocal", 6, 13},
    {"ReduceL1", 1, 13},
    {"ReduceL2", 1, 13},
    {"ReduceLogSum", 1, 13},
    {"ReduceLogSumExp", 1, 13},
    {"ReduceMax", 1, 13},
    {"ReduceMean", 1, 13},
    {"ReduceMin", 1, 13},
    {"ReduceProd", 1, 13},
    {"ReduceSumSquare", 1, 13},
    {"Relu", 6, 13},
    {"Reshape", 5, 13},
    {"Shape", 1, 13},
    {"Sigmoid", 6, 13},
    {"Sign", 9, 13},
    {"Slice", 10, 13},
    {"Sqrt", 6, 13},
    {"Sub", 7, 13},
    {"Sum", 8, 13},
    {"Tanh", 6, 13},
    {"Tile", 6, 13},
    {"Transpose", 1, 13},
};

}  // namespace

std::span<const AdapterRow> older_rows() { return kRows; }

}  // namespace trainscope
