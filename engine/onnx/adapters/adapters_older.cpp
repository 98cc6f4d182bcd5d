// Forms of ops before opset 13 (batch norm: 14, RoiAlign: 16) that need converting.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/adapters/adapter_tools.h"
#include "engine/onnx/adapters/adapters.h"
#include "engine/onnx/tensor_file.h"

namespace trainscope {
namespace {

SourceNodes axes_to_input(ImportScope& scope, SourceNode node) {
  node.opset = 13;
  ints_to_input(scope, node, "axes", 1);
  return {std::move(node)};
}

SourceNodes split_to_input(ImportScope& scope, SourceNode node) {
  node.opset = 13;
  ints_to_input(scope, node, "split", 1);
  return {std::move(node)};
}

SourceNodes slice_to_inputs(ImportScope& scope, SourceNode node) {
  node.opset = 10;
  ints_to_input(scope, node, "starts", 1);
  ints_to_input(scope, node, "ends", 2);
  ints_to_input(scope, node, "axes", 3);
  return {std::move(node)};
}

SourceNodes pad_to_inputs(ImportScope& scope, SourceNode node) {
  node.opset = 11;
  ints_to_input(scope, node, "pads", 1);
  number_to_input(scope, node, "value", 2);
  return {std::move(node)};
}

SourceNodes clip_to_inputs(ImportScope& scope, SourceNode node) {
  node.opset = 11;
  number_to_input(scope, node, "min", 1);
  number_to_input(scope, node, "max", 2);
  return {std::move(node)};
}

SourceNodes top_k_to_input(ImportScope& scope, SourceNode node) {
  require(node.attributes.has("k"), ErrorCode::kBadInput, "{}: attribute 'k' is missing",
          adapted_label(node));
  node.opset = 10;
  std::int64_t k = node.attributes.integer("k", 0);
  node.attributes.erase("k");
  set_input(node, 1, scope.ints({k}, node.name + "/k"));
  return {std::move(node)};
}

// Before opset 12 a Dropout has no training_mode. Below 7 is_test says it; from there on what the
// file means is inference, and a training step makes any Dropout drop. Before opset 10 the mask
// had the type of the data.
SourceNodes dropout_to_inputs(ImportScope& scope, SourceNode node) {
  auto ratio = static_cast<float>(node.attributes.number("ratio", 0.5));
  bool training = node.opset < 7 && node.attributes.integer("is_test", 0) == 0;
  bool numeric_mask = node.opset < 10 && node.outputs.size() > 1 && !node.outputs[1].empty();
  node.attributes.erase("ratio");
  node.attributes.erase("is_test");
  node.opset = 12;
  node.inputs.resize(1);
  node.inputs.push_back(scope.constant(Tensor::scalar(ratio), node.name + "/ratio"));
  node.inputs.push_back(scope.constant(Tensor::scalar(training), node.name + "/training"));
  if (!numeric_mask) return {std::move(node)};
  int type = onnx_type_of(scope.type(node, 0).dtype);
  SourceNode cast{.op = "Cast",
                  .domain = {},
                  .opset = 13,
                  .name = node.name + "/mask",
                  .source = node.source,
                  .inputs = {scope.fresh(node.name + "/mask")},
                  .outputs = {node.outputs[1]},
                  .attributes = {{"to", std::int64_t{type}}},
                  .depth = node.depth};
  node.outputs[1] = cast.inputs[0];
  return {std::move(node), std::move(cast)};
}

// Before opset 14 further outputs mean training; the saved statistics (outputs 3, 4) are gone.
SourceNodes batch_norm_with_mode(ImportScope& /*scope*/, SourceNode node) {
  require_supported(node.attributes.integer("spatial", 1) == 1, "{}: spatial=0 is not supported",
                    adapted_label(node));
  node.attributes.erase("spatial");
  node.opset = 14;
  bool training = std::any_of(node.outputs.begin() + 1, node.outputs.end(),
                              [](const std::string& name) { return !name.empty(); });
  node.outputs.resize(training ? std::min<std::size_t>(node.outputs.size(), 3) : 1);
  node.attributes.set("training_mode", std::int64_t{training});
  return {std::move(node)};
}

// Before opset 13 a softmax ran over all axes from `axis` on: Reshape, Softmax, Reshape back.
SourceNodes softmax_of_matrix(ImportScope& scope, SourceNode node) {
  Shape shape = scope.type(node, 0).shape;
  int axis = normalized_axis(node.attributes.integer("axis", 1), shape.rank);
  node.opset = 13;
  node.attributes.set("axis", std::int64_t{-1});
  if (axis == shape.rank - 1) return {std::move(node)};
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  for (int i = 0; i < shape.rank; ++i) (i < axis ? rows : columns) *= shape[i];

  std::string flat = scope.fresh(node.name + "/matrix");
  std::string result = scope.fresh(node.name + "/result");
  SourceNode to = reshape_node(
      scope, node,
      {.from = node.inputs[0], .to = flat, .dims = {rows, columns}, .suffix = "flatten"});
  SourceNode back = reshape_node(scope, node,
                                 {.from = result,
                                  .to = node.outputs[0],
                                  .dims = {shape.span().begin(), shape.span().end()},
                                  .suffix = "unflatten"});
  node.inputs = {flat};
  node.outputs = {result};
  return {std::move(to), std::move(node), std::move(back)};
}

// --- Resize and what came before it --------------------------------------------------------------
SourceNodes upsample_to_scales(ImportScope& /*scope*/, SourceNode node) {
  Floats scales{1.0, 1.0, node.attributes.number("height_scale", 1.0),
                node.attributes.number("width_scale", 1.0)};
  node.opset = 7;
  node.attributes.erase("height_scale");
  node.attributes.erase("width_scale");
  node.attributes.set("scales", std::move(scales));
  return {std::move(node)};
}

SourceNodes upsample_to_input(ImportScope& scope, SourceNode node) {
  Floats scales = node.attributes.numbers("scales");
  node.opset = 9;
  node.attributes.erase("scales");
  Shape shape{static_cast<std::int64_t>(scales.size())};
  Tensor tensor = convert(Tensor::of<double>(shape, scales), DType::kF32);
  set_input(node, 1, scope.constant(std::move(tensor), node.name + "/scales"));
  return {std::move(node)};
}

// Opset 10 resized from the upper left corner on, without names for how.
SourceNodes resize_with_modes(ImportScope& /*scope*/, SourceNode node) {
  std::string mode = node.attributes.text("mode", "nearest");
  node.op = "Resize";
  node.opset = 13;
  node.attributes.set("mode", mode == "bilinear" ? std::string("linear") : mode);
  node.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attributes.set("nearest_mode", std::string("floor"));
  node.inputs.resize(2);
  node.inputs.insert(node.inputs.begin() + 1, std::string());  // no roi
  return {std::move(node)};
}

// Opset 11 demanded a roi and scales even where nothing reads them: empty ones.
SourceNodes resize_without_empty(ImportScope& scope, SourceNode node) {
  node.opset = 13;
  bool crops =
      node.attributes.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  if (!crops && has_input(node, 1)) node.inputs[1].clear();
  if (has_input(node, 2) && scope.type(node, 2).elements() == 0) node.inputs[2].clear();
  return {std::move(node)};
}

SourceNodes scatter_by_its_name(ImportScope& /*scope*/, SourceNode node) {
  node.op = "ScatterElements";
  node.opset = 11;
  return {std::move(node)};
}

// Opset 16 subtracts half an element from coordinates unless it is told not to.
SourceNodes roi_align_unshifted(ImportScope& /*scope*/, SourceNode node) {
  node.opset = 16;
  node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return {std::move(node)};
}

// ONNX Runtime's optimiser wrote it into models of older opsets, before ONNX had it.
SourceNodes layer_norm_before_its_time(ImportScope& /*scope*/, SourceNode node) {
  node.opset = 17;
  return {std::move(node)};
}

constexpr AdapterRow kRows[] = {
    {"Squeeze", 1, 13, axes_to_input},
    {"Unsqueeze", 1, 13, axes_to_input},
    {"ReduceSum", 1, 13, axes_to_input},
    {"Split", 2, 13, split_to_input},
    {"Slice", 1, 10, slice_to_inputs},
    {"Pad", 2, 11, pad_to_inputs},
    {"Clip", 6, 11, clip_to_inputs},
    {"TopK", 1, 10, top_k_to_input},
    {"Dropout", 6, 12, dropout_to_inputs},
    {"BatchNormalization", 7, 14, batch_norm_with_mode},
    {"LayerNormalization", 1, 17, layer_norm_before_its_time},
    {"Softmax", 1, 13, softmax_of_matrix},
    {"LogSoftmax", 1, 13, softmax_of_matrix},
    {"Hardmax", 1, 13, softmax_of_matrix},
    {"Upsample", 1, 7, upsample_to_scales, "Resize"},
    {"Upsample", 7, 9, upsample_to_input, "Resize"},
    {"Upsample", 9, 10, resize_with_modes, "Resize"},
    {"Resize", 10, 11, resize_with_modes},
    {"Resize", 11, 13, resize_without_empty},
    {"RoiAlign", 10, 16, roi_align_unshifted},
    {"Scatter", 9, 11, scatter_by_its_name, "ScatterElements"},
};

}  // namespace

std::span<const AdapterRow> older_rows() { return kRows; }

}  // namespace trainscope
