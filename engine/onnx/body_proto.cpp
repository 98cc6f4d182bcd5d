// Graphs to protobuf.
#include "engine/onnx/body_proto.h"

#include <string>

#include "engine/ir/op_def.h"
#include "engine/onnx/attributes.h"
#include "engine/onnx/stage_metadata.h"
#include "engine/onnx/tensor_file.h"

namespace trainscope {

pb::ValueInfoProto value_info(const Value& value) {
  pb::ValueInfoProto info;
  info.set_name(value.name);
  pb::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx_type_of(value.type.dtype));
  pb::TensorShapeProto& shape = *tensor.mutable_shape();
  for (std::int64_t dim : value.type.shape.span()) shape.add_dim()->set_dim_value(dim);
  return info;
}

pb::NodeProto stage_node_proto(const Graph& graph, const Node& node) {
  pb::NodeProto proto;
  proto.set_name(node.name);
  proto.set_op_type(std::string(node.op->name));
  proto.set_domain(std::string(node.op->domain));
  proto.set_doc_string(node_note_text(graph, node));
  for (ValueId v : node.inputs) proto.add_input(v == kNoValue ? "" : graph.value(v).name);
  for (const auto& [name, value] : node.attributes.map()) {
    *proto.add_attribute() = attribute_proto(name, value);
  }
  for (ValueId v : node.outputs) proto.add_output(v == kNoValue ? "" : graph.value(v).name);
  return proto;
}

pb::GraphProto body_proto(const Graph& body) {
  pb::GraphProto proto;
  proto.set_name("body");
  for (ValueId v : body.inputs) *proto.add_input() = value_info(body.value(v));
  for (ValueId v : body.outputs) *proto.add_output() = value_info(body.value(v));
  for (ValueId v : body.values_of(ValueKind::kConstant)) {
    *proto.add_initializer() = tensor_proto(body.value(v).name, *body.value(v).data);
  }
  for (NodeId id = body.first(); id != kNoNode; id = body.node(id).next) {
    *proto.add_node() = stage_node_proto(body, body.node(id));
  }
  return proto;
}

}  // namespace trainscope
