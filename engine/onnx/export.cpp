// write_onnx: any stage of a graph as a valid ONNX model.
#include "engine/onnx/export.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/onnx/body_proto.h"
#include "engine/onnx/model_writer.h"
#include "engine/onnx/proto.h"
#include "engine/onnx/stage_metadata.h"
#include "engine/onnx/tensor_file.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

constexpr int kIrVersion = 8;
constexpr int kOpset = 17;

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, const ExportOptions& options)
      : graph_(graph), options_(options) {}

  // Everything but the elements of tensors; tensors() are in the order of its initializers.
  pb::ModelProto model() {
    CHECK_INVARIANT(graph_.opset == kOpset);
    pb::ModelProto model;
    model.set_ir_version(kIrVersion);
    model.set_producer_name("trainscope");
    pb::GraphProto& proto = *model.mutable_graph();
    proto.set_name(graph_.name.empty() ? "graph" : graph_.name);
    for (ValueId v : graph_.inputs) *proto.add_input() = value_info(graph_.value(v));
    add_initializers(proto);
    add_outputs(proto);
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.node(id).next) {
      add_node(proto, graph_.node(id));
    }
    add_opset(model, kOnnxDomain, kOpset);
    if (uses_own_ops_) add_opset(model, kTrainscopeDomain, kTrainscopeOpset);
    write_stage_metadata(stage_metadata(graph_), model);
    return model;
  }

  const std::vector<SharedTensor>& tensors() const { return tensors_; }

 private:
  // Null: the value has no elements to write and becomes an input.
  SharedTensor elements_of(const Value& value) const {
    if (value.kind == ValueKind::kConstant) return value.data;
    if (options_.weights == Weights::kOmit) return nullptr;
    SharedTensor given = options_.tensor ? options_.tensor(value.name) : nullptr;
    if (!given) return value.data;
    CHECK_INVARIANT(given->type() == value.type);
    return given;
  }

  void add_initializers(pb::GraphProto& proto) {
    for (ValueId v : graph_.live_values()) {
      const Value& value = graph_.value(v);
      if (value.kind == ValueKind::kNode || value.kind == ValueKind::kInput) continue;
      SharedTensor tensor = elements_of(value);
      if (!tensor) {
        *proto.add_input() = value_info(value);
        continue;
      }
      *proto.add_initializer() = tensor_header(value.name, value.type);
      tensors_.push_back(std::move(tensor));
    }
  }

  // Besides the outputs, all that a step is computed for.
  void add_outputs(pb::GraphProto& proto) {
    std::vector<ValueId> results = graph_.outputs;
    if (graph_.loss != kNoValue) results.push_back(graph_.loss);
    for (const GradientOf& g : graph_.gradients) results.push_back(g.gradient);
    for (const Update& u : graph_.updates) results.push_back(u.value);
    for (ValueId v : results) {
      if (is_result_.insert(static_cast<std::int32_t>(v)).second) {
        *proto.add_output() = value_info(graph_.value(v));
      }
    }
  }

  void add_node(pb::GraphProto& graph, const Node& node) {
    *graph.add_node() = stage_node_proto(graph_, node);
    uses_own_ops_ = uses_own_ops_ || !node.op->domain.empty();
    for (ValueId v : node.outputs) {
      bool listed = v == kNoValue || is_result_.contains(static_cast<std::int32_t>(v));
      if (!listed) *graph.add_value_info() = value_info(graph_.value(v));
    }
  }

  static void add_opset(pb::ModelProto& model, std::string_view domain, int version) {
    pb::OperatorSetIdProto& import = *model.add_opset_import();
    import.set_domain(std::string(domain));
    import.set_version(version);
  }

  const Graph& graph_;
  const ExportOptions& options_;
  std::vector<SharedTensor> tensors_;
  std::unordered_set<std::int32_t> is_result_;
  bool uses_own_ops_ = false;
};

std::uint64_t total_bytes(const std::vector<SharedTensor>& tensors) {
  std::uint64_t total = 0;
  for (const SharedTensor& tensor : tensors) total += tensor->bytes();
  return total;
}

}  // namespace

void write_onnx(const Graph& graph, const std::filesystem::path& path,
                const ExportOptions& options) {
  write_onnx(graph, entry_of(path), options);
}

void write_onnx(const Graph& graph, const FolderEntry& entry, const ExportOptions& options) {
  GraphWriter graph_writer(graph, options);
  pb::ModelProto model = graph_writer.model();
  const std::vector<SharedTensor>& tensors = graph_writer.tensors();
  ModelWriter writer(entry, options.weights, total_bytes(tensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    writer.put(*model.mutable_graph()->mutable_initializer(static_cast<int>(i)), *tensors[i]);
  }
  writer.finish(model);
}

std::string onnx_bytes(const Graph& graph, const ExportOptions& options) {
  CHECK_INVARIANT(options.weights != Weights::kExternal);
  GraphWriter graph_writer(graph, options);
  pb::ModelProto model = graph_writer.model();
  const std::vector<SharedTensor>& tensors = graph_writer.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    set_raw_data(*model.mutable_graph()->mutable_initializer(static_cast<int>(i)), *tensors[i]);
  }
  return model.SerializeAsString();
}

}  // namespace trainscope
