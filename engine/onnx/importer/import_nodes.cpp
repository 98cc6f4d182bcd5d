// The nodes of a model, one by one: constants, functions, conversions, rows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/well_known.h"
#include "engine/onnx/adapters/adapters.h"
#include "engine/onnx/attributes.h"
#include "engine/onnx/composites/composites.h"
#include "engine/onnx/float_type.h"
#include "engine/onnx/importer/functions.h"
#include "engine/onnx/importer/importer.h"
#include "engine/onnx/node_names.h"
#include "engine/onnx/validate.h"
#include "engine/ops/pointwise/constant.h"

namespace trainscope {
namespace {

// Bodies that call bodies may double at each level: the end of it, for the whole model. Names grow
// with the depth and tensors in attributes are copied, so their bytes are counted too.
constexpr std::size_t kMaxExpandedNodes = 500'000;
constexpr std::size_t kMaxExpandedBytes = std::size_t{256} << 20;

bool is_constant(const SourceNode& node) { return node.domain.empty() && node.op == "Constant"; }

void trim_trailing(std::vector<std::string>& names) {
  while (!names.empty() && names.back().empty()) names.pop_back();
}

std::string label(const SourceNode& node) {
  return fmt::format("node '{}' ({} of opset {})", printable(node.source), printable(node.op),
                     node.opset);
}

std::size_t expanded_size(const Attribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute)) return text->size();
  if (const auto* integers = std::get_if<Ints>(&attribute)) return integers->size() * 8;
  if (const auto* numbers = std::get_if<Floats>(&attribute)) return numbers->size() * 8;
  const auto* tensor = std::get_if<SharedTensor>(&attribute);
  return tensor == nullptr ? 0 : (*tensor)->bytes();
}

std::size_t expanded_size(const SourceNode& node) {
  std::size_t bytes = node.name.size() + node.source.size();
  for (const std::string& input : node.inputs) bytes += input.size();
  for (const std::string& output : node.outputs) bytes += output.size();
  for (const auto& [name, value] : node.attributes.map())
    bytes += name.size() + expanded_size(value);
  return bytes;
}

bool has_attribute(const OpDef& op, std::string_view name) {
  return std::ranges::any_of(op.attributes,
                             [name](const AttributeSpec& spec) { return spec.name == name; });
}

// Of older stage files: attributes get the names that they have now.
void take_current_names(SourceNode& node, const OpDef& op) {
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.formerly.empty()) continue;
    const auto older = node.attributes.map().find(spec.formerly);
    if (older == node.attributes.map().end()) continue;
    Attribute value = older->second;
    node.attributes.erase(spec.formerly);
    node.attributes.set(std::string(spec.name), std::move(value));
  }
}

void check_known_attributes(const SourceNode& node, const OpDef& op) {
  for (const auto& [name, value] : node.attributes.map()) {
    if (has_attribute(op, name)) continue;
    fail_unsupported("{}: attribute '{}' is not supported", label(node), printable(name));
  }
}

}  // namespace

void Importer::add_nodes() {
  NodeNames names(proto_);
  for (int i = 0; i < proto_.node_size(); ++i) {
    SourceNode node = source_node(proto_.node(i), names.take(proto_.node(i), i));
    provenance_ = {.sources = {prefix_ + node.name}, .pass = kImportPass};
    if (!is_stage_) {
      add_with_stops(std::move(node));
      continue;
    }
    const NodeNote note = apply_note(proto_.node(i), node);
    const std::string name = node.name;
    add_source_node(std::move(node));
    keep_serials(name, note);
  }
  check_user_gradients();
}

void Importer::keep_serials(const std::string& node, const NodeNote& note) {
  const NodeId id = graph_.find_node(node);
  if (id == kNoNode || note.serial == kNoSerial) return;
  stage_serials_.add(id, note.serial);
  const std::vector<ValueId>& outputs = graph_.node(id).outputs;
  for (std::size_t i = 0; i < std::min(outputs.size(), note.output_serials.size()); ++i) {
    if (outputs[i] != kNoValue) stage_serials_.add(outputs[i], note.output_serials[i]);
  }
}

SourceNode Importer::source_node(const pb::NodeProto& node, const std::string& name) {
  SourceNode source{.op = node.op_type(),
                    .domain = std::string(plain_domain(node.domain())),
                    .opset = 0,
                    .name = name,
                    .source = name,
                    .inputs = {node.input().begin(), node.input().end()},
                    .outputs = {node.output().begin(), node.output().end()},
                    .attributes = {},
                    .depth = 0,
                    .proto = &node};
  source.opset = model_.facts.opsets.find(source.domain)->second;
  if (node.attribute_size() > 0) {
    source.attributes = read_attributes(node, label(source), model_.external_files());
  }
  for (const pb::AttributeProto& a : node.attribute()) {
    if (!is_stage_ || a.type() != pb::AttributeProto::GRAPH) continue;
    Importer body(*this, a.g(), source);
    source.attributes.set(a.name(), std::make_shared<const Graph>(body.stage_body()));
  }
  return source;
}

NodeNote Importer::apply_note(const pb::NodeProto& node, SourceNode& source) {
  try {
    NodeNote note = read_node_note(node.doc_string());
    builder_.set_phase(note.phase);
    provenance_ = note.provenance;
    for (const auto& [name, value] : note.exact) source.attributes.set(name, value);
    return note;
  } catch (Error& error) {
    error.at(fmt::format("doc_string of {}", label(source)));
    throw;
  }
}

