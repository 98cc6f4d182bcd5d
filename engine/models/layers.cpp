// Dense layers, convolutions and norms as nodes.
#include "engine/models/layers.h"

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"

namespace trainscope {
namespace {

// "layer1.0.conv1", "Conv" -> "/layer1/0/conv1/Conv"
ValueName node_name(const std::string& path, std::string_view op) {
  return "/" + scope_of(path) + "/" + std::string(op);
}

ValueName output_name(const std::string& path, std::string_view op, std::string_view wanted) {
  return wanted.empty() ? node_name(path, op) : ValueName(wanted);
}

}  // namespace

std::string scope_of(std::string path) {
  std::ranges::replace(path, '.', '/');
  return path;
}

ValueName draw(PlainBuilder& b, std::string_view name, const Shape& shape, const Initial& initial) {
  switch (initial.kind) {
    case Initial::Kind::kFilled:
      return b.filled(name, shape, static_cast<float>(initial.size));
    case Initial::Kind::kNormal:
      return b.normal(name, shape, initial.size);
    case Initial::Kind::kTruncatedNormal:
      return b.truncated_normal(name, shape, initial.size);
    case Initial::Kind::kUniform:
      return b.uniform(name, shape, initial.size);
  }
  CHECK_INVARIANT(false);
}

Initial torch_default(std::int64_t fan_in) {
  return {.kind = Initial::Kind::kUniform, .size = 1.0 / std::sqrt(static_cast<double>(fan_in))};
}

ValueName dense(PlainBuilder& b, const std::string& path, const ValueName& x, const Dense& layer) {
  const ValueName weight = draw(b, path + ".weight", {layer.inputs, layer.outputs}, layer.weight);
  const bool last = !layer.bias;
  const ValueName matmul =
      b.result("MatMul", output_name(path, "MatMul", last ? layer.result : ""), {x, weight});
  if (last) return matmul;
  const ValueName bias = draw(b, path + ".bias", {layer.outputs}, *layer.bias);
  return b.result("Add", output_name(path, "Add", layer.result), {matmul, bias});
}

ValueName linear(PlainBuilder& b, const std::string& path, const ValueName& x, const Dense& layer) {
  std::vector<ValueName> inputs{
      x, draw(b, path + ".weight", {layer.outputs, layer.inputs}, layer.weight)};
  if (layer.bias) inputs.push_back(draw(b, path + ".bias", {layer.outputs}, *layer.bias));
  return b.result("Gemm", output_name(path, "Gemm", layer.result), std::move(inputs),
                  {{"transB", std::int64_t{1}}});
}

ValueName layer_norm(PlainBuilder& b, const std::string& path, const ValueName& x,
                     const LayerNorm& layer) {
  const ValueName weight = b.filled(path + ".weight", {layer.width}, 1.0F);
  const ValueName bias = b.filled(path + ".bias", {layer.width}, 0.0F);
  return b.result("LayerNormalization", node_name(path, "LayerNormalization"), {x, weight, bias},
                  {{"axis", std::int64_t{-1}}, {"epsilon", layer.epsilon}});
}

ValueName conv(PlainBuilder& b, const std::string& path, const ValueName& x, const Conv& layer) {
  const Shape shape{layer.outputs, layer.inputs, layer.kernel, layer.kernel};
  std::vector<ValueName> inputs{x, draw(b, path + ".weight", shape, layer.weight)};
  if (layer.bias) inputs.push_back(draw(b, path + ".bias", {layer.outputs}, *layer.bias));
  return b.result("Conv", output_name(path, "Conv", layer.result), std::move(inputs),
                  {{"kernel_shape", Ints(2, layer.kernel)},
                   {"strides", Ints(2, layer.stride)},
                   {"pads", Ints(4, layer.pad)}});
}

ValueName batch_norm(PlainBuilder& b, const std::string& path, const ValueName& x,
                     std::int64_t channels) {
  const Shape shape{channels};
  return b.result(
      "BatchNormalization", node_name(path, "BatchNormalization"),
      {x, b.filled(path + ".weight", shape, 1.0F), b.filled(path + ".bias", shape, 0.0F),
       b.statistic(path + ".running_mean", shape, 0.0F),
       b.statistic(path + ".running_var", shape, 1.0F)},
      {{"epsilon", 1e-5}, {"momentum", 0.9}});  // the old ones' fraction: torch says 0.1
}

ValueName dropout(PlainBuilder& b, std::string_view label, const ValueName& x, double ratio) {
  if (ratio == 0.0) return x;
  return b.node("Dropout", label, {x, b.number(static_cast<float>(ratio))});
}

void check_dropout(double ratio) {
  require(ratio >= 0.0 && ratio < 1.0, ErrorCode::kUsage,
          "--dropout is {}, expected a number in [0, 1)", ratio);
}

ValueName max_pool(PlainBuilder& b, std::string_view label, const ValueName& x, const Pool& pool) {
  return b.node("MaxPool", label, {x},
                {{"kernel_shape", Ints(2, pool.kernel)},
                 {"strides", Ints(2, pool.stride)},
                 {"pads", Ints(4, pool.pad)}});
}

}  // namespace trainscope
