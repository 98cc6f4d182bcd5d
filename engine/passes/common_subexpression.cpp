// common_subexpression: computes equal nodes and keeps equal constants once.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "engine/core/hash.h"
#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// Constants up to this size are compared by their bytes; bigger ones are left alone.
constexpr std::size_t kMaxConstantBytes = std::size_t{1} << 20;

std::string key_of(const Value& value) {
  const Tensor& t = *value.data;
  Hasher hasher;
  hasher.bytes({t.data(), t.bytes()});
  return fmt::format("{}|{}|{:x}", name_of(t.dtype()), fmt::join(t.shape().span(), ","),
                     hasher.digest());
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::equal(a.data(), a.data() + a.bytes(), b.data());
}

void merge_constants(Rewriter& rewriter, PassContext& context) {
  rewriter.set_rule("equal constants", "Equal constants are kept once.");
  std::unordered_map<std::string, ValueId> first;
  const Graph& graph = rewriter.graph();
  for (ValueId v : graph.values_of(ValueKind::kConstant)) {
    const Value& value = graph.value(v);
    if (value.type.bytes() > kMaxConstantBytes || graph.is_output(v) || value.uses.empty())
      continue;
    auto [found, fresh] = first.emplace(key_of(value), v);
    if (fresh || !same_bytes(*value.data, *graph.value(found->second).data)) continue;
    rewriter.replace(v, found->second);
    rewriter.erase_value(v);
    context.count("constants merged");
  }
}

std::string key_of(const Node& node) {
  std::string key = fmt::format("{}.{}|{}|", node.op->domain, node.op->name, node.outputs.size());
  for (ValueId v : node.inputs) key += fmt::format("{},", static_cast<int>(v));
  for (ValueId v : node.outputs) key += v == kNoValue ? '-' : '+';
  return key + attributes_text(node.attributes);
}

bool can_merge(const Rewriter& rewriter, const Node& node, const Node& earlier) {
  if (!(node.attributes == earlier.attributes)) return false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    if (!rewriter.can_replace(node.outputs[i], earlier.outputs[i])) return false;
  }
  return true;
}

bool merge_equal_nodes(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  merge_constants(rewriter, context);
  rewriter.set_rule("equal nodes", "Nodes of equal op, inputs and attributes compute the same.");
  std::unordered_map<std::string, NodeId> first;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.phase == Phase::kUpdate) continue;  // each update has storage of its own
    auto [found, fresh] = first.emplace(key_of(node), id);
    if (fresh || !can_merge(rewriter, node, graph.node(found->second))) continue;
    rewriter.replace_node(id, std::vector<ValueId>(graph.node(found->second).outputs));
    context.count("nodes merged");
  }
  return rewriter.changed();
}

}  // namespace

Pass common_subexpression_pass() {
  return {.name = "common_subexpression",
          .doc = "Compute equal nodes once and keep equal constants once.",
          .run = merge_equal_nodes,
          .in_bodies = true};
}

}  // namespace trainscope
