// fuse_norm_grad_add: what else reaches the input of a norm is added by the norm's gradient, in
// place.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/passes/fuse/sum_inside.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

struct NormGradAddition {
  NodeId maker = kNoNode;  // a norm's gradient; nothing but the addition reads its first result
  ValueId sum = kNoValue;  // made before it
};

// The gradient of a norm that makes v, that adds nothing yet; else kNoNode.
NodeId norm_gradient(const Graph& graph, ValueId v) {
  const NodeId id = graph.value(v).producer;
  if (id == kNoNode || graph.value(v).producer_output != 0) return kNoNode;
  const Node& node = graph.node(id);
  const bool is_one = is_op(node, kTrainscopeDomain, "LayerNormalizationGrad") ||
                      is_op(node, kTrainscopeDomain, "RMSNormalizationGrad");
  return is_one && node.inputs.size() == 3 ? id : kNoNode;
}

// Empty: the gradient may add `sum`.
std::string why_not(const Graph& graph, const Places& places, ValueId term, ValueId sum) {
  const Value& value = graph.value(term);
  const Value& other = graph.value(sum);
  if (graph.is_output(term)) return fmt::format("'{}' is asked for", printable(value.name));
  if (value.uses.size() != 1) {
    return fmt::format("'{}' has {} readers", printable(value.name), value.uses.size());
  }
  if (other.type != value.type) {
    return fmt::format("'{}' is {}, the norm's gradient {}", printable(other.name),
                       type_text(other.type), type_text(value.type));
  }
  if (other.producer != kNoNode && places.at(other.producer) >= places.at(value.producer)) {
    return fmt::format("'{}' is not made before the norm's gradient", printable(other.name));
  }
  return {};
}

std::optional<NormGradAddition> norm_grad_add(const Graph& graph, const Places& places,
                                              const Node& add, SumRefusal& refusal) {
  if (!is_op(add, kOnnxDomain, "Add")) return std::nullopt;
  for (std::size_t i : {1, 0}) {
    const ValueId term = add.inputs[i];
    const NodeId gradient = norm_gradient(graph, term);
    if (gradient == kNoNode) continue;
    std::string reason = why_not(graph, places, term, add.inputs[1 - i]);
    if (reason.empty()) return {{.maker = gradient, .sum = add.inputs[1 - i]}};
    if (refusal.why.empty()) refusal = {.why = std::move(reason), .matched = {gradient}};
  }
  return std::nullopt;
}

// The sum takes the place of what the gradient made; the node that added it goes.
NodeId add_inside(Rewriter& rewriter, NodeId add, const NormGradAddition& found) {
  const Node old = rewriter.graph().node(found.maker);  // a copy: the graph grows
  std::vector<ValueId> inputs = old.inputs;
  inputs.push_back(found.sum);
  const std::vector<ValueId> made =
      rewriter.before(found.maker)
          .multi(old.op->name, std::move(inputs), static_cast<int>(old.outputs.size()),
                 old.attributes);
  rewriter.replace_node(add, {made[0]});
  rewriter.replace_node(found.maker, made);
  return rewriter.graph().value(made[0]).producer;
}

bool sum_inside_norms(Graph& graph, PassContext& context) {
  return sum_inside(graph, context, norm_grad_add, add_inside);
}

}  // namespace

Pass fuse_norm_grad_add_pass() {
  return {.name = "fuse_norm_grad_add",
          .formerly = "summed_norms",
          .doc = "Let a norm's gradient add what else reaches the norm's input, in place.",
          .run = sum_inside_norms};
}

}  // namespace trainscope