// Rewrites the node until nodes with a row, in the form that the row speaks, are left.
void Importer::add_source_node(SourceNode node) {
  std::vector<SourceNode> waiting;
  waiting.push_back(std::move(node));
  while (!waiting.empty()) {
    SourceNode next = std::move(waiting.back());
    waiting.pop_back();
    trim_trailing(next.inputs);
    trim_trailing(next.outputs);
    if (is_constant(next)) {
      add_constant(next);
      continue;
    }
    if (std::optional<SourceNode> gradient = take_user_gradient(next)) {
      waiting.push_back(std::move(*gradient));
    }
    if (add_control_flow(next) || composed(next)) continue;
    std::optional<std::vector<SourceNode>> of_sequences;
    if (!is_stage_) of_sequences = sequences_.convert(scope_, next);
    std::vector<SourceNode> nodes = of_sequences ? std::move(*of_sequences) : rewritten(next);
    if (nodes.empty() && !of_sequences) {
      take_torch_form(next);
      const OpDef* op = ops_.find(next.op, next.domain);
      if (op == nullptr) fail_unsupported("{}: there is no such op", label(next));
      build(std::move(next), *op);
    }
    for (const SourceNode& each : nodes) count_expanded(each);
    std::move(nodes.rbegin(), nodes.rend(), std::back_inserter(waiting));
  }
}

void Importer::count_expanded(const SourceNode& node) {
  if (node.depth == 0) return;
  const auto check_length = [&node](const std::string& name) {
    require(name.size() <= kMaxNameBytes, ErrorCode::kBadInput,
            "{}: function bodies expand to a name longer than {}: '{}'", label(node),
            human_bytes(kMaxNameBytes), printable(name));
  };
  check_length(node.name);
  for (const std::string& output : node.outputs) check_length(output);
  ++expanded_nodes_;
  expanded_bytes_ += expanded_size(node);
  require(expanded_nodes_ <= kMaxExpandedNodes, ErrorCode::kBadInput,
          "{}: function bodies expand to more than {} nodes", label(node), kMaxExpandedNodes);
  require(expanded_bytes_ <= kMaxExpandedBytes, ErrorCode::kBadInput,
          "{}: function bodies expand to names and attributes of more than {}", label(node),
          human_bytes(kMaxExpandedBytes));
}

// Whether the node is there now, written with other ops.
bool Importer::composed(const SourceNode& node) {
  if (is_stage_ || has_model_function(model_, node.domain, node.op)) return false;
  const CompositeOp* op = find_composite(node.domain, node.op, node.opset);
  if (op == nullptr) return false;
  Composition composition({.graph = graph_,
                           .builder = builder_,
                           .scope = scope_,
                           .provenance = provenance_,
                           .shared = shared_constants_},
                          node);
  const bool has_row = ops_.find(node.op, node.domain) != nullptr;
  if (op->applies == nullptr ? has_row : !op->applies(composition)) return false;
  compose(*op, composition);
  return true;
}

// PyTorch's running variances are of the sample, ONNX's of the population, and no attribute tells.
void Importer::take_torch_form(SourceNode& node) const {
  if (is_stage_ || model_.proto.producer_name() != "pytorch") return;
  if (node.op != "BatchNormalization" || !node.domain.empty()) return;
  if (node.outputs.size() > 3) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: has {} outputs, of which opset {} knows 3: so the older exporter "
                            "writes an instance norm with track_running_stats",
                            label(node), node.outputs.size(), node.opset))
        .hint("export it with dynamo=True, or without track_running_stats");
  }
  node.op = "SampleBatchNormalization";
  node.domain = kTrainscopeDomain;
}

// What stands in for the node; nothing when it can be built as it is.
std::vector<SourceNode> Importer::rewritten(const SourceNode& node) {
  if (has_model_function(model_, node.domain, node.op)) {
    return expand_model_function(model_, scope_, node);
  }
  AdapterChoice choice;
  if (node.domain.empty()) choice = adapter_for(node.op, node.opset);
  if (ops_.find(node.op, node.domain) == nullptr && !is_replaced(choice)) {
    if (!has_standard_function(node.domain, node.op, node.opset)) return {};
    return expand_standard_function(model_, scope_, node);
  }
  if (choice.adaptation == Adaptation::kUnknown) {
    fail_unsupported("{}: no conversion from this opset is known", label(node));
  }
  if (choice.adaptation == Adaptation::kAsIs) return {};
  std::vector<SourceNode> newer = choice.row->convert(scope_, node);
  for (SourceNode& each : newer) each.may_have_gradient = false;
  return newer;
}

void Importer::add_constant(const SourceNode& node) {
  require(node.outputs.size() == 1 && node.inputs.empty(), ErrorCode::kBadInput,
          "{}: a constant has one output and no inputs", label(node));
  Tensor tensor;
  try {
    tensor = constant_value(node.attributes);
  } catch (Error& error) {
    error.at(label(node));
    throw;
  }
  DType dtype = dtype_of(tensor.dtype());
  if (dtype != tensor.dtype()) tensor = convert(tensor, dtype);
  Value value;
  value.name = node.outputs.front();
  value.type = tensor.type();
  value.kind = ValueKind::kConstant;
  value.data = std::make_shared<const Tensor>(std::move(tensor));
  graph_.add_value(std::move(value));
}

void Importer::build(SourceNode node, const OpDef& op) {
  if (options_.float_type == DType::kF64) upcast_floats(node);
  if (is_stage_) take_current_names(node, op);
  check_known_attributes(node, op);
  Builder::Spec spec;
  spec.op = &op;
  spec.name = node.name;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    spec.inputs.push_back(node.inputs[i].empty() ? kNoValue : scope_.value(node, i));
  }
  spec.output_names = std::move(node.outputs);
  spec.attributes = std::move(node.attributes);
  spec.provenance = provenance_;
  builder_.add(std::move(spec));
}

}  // namespace trainscope
