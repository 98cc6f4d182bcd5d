// Casts, powers, pools and quantized tensors of types that opset 17 does not have: by ops of our
// own.
#include <algorithm>
#include <string>

#include "engine/onnx/adapters/adapters.h"
#include "engine/onnx/tensor_file.h"
#include "engine/onnx/validate.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {
namespace {

using Nodes = std::vector<SourceNode>;
constexpr int kEnd = kNewestOpset + 1;

// Opset 19 knows floats of 8 bits, 21 integers of 4. What `saturate` and `round_mode` say is about
// these types only.
Nodes cast_by_type(ImportScope& scope, SourceNode node) {
  node.opset = 17;
  const DType to = dtype_of_onnx(node.attributes.integer("to", 0));
  if (is_storage(to) || is_storage(scope.type(node, 0).dtype)) {
    node.op = "StorageCast";
    node.domain = std::string(kTrainscopeDomain);
    return {std::move(node)};
  }
  node.attributes.erase("saturate");
  node.attributes.erase("round_mode");
  return {std::move(node)};
}

Nodes to_own_domain(ImportScope& /*scope*/, SourceNode node) {
  node.domain = std::string(kTrainscopeDomain);
  node.opset = 17;
  return {std::move(node)};
}

struct CastSpec {
  std::string from;
  std::string to;
  DType dtype = DType::kF32;
};
// to = Cast(from), a node that stems from `node` and has the name of what is not the node's own.
SourceNode cast_node(const SourceNode& node, const CastSpec& spec) {
  const bool is_result = std::ranges::find(node.outputs, spec.to) != node.outputs.end();
  return {.op = "Cast",
          .domain = {},
          .opset = 17,
          .name = is_result ? node.name + "/narrow" : spec.to,
          .source = node.source,
          .inputs = {spec.from},
          .outputs = {spec.to},
          .attributes = {{"to", std::int64_t{onnx_type_of(spec.dtype)}}},
          .depth = node.depth};
}

// Opset 12 pools integers of 8 bits, which f32 holds exactly.
Nodes pool_of_floats(ImportScope& scope, SourceNode node) {
  node.opset = 17;
  const DType dtype = scope.type(node, 0).dtype;
  const bool bytes = dtype == DType::kU8 || dtype == DType::kI8;
  if (!bytes || node.outputs.size() != 1) return {std::move(node)};
  SourceNode upcast = cast_node(node, {node.inputs[0], scope.fresh(node.name + "/upcast")});
  SourceNode downcast =
      cast_node(node, {scope.fresh(node.name + "/pooled"), node.outputs[0], dtype});
  node.inputs[0] = upcast.outputs[0];
  node.outputs[0] = downcast.inputs[0];
  return {std::move(upcast), std::move(node), std::move(downcast)};
}

// The exponent's type where our kernels have the pair; i64 or f32, as exact, where they do not.
DType exponent_type(DType base, DType exponent) {
  if (is_stored_only(exponent) && is_float(base)) return DType::kF32;
  if (is_integer_type(exponent) && exponent != DType::kI32) return DType::kI64;
  return exponent;
}

// Opset 13 has exponents of other types than the base's.
Nodes pow_of_known_types(ImportScope& scope, SourceNode node) {
  node.opset = 17;
  if (node.inputs.size() != 2) return {std::move(node)};
  const DType given = scope.type(node, 1).dtype;
  const DType wanted = exponent_type(scope.type(node, 0).dtype, given);
  if (wanted == given) return {std::move(node)};
  SourceNode cast = cast_node(node, {node.inputs[1], scope.fresh(node.name + "/exponent"), wanted});
  node.inputs[1] = cast.outputs[0];
  return {std::move(cast), std::move(node)};
}

constexpr AdapterRow kRows[] = {
    {"Cast", 19, kEnd, cast_by_type},
    {"MaxPool", 12, 17, pool_of_floats},
    {"MaxPool", 18, kEnd, pool_of_floats},
    {"Pow", 13, 17, pow_of_known_types},
    {"Pow", 18, kEnd, pow_of_known_types},
    {"QuantizeLinear", 10, kEnd, to_own_domain, "QuantizeLinear"},
    {"DequantizeLinear", 10, kEnd, to_own_domain, "DequantizeLinear"},
};

}  // namespace

std::span<const AdapterRow> type_rows() { return kRows; }

}  // namespace trainscope
