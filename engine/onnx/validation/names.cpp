// Names in a model file: how long they may be, and of what.
#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/stage_metadata.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

class NameLengths {
 public:
  explicit NameLengths(std::size_t most) : most_(most) {}

  void check_model(const pb::ModelProto& model) const {
    check_domains(model.opset_import());
    check_graph(model.graph());
    for (const pb::FunctionProto& function : model.functions()) check_function(function);
  }

 private:
  // Bodies nest as deep as the parser lets them.
  void check_graph(const pb::GraphProto& graph) const {
    check(graph.name(), "graph");
    for (const pb::TensorProto& tensor : graph.initializer()) check(tensor.name(), "initializer");
    for (const pb::ValueInfoProto& input : graph.input()) check_end(input, "input");
    for (const pb::ValueInfoProto& output : graph.output()) check_end(output, "output");
    check_nodes(graph.node());
  }

  void check(std::string_view name, std::string_view what) const {
    if (name.size() <= most_) return;
    fail(ErrorCode::kBadInput, "{} '{}': the name is longer than {}", what, printable(name),
         human_bytes(most_));
  }

  template <typename Imports>
  void check_domains(const Imports& imports) const {
    for (const pb::OperatorSetIdProto& import : imports) {
      check(import.domain(), "operator set domain");
    }
  }

  void check_end(const pb::ValueInfoProto& end, std::string_view role) const {
    check(end.name(), role);
    for (const auto& dim : end.type().tensor_type().shape().dim()) {
      check(dim.dim_param(), "dimension");
    }
  }

  void check_nodes(const google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes) const {
    for (int i = 0; i < nodes.size(); ++i) {
      const pb::NodeProto& node = nodes[i];
      check(node.name(), "node");
      check(node.domain(), "operator set domain");
      if (node.op_type().size() > most_) check(node.op_type(), node_label(node, i));
      for (const std::string& output : node.output()) {
        if (output.size() > most_) check(output, node_label(node, i));
      }
      for (const pb::AttributeProto& a : node.attribute()) {
        if (a.has_g()) check_graph(a.g());
      }
    }
  }

  void check_function(const pb::FunctionProto& function) const {
    check(function.name(), "function");
    check(function.domain(), "function domain");
    check_domains(function.opset_import());
    for (const std::string& input : function.input()) check(input, "function input");
    check_nodes(function.node());
  }

  std::size_t most_;
};

}  // namespace

void check_name_lengths(const pb::ModelProto& model) {
  NameLengths(has_stage_metadata(model) ? 2 * kMaxNameBytes : kMaxNameBytes).check_model(model);
}

void check_name(std::string_view name, std::string_view what) {
  if (name.empty()) fail(ErrorCode::kBadInput, "{}: the name is empty", what);
  std::string_view problem;
  if (!is_valid_utf8(name)) {
    problem = "is not valid UTF-8";
  } else if (std::ranges::any_of(name, is_control)) {
    problem = "holds a control character";
  }
  if (problem.empty()) return;
  fail(ErrorCode::kBadInput, "{} '{}': the name {}", what, printable(name), problem);
}

}  // namespace trainscope
