// simplify: removes nodes that change nothing and merges pairs that undo or repeat each other.
#include <algorithm>
#include <optional>

#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"
#include "engine/passes/plain_view.h"

namespace trainscope {
namespace {

const Node* producer(const Graph& graph, ValueId v, std::string_view op) {
  NodeId id = v == kNoValue ? kNoNode : graph.value(v).producer;
  if (id == kNoNode || !is_op(graph.node(id), kOnnxDomain, op)) return nullptr;
  return &graph.node(id);
}

// Whether v is known and all its elements equal `number`.
bool all_equal_to(const Graph& graph, ValueId v, double number) {
  const Value& value = graph.value(v);
  if (value.kind == ValueKind::kParameter || value.kind == ValueKind::kState || !value.data)
    return false;
  const Tensor elements = convert(*value.data, DType::kF64);
  return std::ranges::all_of(elements.values<double>(), [number](double e) { return e == number; });
}

std::optional<ValueId> neutral_operand(const Graph& graph, const Node& node) {
  for (const NeutralOperand& neutral : node.op->neutral) {
    const ValueId other = node.inputs[static_cast<std::size_t>(1 - neutral.input)];
    if (graph.value(other).type != graph.value(node.outputs[0]).type) continue;
    const ValueId constant = node.inputs[static_cast<std::size_t>(neutral.input)];
    if (all_equal_to(graph, constant, neutral.number)) return other;
  }
  return std::nullopt;
}

bool is_full_slice(const Graph& graph, const Node& node) {
  if (!is_op(node, kOnnxDomain, "Slice") ||
      graph.value(node.inputs[0]).type != graph.value(node.outputs[0]).type) {
    return false;
  }
  return node.inputs.size() < 5 || node.inputs[4] == kNoValue ||
         all_equal_to(graph, node.inputs[4], 1.0);
}

bool is_identity_transpose(const Graph& graph, const Node& node) {
  if (!is_op(node, kOnnxDomain, "Transpose")) return false;
  int rank = graph.value(node.inputs[0]).type.shape.rank;
  Ints permutation = node.attributes.integers("perm");
  if (permutation.empty()) return rank <= 1;
  for (int a = 0; a < rank; ++a) {
    if (permutation[static_cast<std::size_t>(a)] != a) return false;
  }
  return true;
}

// The value that node's only output always equals, if there is one.
std::optional<ValueId> same_value(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || node.inputs.empty() || node.inputs[0] == kNoValue)
    return std::nullopt;
  const bool same_type = graph.value(node.inputs[0]).type == graph.value(node.outputs[0]).type;
  if (node.op->keeps_elements && same_type) return node.inputs[0];
  if (is_full_slice(graph, node) || is_identity_transpose(graph, node)) return node.inputs[0];
  if (is_op(node, kOnnxDomain, "Concat") && node.inputs.size() == 1) return node.inputs[0];
  return neutral_operand(graph, node);
}

// Reshape of anything that only reshapes: straight from the source.
bool merge_reshapes(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!is_plain_view(*node.op) || node.outputs[0] == kNoValue) return false;
  NodeId from = graph.value(node.inputs[0]).producer;
  if (from == kNoNode || !is_plain_view(*graph.node(from).op) ||
      is_op(graph.node(from), kOnnxDomain, "Identity"))
    return false;
  rewriter.set_rule("reshapes", "A reshape of a reshape is one reshape, or none.");
  ValueId source = graph.node(from).inputs[0];
  const Shape shape = graph.value(node.outputs[0]).type.shape;
  const bool undone = graph.value(source).type.shape == shape;
  if (undone && !rewriter.can_replace(node.outputs[0], source)) return false;
  ValueId merged = undone ? source : rewriter.before(id).reshape(source, shape);
  rewriter.replace_node(id, {merged});
  return true;
}

bool merge_transposes(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Node& node = graph.node(id);
  if (!is_op(node, kOnnxDomain, "Transpose")) return false;
  const Node* inner = producer(graph, node.inputs[0], "Transpose");
  if (inner == nullptr) return false;
  Ints outer_permutation = node.attributes.integers("perm");
  Ints inner_permutation = inner->attributes.integers("perm");
  if (outer_permutation.empty() || inner_permutation.empty()) return false;
  Ints both;
  for (std::int64_t a : outer_permutation)
    both.push_back(inner_permutation[static_cast<std::size_t>(a)]);
  rewriter.set_rule("transposes", "A transpose of a transpose is one transpose.");
  ValueId source = inner->inputs[0];
  ValueId merged = rewriter.before(id)("Transpose", {source}, {{"perm", both}});
  rewriter.replace_node(id, {merged});
  return true;
}

bool simplify(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  // A rewrite can make another possible, also further up: repeat until nothing changes.
  for (bool again = true; again;) {
    again = false;
    for (NodeId id : graph.order()) {
      if (graph.node(id).erased) continue;
      rewriter.set_rule("no effect", "The node's result always equals what it reads.");
      std::optional<ValueId> same = same_value(graph, graph.node(id));
      if (same && rewriter.can_replace(graph.node(id).outputs[0], *same)) {
        rewriter.replace_node(id, {*same});
        context.count("nodes without effect");
      } else if (merge_reshapes(rewriter, id)) {
        context.count("reshapes merged");
      } else if (merge_transposes(rewriter, id)) {
        context.count("transposes merged");
      } else {
        continue;
      }
      again = true;
    }
  }
  return rewriter.changed();
}

}  // namespace

Pass simplify_pass() {
  return {
      .name = "simplify",
      .doc = "Remove nodes without effect; merge reshapes of reshapes, transposes of transposes.",
      .run = simplify,
      .in_bodies = true};
}

}  // namespace trainscope
