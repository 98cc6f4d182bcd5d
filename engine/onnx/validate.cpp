// Every rule that a model file must keep, but those of names and edges (files of their own).
#include "engine/onnx/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/attributes.h"

namespace trainscope {
namespace {

constexpr int kMaxNodes = 10'000'000;

using OpsetMap = std::map<std::string, int, std::less<>>;

void check_version(const pb::ModelProto& model) {
  require(model.ir_version() >= kOldestIrVersion, ErrorCode::kBadInput,
          "IR version {} is too old: {} to {} are supported", model.ir_version(), kOldestIrVersion,
          kNewestIrVersion);
}

template <typename Imports>
OpsetMap opsets_of(const Imports& imports, std::string_view what) {
  OpsetMap opsets;
  for (const pb::OperatorSetIdProto& import : imports) {
    std::string domain(plain_domain(import.domain()));
    if (!domain.empty()) check_name(domain, "operator set domain");
    int newest = domain.empty() ? kNewestOpset : domain == kTrainscopeDomain ? kTrainscopeOpset : 0;
    require(import.version() >= 1 && import.version() <= std::numeric_limits<int>::max(),
            ErrorCode::kBadInput, "{} imports opset {} of domain '{}'", what, import.version(),
            printable(domain));
    require(newest == 0 || import.version() <= newest, ErrorCode::kBadInput,
            "{} imports opset {} of domain '{}', the newest known one is {}", what,
            import.version(), printable(domain), newest);
    bool fresh = opsets.emplace(domain, static_cast<int>(import.version())).second;
    require(fresh, ErrorCode::kBadInput, "{} imports domain '{}' twice", what, printable(domain));
  }
  return opsets;
}

ModelDim read_dim(const pb::TensorShapeProto::Dimension& dim, std::string_view what) {
  if (dim.has_dim_value()) {
    require(dim.dim_value() >= 0, ErrorCode::kBadInput, "{}: has a negative dimension: {}", what,
            dim.dim_value());
    return {.size = dim.dim_value(), .symbol = {}};
  }
  if (!dim.dim_param().empty()) check_name(dim.dim_param(), fmt::format("{}: dimension", what));
  return {.size = {}, .symbol = dim.dim_param()};
}

ModelTensor read_value_info(const pb::ValueInfoProto& info, std::string_view role) {
  check_name(info.name(), role);
  std::string what = fmt::format("{} '{}'", role, printable(info.name()));
  require(info.has_type() && info.type().value_case() != pb::TypeProto::VALUE_NOT_SET,
          ErrorCode::kBadInput, "{}: has no type", what);
  require_supported(info.type().has_tensor_type(),
                    "{}: is a sequence, map, optional or sparse tensor; only tensors are supported",
                    what);
  const pb::TypeProto::Tensor& type = info.type().tensor_type();
  ModelTensor tensor{
      .name = info.name(), .dtype = dtype_of_onnx(type.elem_type(), what), .dims = {}};
  if (!type.has_shape()) return tensor;
  tensor.dims.emplace();
  Ints known;
  for (const auto& dim : type.shape().dim()) {
    tensor.dims->push_back(read_dim(dim, what));
    known.push_back(tensor.dims->back().size.value_or(1));
  }
  checked_type(tensor.dtype, known, what);
  return tensor;
}

void read_initializers(const pb::GraphProto& graph, ExternalFiles& files, ModelFacts& facts) {
  std::unordered_set<std::string_view> names;
  for (const pb::TensorProto& proto : graph.initializer()) {
    check_name(proto.name(), "initializer");
    std::string what = fmt::format("initializer '{}'", printable(proto.name()));
    require(names.insert(proto.name()).second, ErrorCode::kBadInput, "{} is given twice", what);
    facts.initializers.push_back({.name = proto.name(), .type = check_tensor(proto, what, files)});
  }
  if (graph.sparse_initializer_size() > 0) {
    fail_unsupported("initializer '{}': sparse tensors are not supported",
                     printable(graph.sparse_initializer(0).values().name()));
  }
}

// IR 3 lists every initializer among the inputs too; the two must agree.
void check_default(const ModelTensor& input, const TensorType& initializer) {
  bool same = input.dtype == initializer.dtype;
  if (same && input.dims) {
    same = static_cast<int>(input.dims->size()) == initializer.shape.rank;
    for (int i = 0; same && i < initializer.shape.rank; ++i) {
      const ModelDim& dim = (*input.dims)[static_cast<std::size_t>(i)];
      same = !dim.size || *dim.size == initializer.shape[i];
    }
  }
  require(same, ErrorCode::kBadInput,
          "input '{}' is declared with another type than the initializer of that name, {}",
          printable(input.name), type_text(initializer));
}

void read_ends(const pb::GraphProto& graph, ModelFacts& facts) {
  std::unordered_map<std::string_view, const TensorType*> initializers;
  for (const ModelInitializer& each : facts.initializers) {
    initializers.emplace(each.name, &each.type);
  }
  std::unordered_set<std::string_view> names;
  for (const pb::ValueInfoProto& info : graph.input()) {
    ModelTensor input = read_value_info(info, "input");
    require(names.insert(info.name()).second, ErrorCode::kBadInput, "input '{}' is given twice",
            printable(info.name()));
    auto initializer = initializers.find(info.name());
    if (initializer == initializers.end()) {
      facts.inputs.push_back(std::move(input));
    } else {
      check_default(input, *initializer->second);
    }
  }
  require(graph.output_size() > 0, ErrorCode::kBadInput, "the graph has no outputs");
  names.clear();
  for (const pb::ValueInfoProto& info : graph.output()) {
    facts.outputs.push_back(read_value_info(info, "output"));
    require(names.insert(info.name()).second, ErrorCode::kBadInput, "output '{}' is given twice",
            printable(info.name()));
  }
}

void check_node(const pb::NodeProto& node, const OpsetMap& opsets, const std::string& label) {
  if (!node.name().empty()) check_name(node.name(), "node");
  check_name(node.op_type(), label);
  bool any_output = false;
  for (const std::string& output : node.output()) {
    if (output.empty()) continue;
    check_name(output, label);
    any_output = true;
  }
  require(any_output, ErrorCode::kBadInput, "{}: has no outputs", label);
  if (!opsets.contains(plain_domain(node.domain()))) {
    fail(ErrorCode::kBadInput, "{}: is in domain '{}', of which the model imports no opset", label,
         printable(node.domain()));
  }
}

void check_nodes(const Nodes& nodes, const OpsetMap& opsets, ExternalFiles& files,
                 AttributeRefs refs) {
  require(nodes.size() <= kMaxNodes, ErrorCode::kBadInput,
          "the graph has {} nodes, at most {} are "
          "supported",
          nodes.size(), kMaxNodes);
  for (int i = 0; i < nodes.size(); ++i) {
    const std::string label = node_label(nodes[i], i);
    check_node(nodes[i], opsets, label);
    if (nodes[i].attribute_size() == 0) continue;
    check_attributes(nodes[i], label, files, refs);
    check_bodies(nodes[i], label, files,
                 [&](const Nodes& inner) { check_nodes(inner, opsets, files, refs); });
  }
}

void check_graph(const pb::GraphProto& graph, ExternalFiles& files, ModelFacts& facts) {
  if (!graph.name().empty()) check_name(graph.name(), "graph");
  read_initializers(graph, files, facts);
  read_ends(graph, facts);
  check_nodes(graph.node(), facts.opsets, files, AttributeRefs::kRefused);
  std::vector<std::string_view> given;
  for (const ModelTensor& input : facts.inputs) given.push_back(input.name);
  for (const ModelInitializer& each : facts.initializers) given.push_back(each.name);
  std::vector<std::string_view> results;
  for (const ModelTensor& output : facts.outputs) results.push_back(output.name);
  check_edges(graph.node(), given, results);
}

// Fields that newer versions of the format gave functions. The packaged library does not know them,
// but to leave them out would change what the function means.
void check_newer_fields(const pb::FunctionProto& function) {
  constexpr int kDefaults = 11;  // attribute_proto: attributes with default values
  constexpr int kOverload = 13;
  const google::protobuf::UnknownFieldSet& unknown = function.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    const int number = unknown.field(i).number();
    require_supported(number != kDefaults, "default values of attributes are not supported");
    require_supported(number != kOverload, "overloaded functions are not supported");
  }
}

void check_function(const pb::FunctionProto& function, ExternalFiles& files) {
  check_name(function.name(), "function");
  check_newer_fields(function);
  OpsetMap opsets = opsets_of(function.opset_import(), "the function");
  check_nodes(function.node(), opsets, files, AttributeRefs::kAllowed);
  std::vector<std::string_view> given;
  for (const std::string& input : function.input()) {
    check_name(input, "function input");
    given.push_back(input);
  }
  check_edges(function.node(), given, {function.output().begin(), function.output().end()});
}

void check_functions(const pb::ModelProto& model, ExternalFiles& files) {
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const pb::FunctionProto& function : model.functions()) {
    try {
      check_function(function, files);
      bool fresh = names.emplace(plain_domain(function.domain()), function.name()).second;
      require(fresh, ErrorCode::kBadInput, "the function is given twice");
    } catch (Error& error) {
      error.at(fmt::format("function '{}'", printable(function.name())));
      throw;
    }
  }
}

}  // namespace

std::string node_label(const pb::NodeProto& node, int index) {
  if (node.name().empty()) return fmt::format("node {} ({})", index, printable(node.op_type()));
  return fmt::format("node '{}' ({})", printable(node.name()), printable(node.op_type()));
}

std::string_view plain_domain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

ModelFacts validate_model(const pb::ModelProto& model, ExternalFiles& files) {
  check_version(model);
  check_name_lengths(model);
  ModelFacts facts;
  facts.opsets = opsets_of(model.opset_import(), "the model");
  require(!facts.opsets.empty(), ErrorCode::kBadInput, "the model imports no opset");
  require(model.has_graph(), ErrorCode::kBadInput, "the model has no graph");
  check_functions(model, files);
  check_graph(model.graph(), files, facts);
  return facts;
}

}  // namespace trainscope
