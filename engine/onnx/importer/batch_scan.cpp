// Scan of opset 8, which runs for each example of a batch: a Scan over the batch, with a Scan over
// the steps in its body, as opset 9 has them.
#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/onnx/adapters/adapter_tools.h"
#include "engine/onnx/importer/importer.h"

namespace trainscope {
namespace {

// Opset 8 has no such attribute: the Scan over the steps is told by it.
constexpr std::string_view kAxes = "scan_input_axes";

pb::AttributeProto& add_attribute(pb::NodeProto& node, std::string_view name,
                                  pb::AttributeProto::AttributeType type) {
  pb::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(type);
  return attribute;
}

void add_integers(pb::NodeProto& node, std::string_view name, const Ints& values) {
  pb::AttributeProto& attribute = add_attribute(node, name, pb::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

}  // namespace

bool Importer::is_scan_of_batch(const SourceNode& node) {
  return node.op == "Scan" && node.opset < 9 && !node.attributes.has(kAxes);
}

void Importer::add_scan_of_batch(const SourceNode& node) {
  require_supported(!has_input(node, 0), "{}: lengths of sequences are not supported",
                    adapted_label(node));
  require(node.proto != nullptr && node.inputs.size() > 1, ErrorCode::kBadInput,
          "{}: it has no graph, or no inputs", adapted_label(node));
  const std::int64_t scanned = node.attributes.integer("num_scan_inputs", 0);
  pb::NodeProto steps;
  steps.set_op_type("Scan");
  steps.set_name("steps");
  int outputs = 0;
  for (const pb::AttributeProto& attribute : node.proto->attribute()) {
    if (attribute.name() != "body") continue;
    *steps.add_attribute() = attribute;
    outputs = attribute.g().output_size();
  }
  add_attribute(steps, "num_scan_inputs", pb::AttributeProto::INT).set_i(scanned);
  require(scanned > 0 && static_cast<std::size_t>(scanned) < node.inputs.size(),
          ErrorCode::kBadInput, "{}: num_scan_inputs is {}, it has {} inputs", adapted_label(node),
          scanned, node.inputs.size() - 1);
  add_integers(steps, kAxes, Ints(static_cast<std::size_t>(scanned), 0));
  const Ints directions = node.attributes.integers("directions");
  if (!directions.empty()) add_integers(steps, "scan_input_directions", directions);

  pb::NodeProto examples;
  pb::GraphProto& body = *add_attribute(examples, "body", pb::AttributeProto::GRAPH).mutable_g();
  body.set_name("example");
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const std::string name = scope_.fresh(fmt::format("{}/given_{}", node.name, i));
    body.add_input()->set_name(name);
    steps.add_input(name);
  }
  for (int i = 0; i < outputs; ++i) {
    const std::string name = scope_.fresh(fmt::format("{}/made_{}", node.name, i));
    body.add_output()->set_name(name);
    steps.add_output(name);
  }
  *body.add_node() = std::move(steps);

  SourceNode over_batch = node;
  over_batch.opset = 9;
  over_batch.proto = &examples;
  over_batch.inputs.erase(over_batch.inputs.begin());
  over_batch.attributes = Attributes();
  over_batch.attributes.set("num_scan_inputs", std::ssize(over_batch.inputs));
  add_control_flow(over_batch);
}

}  // namespace trainscope
