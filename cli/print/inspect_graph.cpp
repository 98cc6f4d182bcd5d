// `inspect --stage` and `--node`: a graph and one node of it.
#include <fmt/format.h>

#include <unordered_set>

#include "cli/print/inspect.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

Json serial_fact(Serial serial) { return static_cast<std::int32_t>(serial); }

Json value_facts(const Graph& graph, ValueId id) {
  if (id == kNoValue) return nullptr;
  const Value& value = graph.value(id);
  Json json = Json::object({{"name", value.name},
                            {"serial", serial_fact(value.serial)},
                            {"kind", name_of(value.kind)},
                            {"dtype", name_of(value.type.dtype)},
                            {"shape", Json::list(value.type.shape.span())},
                            {"bytes", value.type.bytes()}});
  if (value.producer != kNoNode) json.set("producer", graph.node(value.producer).name);
  Json readers = Json::array();
  for (const Use& use : value.uses) readers.push_back(graph.node(use.node).name);
  json.set("readers", std::move(readers));
  if (value.gradient_of.empty()) return json;
  Json of = Json::array();
  for (Serial serial : value.gradient_of) of.push_back(serial_fact(serial));
  json.set("gradient_of", std::move(of));
  return json;
}

Json names(const Graph& graph, const std::vector<ValueId>& values) {
  Json list = Json::array();
  for (ValueId id : values) list.push_back(id == kNoValue ? Json() : Json(graph.value(id).name));
  return list;
}

Json node_facts(const Graph& graph, const Node& node, std::size_t position) {
  Json json = Json::object({{"position", position},
                            {"name", node.name},
                            {"serial", serial_fact(node.serial)},
                            {"op", node.op->name},
                            {"domain", node.op->domain},
                            {"op_class", name_of(node.op->op_class)},
                            {"phase", name_of(node.phase)},
                            {"inputs", names(graph, node.inputs)},
                            {"outputs", names(graph, node.outputs)},
                            {"attributes", attributes_text(node.attributes)},
                            {"pass", node.provenance.pass},
                            {"sources", Json::list(node.provenance.sources)}});
  const Serial of = node.provenance.backward_of;
  if (of != kNoSerial) json.set("backward_of", serial_fact(of));
  const Serial first = node.provenance.rematerialized_of;
  if (first != kNoSerial) json.set("rematerialized_of", serial_fact(first));
  return json;
}

// The node and the values whose gradient a node makes, as far as they are still there.
std::string gradient_text(const Graph& graph, const Node& node) {
  std::vector<std::string> of;
  std::unordered_set<Serial> wanted;
  for (ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    const Serials& serials = graph.value(v).gradient_of;
    wanted.insert(serials.begin(), serials.end());
  }
  for (NodeId id : graph.order()) {
    const Node& other = graph.node(id);
    if (other.serial == node.provenance.backward_of) of.push_back("node " + printable(other.name));
  }
  for (ValueId id : graph.live_values()) {
    const Value& value = graph.value(id);
    if (wanted.contains(value.serial)) of.push_back("value " + printable(value.name));
  }
  return of.empty() ? "" : fmt::format("gradient of {}\n", join(of, ", "));
}

struct FoundNode {
  NodeId id = kNoNode;
  std::size_t position = 0;
};

FoundNode find_node(const Graph& graph, const std::string& which) {
  const std::vector<NodeId> order = graph.order();
  const std::optional<std::int64_t> number = parse_int(which);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = graph.node(order[i]).name;
    if (name == which) return {.id = order[i], .position = i};
    names.push_back(name);
  }
  if (number && *number >= 0 && static_cast<std::size_t>(*number) < order.size()) {
    const auto position = static_cast<std::size_t>(*number);
    return {.id = order[position], .position = position};
  }
  throw Error(ErrorCode::kUsage, fmt::format("the graph has no node '{}'", printable(which)))
      .hint(nearest_hint(which, names))
      .hint(fmt::format("give a name, or a number from 0 to {}",
                        order.empty() ? 0 : order.size() - 1));
}

std::string value_row(const Graph& graph, std::string_view role, ValueId id) {
  if (id == kNoValue) return fmt::format("{}  left out\n", role);
  const Value& value = graph.value(id);
  std::string text = fmt::format("{}  {} {}, {}", role, printable(value.name),
                                 type_text(value.type), name_of(value.kind));
  if (value.producer != kNoNode) {
    text += fmt::format(" {}", printable(graph.node(value.producer).name));
  }
  std::vector<std::string> readers;
  for (const Use& use : value.uses) readers.push_back(printable(graph.node(use.node).name));
  if (!readers.empty()) text += fmt::format("; read by {}", join(readers, ", "));
  return text + "\n";
}

}  // namespace

Outcome describe_graph(const Graph& graph) {
  Json nodes = Json::array();
  std::size_t position = 0;
  for (NodeId id : graph.order()) nodes.push_back(node_facts(graph, graph.node(id), position++));
  return {.facts = Json::object({{"nodes", std::move(nodes)}}), .text = print(graph)};
}

Outcome describe_node(const Graph& graph, const std::string& which) {
  const FoundNode found = find_node(graph, which);
  const Node& node = graph.node(found.id);
  const NodeArgs args(graph, node);
  const Cost cost = cost_of(*node.op, *args);
  Outcome outcome{.facts = node_facts(graph, node, found.position)};
  Json inputs = Json::array();
  Json outputs = Json::array();
  outcome.text = fmt::format("{} {} '{}' ({}, {})\n", found.position, node.op->name,
                             printable(node.name), name_of(node.op->op_class), name_of(node.phase));
  const std::string attributes = attributes_text(node.attributes);
  if (!attributes.empty()) outcome.text += fmt::format("attributes  {}\n", attributes);
  for (ValueId id : node.inputs) {
    inputs.push_back(value_facts(graph, id));
    outcome.text += value_row(graph, "input     ", id);
  }
  for (ValueId id : node.outputs) {
    outputs.push_back(value_facts(graph, id));
    outcome.text += value_row(graph, "output    ", id);
  }
  outcome.text +=
      fmt::format("cost        {} FLOPs, {} bytes read, {} bytes written\nmade by     {} from {}\n",
                  cost.flops, cost.bytes_read, cost.bytes_written, printable(node.provenance.pass),
                  printable(join(node.provenance.sources, ", "), 400));
  outcome.text += gradient_text(graph, node);
  outcome.facts.set("inputs", std::move(inputs));
  outcome.facts.set("outputs", std::move(outputs));
  outcome.facts.set("flops", cost.flops);
  outcome.facts.set("bytes_read", cost.bytes_read);
  outcome.facts.set("bytes_written", cost.bytes_written);
  return outcome;
}

}  // namespace trainscope
