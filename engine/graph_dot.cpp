// A line for each node, value and use.
#include "engine/graph_dot.h"

#include <fmt/format.h>

#include "engine/core/text.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

// In double quotes, where only these two and the backslash's own escapes mean something.
std::string quoted_text(std::string_view text) {
  std::string safe = printable(text, std::size_t{1} << 20);
  std::string result = "\"";
  for (const char c : safe) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// "op\nname", the line end as the language has it.
std::string node_label(const Node& node) {
  const std::string op = quoted_text(node.op->name);
  return op.substr(0, op.size() - 1) + "\\n" + quoted_text(node.name).substr(1);
}

std::string phase_box(const Graph& graph, Phase phase) {
  std::string text =
      fmt::format("  subgraph cluster_{} {{ label=\"{}\";\n", name_of(phase), name_of(phase));
  bool is_empty = true;
  for (NodeId id = graph.first(); id != kNoNode; id = graph.node(id).next) {
    const Node& node = graph.node(id);
    if (node.phase != phase) continue;
    text += fmt::format("    n{} [label={}];\n", static_cast<int>(id), node_label(node));
    is_empty = false;
  }
  return is_empty ? "" : text + "  }\n";
}

// Where a value comes from, as the arrows name it.
std::string origin(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  return value.producer == kNoNode ? fmt::format("v{}", static_cast<int>(id))
                                   : fmt::format("n{}", static_cast<int>(value.producer));
}

std::string sources(const Graph& graph) {
  std::string text;
  for (const ValueId id : graph.live_values()) {
    const Value& value = graph.value(id);
    if (value.producer != kNoNode) continue;
    const std::string label = quoted_text(value.name);
    text +=
        fmt::format("  v{} [shape=ellipse, label={}\\n{} {}\"];\n", static_cast<int>(id),
                    label.substr(0, label.size() - 1), name_of(value.kind), type_text(value.type));
  }
  return text;
}

std::string arrows(const Graph& graph, NodeId id) {
  std::string text;
  for (const ValueId input : graph.node(id).inputs) {
    if (input == kNoValue) continue;
    text += fmt::format("  {} -> n{} [label={}];\n", origin(graph, input), static_cast<int>(id),
                        quoted_text(type_text(graph.value(input).type)));
  }
  return text;
}

}  // namespace

std::string dot_text(const Graph& graph) {
  std::string text = fmt::format("digraph {} {{\n  node [shape=box];\n", quoted_text(graph.name));
  text += sources(graph);
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
    text += phase_box(graph, phase);
  }
  for (NodeId id = graph.first(); id != kNoNode; id = graph.node(id).next) {
    text += arrows(graph, id);
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId output = graph.outputs[i];
    text += fmt::format("  o{0} [shape=ellipse, label={1}];\n  {2} -> o{0};\n", i,
                        quoted_text(graph.value(output).name), origin(graph, output));
  }
  return text + "}\n";
}

}  // namespace trainscope
