// Plain structs to a ModelProto, and that to a file.
#include "engine/onnx/plain_model.h"

#include "engine/core/error.h"
#include "engine/onnx/attributes.h"
#include "engine/onnx/model_writer.h"
#include "engine/onnx/proto.h"
#include "engine/onnx/tensor_file.h"

namespace trainscope {
namespace {

constexpr int kIrVersion = 8;
constexpr int kOpset = 17;

pb::ValueInfoProto value_info(const ModelTensor& tensor) {
  pb::ValueInfoProto info;
  info.set_name(tensor.name);
  pb::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type_of(tensor.dtype));
  CHECK_INVARIANT(tensor.dims.has_value());
  pb::TensorShapeProto& shape = *type.mutable_shape();
  for (const ModelDim& dim : *tensor.dims) {
    if (dim.size) {
      shape.add_dim()->set_dim_value(*dim.size);
    } else {
      shape.add_dim()->set_dim_param(dim.symbol);
    }
  }
  return info;
}

pb::NodeProto node_proto(const PlainNode& node) {
  pb::NodeProto proto;
  proto.set_op_type(node.op);
  proto.set_name(node.name);
  for (const std::string& input : node.inputs) proto.add_input(input);
  for (const std::string& output : node.outputs) proto.add_output(output);
  for (const auto& [name, value] : node.attributes.map()) {
    *proto.add_attribute() = attribute_proto(name, value);
  }
  return proto;
}

// Everything but the elements of the initializers.
pb::ModelProto model_proto(const PlainModel& model) {
  pb::ModelProto proto;
  proto.set_ir_version(kIrVersion);
  proto.set_producer_name("trainscope");
  pb::OperatorSetIdProto& opset = *proto.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
  pb::GraphProto& graph = *proto.mutable_graph();
  graph.set_name(model.name);
  for (const ModelTensor& input : model.inputs) *graph.add_input() = value_info(input);
  for (const ModelTensor& output : model.outputs) *graph.add_output() = value_info(output);
  for (const ModelTensor& value : model.values) *graph.add_value_info() = value_info(value);
  for (const PlainInitializer& initializer : model.initializers) {
    *graph.add_initializer() = tensor_header(initializer.name, initializer.type);
  }
  for (const PlainNode& node : model.nodes) *graph.add_node() = node_proto(node);
  return proto;
}

Tensor made(const PlainInitializer& initializer) {
  Tensor elements = initializer.elements();
  CHECK_INVARIANT(elements.type() == initializer.type);
  return elements;
}

}  // namespace

std::int64_t PlainModel::parameters() const {
  std::int64_t sum = 0;
  for (const PlainInitializer& each : initializers) {
    if (each.trained) sum += each.type.elements();
  }
  return sum;
}

void write_onnx(const PlainModel& model, const std::filesystem::path& path, Weights weights) {
  CHECK_INVARIANT(weights != Weights::kOmit);
  pb::ModelProto proto = model_proto(model);
  std::uint64_t total_bytes = 0;
  for (const PlainInitializer& each : model.initializers) total_bytes += each.type.bytes();
  ModelWriter writer(entry_of(path), weights, total_bytes);
  int index = 0;
  for (const PlainInitializer& each : model.initializers) {
    writer.put(*proto.mutable_graph()->mutable_initializer(index++), made(each));
  }
  writer.finish(proto);
}

std::string onnx_bytes(const PlainModel& model) {
  pb::ModelProto proto = model_proto(model);
  int index = 0;
  for (const PlainInitializer& each : model.initializers) {
    set_raw_data(*proto.mutable_graph()->mutable_initializer(index++), made(each));
  }
  return proto.SerializeAsString();
}

OnnxModel shapes_of(const PlainModel& model) {
  pb::ModelProto proto = model_proto(model);
  for (pb::TensorProto& initializer : *proto.mutable_graph()->mutable_initializer()) {
    initializer.set_data_location(pb::TensorProto::EXTERNAL);
    pb::StringStringEntryProto& place = *initializer.add_external_data();
    place.set_key("location");
    place.set_value("none");
  }
  const std::string bytes = proto.SerializeAsString();
  return OnnxModel::shapes_from_bytes(std::as_bytes(std::span(bytes)));
}

}  // namespace trainscope
