// What adapters have in common: attributes that become inputs, reshapes around a node.
#include "engine/onnx/adapters/adapter_tools.h"

#include <fmt/format.h>

#include "engine/core/text.h"

namespace trainscope {

bool has_input(const SourceNode& node, std::size_t input) {
  return input < node.inputs.size() && !node.inputs[input].empty();
}

void set_input(SourceNode& node, std::size_t input, std::string name) {
  if (node.inputs.size() <= input) node.inputs.resize(input + 1);
  node.inputs[input] = std::move(name);
}

void ints_to_input(ImportScope& scope, SourceNode& node, std::string_view name, std::size_t input) {
  if (!node.attributes.has(name)) return;
  Ints values = node.attributes.integers(name);
  node.attributes.erase(name);
  set_input(node, input, scope.ints(values, fmt::format("{}/{}", node.name, name)));
}

void number_to_input(ImportScope& scope, SourceNode& node, std::string_view name,
                     std::size_t input) {
  if (!node.attributes.has(name)) return;
  double number = node.attributes.number(name, 0);
  node.attributes.erase(name);
  Tensor tensor = convert(Tensor::scalar(number), scope.type(node, 0).dtype);
  set_input(node, input, scope.constant(std::move(tensor), fmt::format("{}/{}", node.name, name)));
}

SourceNode reshape_node(ImportScope& scope, const SourceNode& node, const ReshapeSpec& spec) {
  std::string name = fmt::format("{}/{}", node.name, spec.suffix);
  return {.op = "Reshape",
          .domain = {},
          .opset = 14,
          .name = name,
          .source = node.source,
          .inputs = {spec.from, scope.ints(spec.dims, name + "_shape")},
          .outputs = {spec.to},
          .attributes = {{"allowzero", std::int64_t{1}}},
          .depth = node.depth};
}

std::string Rewritten::add(std::string_view op, std::vector<std::string> inputs,
                           std::string_view label, Attributes attributes) {
  const std::string name = fmt::format("{}/{}", from_.name, label);
  std::string output = scope_.fresh(name);
  nodes_.push_back({.op = std::string(op),
                    .domain = {},
                    .opset = 17,
                    .name = name,
                    .source = from_.source,
                    .inputs = std::move(inputs),
                    .outputs = {output},
                    .attributes = std::move(attributes),
                    .depth = from_.depth});
  return output;
}

std::string Rewritten::ints(const Ints& values, std::string_view label) {
  return scope_.ints(values, fmt::format("{}/{}", from_.name, label));
}

SourceNodes Rewritten::take(SourceNode last) {
  nodes_.push_back(std::move(last));
  return std::move(nodes_);
}

std::string adapted_label(const SourceNode& node) {
  return fmt::format("node '{}' ({} of opset {})", printable(node.source), printable(node.op),
                     node.opset);
}

}  // namespace trainscope
