// The model in another float type: what f32 in its attributes becomes in an f64 graph.
#include "engine/onnx/float_type.h"

#include "engine/onnx/proto.h"

namespace trainscope {
namespace {

// Attributes whose integer is the number of an element type.
bool names_type(std::string_view attribute) { return attribute == "to" || attribute == "dtype"; }

bool is_f32(const SharedTensor& tensor) { return tensor && tensor->dtype() == DType::kF32; }

}  // namespace

void upcast_floats(SourceNode& node) {
  Attributes upcast = node.attributes;
  for (const auto& [name, attribute] : node.attributes.map()) {
    if (const auto* tensor = std::get_if<SharedTensor>(&attribute)) {
      if (!is_f32(*tensor)) continue;
      upcast.set(name, std::make_shared<const Tensor>(convert(**tensor, DType::kF64)));
    } else if (const auto* number = std::get_if<std::int64_t>(&attribute)) {
      if (names_type(name) && *number == pb::TensorProto::FLOAT) {
        upcast.set(name, std::int64_t{pb::TensorProto::DOUBLE});
      }
    }
  }
  // Without a value it fills with a float32 zero.
  if (node.op == "ConstantOfShape" && !node.attributes.has("value")) {
    upcast.set("value", std::make_shared<const Tensor>(
                            Tensor(TensorType{.dtype = DType::kF64, .shape = Shape{1}})));
  }
  node.attributes = std::move(upcast);
}

}  // namespace trainscope
