// The printed form of a graph: one stable line per value and node, bodies indented behind their
// node, and its hash.
#include <fmt/format.h>

#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

// Whole names, so that the hash tells long ones apart.
std::string shown(std::string_view name) { return printable(name, std::size_t{1} << 20); }

std::string names_text(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId v : values) {
    if (!text.empty()) text += ", ";
    text += v == kNoValue ? "-" : shown(graph.value(v).name);
  }
  return text;
}

std::string outputs_text(const Graph& graph, const Node& node) {
  std::string text;
  for (ValueId v : node.outputs) {
    if (!text.empty()) text += ", ";
    text += v == kNoValue ? "-" : shown(graph.value(v).name) + " " + type_text(graph.value(v).type);
  }
  return text;
}

std::string node_line(const Graph& graph, const Node& node) {
  std::string_view mark = node.phase == Phase::kForward    ? ""
                          : node.phase == Phase::kBackward ? "backward "
                                                           : "update ";
  std::string attributes = attributes_text(node.attributes);
  return fmt::format("{}{} = {}{}({}){}{}\n", mark, outputs_text(graph, node),
                     node.op->domain.empty() ? "" : "ts.", node.op->name,
                     names_text(graph, node.inputs), attributes.empty() ? "" : " ", attributes);
}

std::string value_line(const Value& value) {
  std::string text =
      fmt::format("{} {} {}", name_of(value.kind), shown(value.name), type_text(value.type));
  bool integers = value.data && value.kind == ValueKind::kConstant &&
                  (value.type.dtype == DType::kI64 || value.type.dtype == DType::kI32);
  if (integers && value.type.elements() <= 8) {
    text += fmt::format(" {{{}}}", fmt::join(as_ints(*value.data), ","));
  } else if (value.data && value.kind == ValueKind::kConstant && value.type.elements() == 1) {
    text += fmt::format(" {{{}}}", convert(*value.data, DType::kF64).values<double>()[0]);
  }
  return text + "\n";
}

// The bodies of a node, each of its lines behind "  ".
std::string bodies_text(const Node& node) {
  std::string text;
  for (const auto& [name, attribute] : node.attributes.map()) {
    const auto* body = std::get_if<SharedGraph>(&attribute);
    if (body == nullptr || !*body) continue;
    const std::string lines = print(**body);
    for (std::string_view line : split(std::string_view(lines).substr(0, lines.size() - 1), '\n')) {
      text += fmt::format("  {}: {}\n", name, line);
    }
  }
  return text;
}

// `of_node` takes what is said of a node besides its own line.
template <typename Take, typename OfNode>
void for_each_line(const Graph& graph, Take take, OfNode of_node) {
  for (ValueId v : graph.inputs) take(value_line(graph.value(v)));
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState, ValueKind::kConstant}) {
    for (ValueId v : graph.values_of(kind)) take(value_line(graph.value(v)));
  }
  for (NodeId id = graph.first(); id != kNoNode; id = graph.node(id).next) {
    take(node_line(graph, graph.node(id)));
    of_node(graph.node(id));
  }
  for (ValueId v : graph.outputs) take("output " + shown(graph.value(v).name) + "\n");
  if (graph.loss != kNoValue) take("loss " + shown(graph.value(graph.loss).name) + "\n");
  for (const GradientOf& g : graph.gradients) {
    take(fmt::format("gradient {} = {}\n", shown(graph.value(g.of).name),
                     shown(graph.value(g.gradient).name)));
  }
  for (const Update& u : graph.updates) {
    take(fmt::format("next {} = {}\n", shown(graph.value(u.state).name),
                     shown(graph.value(u.value).name)));
  }
}

}  // namespace

std::string print(const Graph& graph) {
  std::string text;
  for_each_line(
      graph, [&text](const std::string& line) { text += line; },
      [&text](const Node& node) { text += bodies_text(node); });
  return text;
}

std::uint64_t hash_of(const Graph& graph) {
  Hasher hasher;  // line by line: the text of a large graph is as long as the graph
  for_each_line(
      graph,
      [&hasher](const std::string& line) {
        hasher.bytes(std::as_bytes(std::span(line.data(), line.size())));
      },
      [](const Node&) {});  // a node's own line has the hashes of its bodies
  return hasher.digest();
}

}  // namespace trainscope
