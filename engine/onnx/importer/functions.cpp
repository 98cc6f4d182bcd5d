// Expands nodes into the bodies of their functions.
#include "engine/onnx/importer/functions.h"

#include <fmt/format.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/attributes.h"

namespace trainscope {
namespace {

constexpr int kMaxDepth = 32;
constexpr int kNewestLibraryOpset = 17;  // the packaged schemas end here

const pb::FunctionProto* find_function(const OnnxModel::Impl& model, std::string_view domain,
                                       std::string_view op) {
  auto found = model.functions.find(std::pair(domain, op));
  return found == model.functions.end() ? nullptr : found->second;
}

const pb::OpSchema* find_schema(std::string_view domain, std::string_view op, int opset) {
  if (!domain.empty() || opset > kNewestLibraryOpset) return nullptr;
  return pb::OpSchemaRegistry::Schema(std::string(op), opset);
}

// The body's names in terms of the caller's graph.
class Renaming {
 public:
  Renaming(const pb::FunctionProto& function, const SourceNode& call, ImportScope& scope)
      : prefix_(call.name), scope_(scope) {
    for (int i = 0; i < function.input_size(); ++i) {
      names_[function.input(i)] = at_or_empty(call.inputs, i);
    }
    for (int i = 0; i < function.output_size(); ++i) {
      std::string outer = at_or_empty(call.outputs, i);
      if (names_.contains(function.output(i))) {
        if (!outer.empty()) passed_through_.emplace_back(names_[function.output(i)], outer);
      } else if (!outer.empty()) {
        names_[function.output(i)] = outer;
      }
    }
  }

  std::string operator()(const std::string& inner) {
    if (inner.empty()) return {};
    auto found = names_.find(inner);
    if (found != names_.end()) return found->second;
    return names_[inner] = scope_.fresh(fmt::format("{}/{}", prefix_, inner));
  }

  // Outputs of the function that are its inputs: (input, output) in the caller's names.
  const std::vector<std::pair<std::string, std::string>>& passed_through() const {
    return passed_through_;
  }

 private:
  static std::string at_or_empty(const std::vector<std::string>& list, int i) {
    auto index = static_cast<std::size_t>(i);
    return index < list.size() ? list[index] : std::string();
  }

