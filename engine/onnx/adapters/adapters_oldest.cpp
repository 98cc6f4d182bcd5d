// Forms of ops before opset 7: consumed_inputs, broadcasting by axis, modes said by is_test.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/adapters/adapter_tools.h"
#include "engine/onnx/adapters/adapters.h"
#include "engine/onnx/proto.h"

namespace trainscope {
namespace {

// A hint about memory, dropped in opset 6.
SourceNodes without_consumed_inputs(ImportScope& /*scope*/, SourceNode node) {
  node.opset = 6;
  node.attributes.erase("consumed_inputs");
  return {std::move(node)};
}

// Before opset 7 the second operand was broadcast only on request: its dimensions are a contiguous
// run of the first one's, from `axis` on, or its last ones.
SourceNodes broadcast_by_axis(ImportScope& scope, SourceNode node) {
  bool by_axis = node.attributes.integer("broadcast", 0) != 0 && node.attributes.has("axis");
  std::int64_t wanted = node.attributes.integer("axis", 0);
  for (std::string_view name : {"broadcast", "axis", "consumed_inputs"}) {
    node.attributes.erase(name);
  }
  const int opset = std::exchange(node.opset, 7);
  if (!by_axis) return {std::move(node)};
  const Shape a = scope.type(node, 0).shape;
  const Shape b = scope.type(node, 1).shape;
  if (b.rank == 0) return {std::move(node)};
  int axis = normalized_axis(wanted, a.rank);
  require(axis + b.rank <= a.rank, ErrorCode::kBadInput,
          "node '{}' ({} of opset {}): {} does not fit into {} from axis {} on",
          printable(node.source), printable(node.op), opset, shape_text(b), shape_text(a), axis);
  if (axis + b.rank == a.rank) return {std::move(node)};
  Ints dims(b.span().begin(), b.span().end());
  dims.resize(static_cast<std::size_t>(a.rank - axis), 1);
  std::string aligned = scope.fresh(node.name + "/aligned");
  SourceNode reshape = reshape_node(
      scope, node, {.from = node.inputs[1], .to = aligned, .dims = dims, .suffix = "align"});
  node.inputs[1] = aligned;
  return {std::move(reshape), std::move(node)};
}

// Before opset 7 slopes were one for each channel, axis 1, or one for all.
SourceNodes slope_by_channel(ImportScope& scope, SourceNode node) {
  node.opset = 7;
  const Shape x = scope.type(node, 0).shape;
  const Shape slope = scope.type(node, 1).shape;
  if (slope.rank != 1 || slope.elements() == 1 || x.rank <= 2) return {std::move(node)};
  Ints dims{slope[0]};
  dims.resize(static_cast<std::size_t>(x.rank - 1), 1);
  std::string aligned = scope.fresh(node.name + "/slope");
  SourceNode reshape = reshape_node(
      scope, node, {.from = node.inputs[1], .to = aligned, .dims = dims, .suffix = "align"});
  node.inputs[1] = aligned;
  return {std::move(reshape), std::move(node)};
}

// Before opset 7 the third input of Gemm was broadcast only on request; what it says is what the
// shapes say.
SourceNodes gemm_without_broadcast(ImportScope& /*scope*/, SourceNode node) {
  node.opset = 7;
  node.attributes.erase("broadcast");
  return {std::move(node)};
}

SourceNodes selu_with_defaults(ImportScope& /*scope*/, SourceNode node) {
  node.opset = 6;
  node.attributes.erase("consumed_inputs");
  // The ones of opset 1 have fewer digits.
  if (!node.attributes.has("alpha")) node.attributes.set("alpha", double{1.6732F});
  if (!node.attributes.has("gamma")) node.attributes.set("gamma", double{1.0507F});
  return {std::move(node)};
}

SourceNodes concat_with_axis(ImportScope& /*scope*/, SourceNode node) {
  node.opset = 4;
  if (!node.attributes.has("axis")) node.attributes.set("axis", std::int64_t{1});
  return {std::move(node)};
}

SourceNodes cast_by_number(ImportScope& /*scope*/, SourceNode node) {
  constexpr std::string_view kUndefined = "UNDEFINED";
  std::string name = node.attributes.text("to", kUndefined);
  pb::TensorProto_DataType type = pb::TensorProto::UNDEFINED;
  bool known = pb::TensorProto_DataType_Parse(name, &type) && name != kUndefined;
  require(known, ErrorCode::kBadInput, "{}: attribute 'to' is '{}', not the name of a type",
          adapted_label(node), printable(name));
  node.opset = 6;
  node.attributes.set("to", std::int64_t{type});
  return {std::move(node)};
}

SourceNodes pads_by_their_name(ImportScope& /*scope*/, SourceNode node) {
  node.opset = 2;
  node.attributes.set("pads", node.attributes.integers("paddings"));
  node.attributes.erase("paddings");
  return {std::move(node)};
}

SourceNodes shape_to_input(ImportScope& scope, SourceNode node) {
  node.opset = 5;
  ints_to_input(scope, node, "shape", 1);
  node.attributes.erase("consumed_inputs");
  return {std::move(node)};
}

// Opset 1 had the sizes as attribute or as input, as opset 13 has them again.
SourceNodes split_input_or_attribute(ImportScope& scope, SourceNode node) {
  node.opset = 13;
  if (has_input(node, 1)) node.attributes.erase("split");
  ints_to_input(scope, node, "split", 1);
  return {std::move(node)};
}

// Opset 1 repeated along one axis; both numbers are inputs, of the data's type.
SourceNodes tile_of_one_axis(ImportScope& scope, SourceNode node) {
  auto number = [&](std::size_t input) {
    const Tensor* tensor = scope.known(node, input);
    require_supported(tensor != nullptr, "{}: input {} must be known before the run",
                      adapted_label(node), input);
    require(tensor->elements() == 1, ErrorCode::kBadInput, "{}: input {} must hold one number",
            adapted_label(node), input);
    const double value = convert(*tensor, DType::kF64).values<double>()[0];
    constexpr double kMost = 9007199254740992.0;  // 2^53
    require(value >= -kMost && value <= kMost, ErrorCode::kBadInput,
            "{}: input {} holds {}, a whole number was expected", adapted_label(node), input,
            value);
    return static_cast<std::int64_t>(value);
  };
  int rank = scope.type(node, 0).shape.rank;
  Ints repeats(static_cast<std::size_t>(rank), 1);
  repeats[static_cast<std::size_t>(normalized_axis(number(2), rank))] = number(1);
  node.opset = 6;
  node.inputs.resize(1);
  set_input(node, 1, scope.ints(repeats, node.name + "/repeats"));
  return {std::move(node)};
}

// is_test says the mode; where it is absent the number of outputs does: one is inference.
SourceNodes batch_norm_by_outputs(ImportScope& /*scope*/, SourceNode node) {
  if (node.attributes.integer("is_test", 0) != 0) node.outputs.resize(1);
  node.attributes.erase("is_test");
  node.attributes.erase("consumed_inputs");
  node.opset = 7;
  return {std::move(node)};
}

constexpr AdapterRow kRows[] = {
    {"Abs", 1, 6, without_consumed_inputs},
    {"Ceil", 1, 6, without_consumed_inputs},
    {"Clip", 1, 6, without_consumed_inputs},
    {"Dropout", 1, 6, without_consumed_inputs},
    {"Elu", 1, 6, without_consumed_inputs},
    {"Exp", 1, 6, without_consumed_inputs},
    {"Floor", 1, 6, without_consumed_inputs},
    {"HardSigmoid", 1, 6, without_consumed_inputs},
    {"InstanceNormalization", 1, 6, without_consumed_inputs},
    {"LeakyRelu", 1, 6, without_consumed_inputs},
    {"Log", 1, 6, without_consumed_inputs},
    {"Max", 1, 6, without_consumed_inputs},
    {"Mean", 1, 6, without_consumed_inputs},
    {"Min", 1, 6, without_consumed_inputs},
    {"Neg", 1, 6, without_consumed_inputs},
    {"PRelu", 1, 6, without_consumed_inputs},
    {"Reciprocal", 1, 6, without_consumed_inputs},
    {"Relu", 1, 6, without_consumed_inputs},
    {"Sigmoid", 1, 6, without_consumed_inputs},
    {"Sqrt", 1, 6, without_consumed_inputs},
    {"Sum", 1, 6, without_consumed_inputs},
    {"Tanh", 1, 6, without_consumed_inputs},
    {"Selu", 1, 6, selu_with_defaults},
    {"Add", 1, 7, broadcast_by_axis},
    {"And", 1, 7, broadcast_by_axis},
    {"Div", 1, 7, broadcast_by_axis},
    {"Equal", 1, 7, broadcast_by_axis},
    {"Greater", 1, 7, broadcast_by_axis},
    {"Less", 1, 7, broadcast_by_axis},
    {"Mul", 1, 7, broadcast_by_axis},
    {"Or", 1, 7, broadcast_by_axis},
    {"Pow", 1, 7, broadcast_by_axis},
    {"Sub", 1, 7, broadcast_by_axis},
    {"Xor", 1, 7, broadcast_by_axis},
    {"PRelu", 6, 7, slope_by_channel},
    {"Gemm", 1, 7, gemm_without_broadcast},
    {"BatchNormalization", 1, 7, batch_norm_by_outputs},
    {"Cast", 1, 6, cast_by_number},
    {"Concat", 1, 4, concat_with_axis},
    {"Pad", 1, 2, pads_by_their_name},
    {"Reshape", 1, 5, shape_to_input},
    {"Split", 1, 2, split_input_or_attribute},
    {"Tile", 1, 6, tile_of_one_axis},
};

}  // namespace

std::span<const AdapterRow> oldest_rows() { return kRows; }

}  // namespace trainscope