  std::string prefix_;
  ImportScope& scope_;
  std::map<std::string, std::string> names_;
  std::vector<std::pair<std::string, std::string>> passed_through_;
};

int opset_in(const pb::FunctionProto& function, std::string_view domain, int otherwise) {
  for (const auto& import : function.opset_import()) {
    if (plain_domain(import.domain()) == domain) return static_cast<int>(import.version());
  }
  return otherwise;
}

SourceNode source_node(const pb::NodeProto& node, const SourceNode& call,
                       const OnnxModel::Impl& model) {
  SourceNode result;
  result.op = node.op_type();
  result.domain = plain_domain(node.domain());
  result.source = call.source;
  result.depth = call.depth + 1;
  std::string where = fmt::format("node '{}' ({}), in its body {}", printable(call.source),
                                  printable(call.op), printable(node.op_type()));
  result.attributes = read_attributes(node, where, model.external_files());
  for (const pb::AttributeProto& a : node.attribute()) {
    if (a.ref_attr_name().empty()) continue;
    auto given = call.attributes.map().find(a.ref_attr_name());
    if (given != call.attributes.map().end()) result.attributes.set(a.name(), given->second);
  }
  return result;
}

std::string label(const SourceNode& call) {
  return fmt::format("node '{}' ({})", printable(call.source), printable(call.op));
}

// Fewer inputs and outputs than the function has are left out; more have no meaning.
void check_call(const pb::FunctionProto& function, const SourceNode& call) {
  require(call.depth < kMaxDepth, ErrorCode::kBadInput, "{}: function bodies nest deeper than {}",
          label(call), kMaxDepth);
  require(std::ssize(call.inputs) <= function.input_size(), ErrorCode::kBadInput,
          "{}: {} inputs given, the function has {}", label(call), call.inputs.size(),
          function.input_size());
  require(std::ssize(call.outputs) <= function.output_size(), ErrorCode::kBadInput,
          "{}: {} outputs asked for, the function has {}", label(call), call.outputs.size(),
          function.output_size());
}

// A misspelled attribute would silently not be set.
void check_given_attributes(const pb::FunctionProto& function, const SourceNode& call) {
  for (const auto& [name, value] : call.attributes.map()) {
    require(std::ranges::find(function.attribute(), name) != function.attribute().end(),
            ErrorCode::kBadInput, "{}: the function has no attribute '{}'", label(call),
            printable(name));
  }
}

std::vector<SourceNode> expand(const pb::FunctionProto& function, const SourceNode& call,
                               ImportScope& scope, const OnnxModel::Impl& model) {
  check_call(function, call);
  Renaming rename(function, call, scope);
  std::vector<SourceNode> nodes;
  for (const pb::NodeProto& inner : function.node()) {
    SourceNode node = source_node(inner, call, model);
    node.opset = opset_in(function, node.domain, call.opset);
    node.name = fmt::format("{}/{}_{}", call.name, node.op, nodes.size());
    for (const std::string& input : inner.input()) node.inputs.push_back(rename(input));
    for (const std::string& output : inner.output()) node.outputs.push_back(rename(output));
    nodes.push_back(std::move(node));
  }
  for (const auto& [input, output] : rename.passed_through()) {
    nodes.push_back({.op = "Identity",
                     .domain = {},
                     .opset = kNewestLibraryOpset,
                     .name = fmt::format("{}/Identity_{}", call.name, nodes.size()),
                     .source = call.source,
                     .inputs = {input},
                     .outputs = {output},
                     .attributes = {},
                     .depth = call.depth + 1});
  }
  return nodes;
}

pb::NodeProto node_proto(const SourceNode& call) {
  pb::NodeProto node;
  node.set_op_type(call.op);
  for (const std::string& input : call.inputs) node.add_input(input);
  for (const std::string& output : call.outputs) node.add_output(output);
  for (const auto& [name, value] : call.attributes.map()) {
    *node.add_attribute() = attribute_proto(name, value);
  }
  return node;
}

std::vector<pb::TypeProto> input_types(const SourceNode& call, const ImportScope& scope) {
  std::vector<pb::TypeProto> types(call.inputs.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (call.inputs[i].empty()) continue;
    TensorType type = scope.type(call, i);
    pb::TypeProto::Tensor& tensor = *types[i].mutable_tensor_type();
    tensor.set_elem_type(onnx_type_of(type.dtype));
    for (std::int64_t dim : type.shape.span()) {
      tensor.mutable_shape()->add_dim()->set_dim_value(dim);
    }
  }
  return types;
}

// Calls f, which may throw what the library likes to.
template <typename F>
void with_library(const SourceNode& call, F f) {
  try {
    f();
  } catch (const std::exception& error) {
    fail(ErrorCode::kBadInput, "{}: {}", label(call), printable(error.what()));
  }
}

// Bodies are made for nodes with the inputs, outputs and attributes that the schema tells of; what
// others lead to inside the library, nobody promises.
void check_schema(const pb::OpSchema& schema, const SourceNode& call) {
  const pb::NodeProto node = node_proto(call);
  with_library(call, [&] { schema.Verify(node); });
}

std::optional<pb::FunctionProto> body_for_types(const pb::OpSchema& schema, const SourceNode& call,
                                                const ImportScope& scope) {
  // The context points into the node that it is made from.
  const pb::NodeProto node = node_proto(call);
  const std::vector<pb::TypeProto> types = input_types(call, scope);
  pb::FunctionProto function;
  bool built = false;
  with_library(call, [&] {
    const pb::FunctionBodyBuildContextImpl context(node, types);
    built = schema.BuildContextDependentFunction(context, function);
  });
  if (!built) return std::nullopt;
  return function;
}

void add_defaults(const pb::OpSchema& schema, SourceNode& call, const OnnxModel::Impl& model) {
  pb::NodeProto defaults;
  for (const auto& [name, attribute] : schema.attributes()) {
    bool has_default = attribute.default_value.type() != pb::AttributeProto::UNDEFINED;
    if (!has_default || call.attributes.has(name)) continue;
    *defaults.add_attribute() = attribute.default_value;
    defaults.mutable_attribute()->rbegin()->set_name(name);
  }
  Attributes read = read_attributes(defaults, call.op, model.external_files());
  for (const auto& [name, value] : read.map()) call.attributes.set(name, value);
}

}  // namespace

bool has_model_function(const OnnxModel::Impl& model, std::string_view domain,
                        std::string_view op) {
  return find_function(model, domain, op) != nullptr;
}

bool has_standard_function(std::string_view domain, std::string_view op, int opset) {
  const pb::OpSchema* schema = find_schema(domain, op, opset);
  return schema != nullptr && (schema->HasFunction() || schema->HasContextDependentFunction());
}

std::vector<BodyOp> body_ops(const OnnxModel::Impl& model, const BodyOp& call) {
  const pb::FunctionProto* function = find_function(model, call.domain, call.op);
  if (function == nullptr) {
    const pb::OpSchema* schema = find_schema(call.domain, call.op, call.opset);
    if (schema == nullptr || !schema->HasFunction()) return {};
    function = schema->GetFunction();
  }
  std::vector<BodyOp> ops;
  for (const pb::NodeProto& node : function->node()) {
    std::string domain(plain_domain(node.domain()));
    int opset = opset_in(*function, domain, call.opset);
    ops.push_back({.domain = std::move(domain), .op = node.op_type(), .opset = opset});
  }
  return ops;
}

std::vector<SourceNode> expand_model_function(const OnnxModel::Impl& model, ImportScope& scope,
                                              const SourceNode& call) {
  const pb::FunctionProto* function = find_function(model, call.domain, call.op);
  CHECK_INVARIANT(function != nullptr);
  check_given_attributes(*function, call);
  return expand(*function, call, scope, model);
}

std::vector<SourceNode> expand_standard_function(const OnnxModel::Impl& model, ImportScope& scope,
                                                 const SourceNode& call) {
  const pb::OpSchema* schema = find_schema(call.domain, call.op, call.opset);
  CHECK_INVARIANT(schema != nullptr);
  SourceNode complete = call;
  add_defaults(*schema, complete, model);
  check_schema(*schema, complete);
  if (schema->HasFunction()) return expand(*schema->GetFunction(), complete, scope, model);
  std::optional<pb::FunctionProto> function = body_for_types(*schema, complete, scope);
  if (!function) return {};
  return expand(*function, complete, scope, model);
}

}  // namespace trainscope
