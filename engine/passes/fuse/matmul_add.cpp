// fuse_matmul_add: where one operand of a sum of gradients is a matmul's result, the matmul adds
// the other operand itself, in place.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/passes/fuse/sum_inside.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

struct MatMulAddition {
  NodeId maker = kNoNode;          // a matmul that adds nothing yet
  ValueId term = kNoValue;         // of the addition: what it and matmuls behind it add up
  ValueId sum = kNoValue;          // made before it
  std::vector<ValueId> made = {};  // from the matmul to the term: nothing else reads them
};

class SumSearch {
 public:
  SumSearch(const Graph& graph, const Places& places) : graph_(graph), places_(places) {}

  // Forward a residual's sum stays a node of its own: it is cheap to recompute.
  std::optional<MatMulAddition> find(const Node& add) {
    const bool is_sum = is_op(add, kOnnxDomain, "Add");
    if (!is_sum || add.phase != Phase::kBackward) return std::nullopt;
    for (std::size_t i : {1, 0}) {
      std::optional<MatMulAddition> found = matmul_behind(add.inputs[i]);
      if (!found) continue;
      found->sum = add.inputs[1 - i];
      std::string reason = why_not(*found);
      if (reason.empty()) return found;
      if (refusal_.why.empty()) refusal_ = refused(*found, std::move(reason));
    }
    return std::nullopt;
  }

  // Not empty: a matmul could add the other operand, but for this.
  SumRefusal& refusal() { return refusal_; }

 private:
  // Back along views and matmuls that add to a sum.
  std::optional<MatMulAddition> matmul_behind(ValueId v) const {
    MatMulAddition found{.term = v};
    while (graph_.value(v).producer != kNoNode) {
      found.made.push_back(v);
      const Node& node = graph_.node(graph_.value(v).producer);
      if (is_op(node, kTrainscopeDomain, "BatchMatMul") && node.inputs.size() == 2) {
        found.maker = graph_.value(v).producer;
        return found;
      }
      const bool adds = is_op(node, kTrainscopeDomain, "MatMulAdd");
      if (!adds && !node.op->is_view) return std::nullopt;
      v = node.inputs[adds ? 2 : 0];
    }
    return std::nullopt;
  }

  std::string why_not(const MatMulAddition& found) const {
    for (ValueId v : found.made) {
      const Value& value = graph_.value(v);
      if (graph_.is_output(v)) return fmt::format("'{}' is asked for", printable(value.name));
      if (value.uses.size() == 1) continue;
      return fmt::format("'{}' has {} readers", printable(value.name), value.uses.size());
    }
    const Value& sum = graph_.value(found.sum);
    const TensorType& type = graph_.value(found.term).type;
    if (sum.type != type) {
      return fmt::format("'{}' is {}, the matmul {}", printable(sum.name), type_text(sum.type),
                         type_text(type));
    }
    if (sum.producer != kNoNode && places_.at(sum.producer) >= places_.at(found.maker)) {
      return fmt::format("'{}' is not made before the matmul", printable(sum.name));
    }
    return {};
  }

  SumRefusal refused(const MatMulAddition& found, std::string why) const {
    SumRefusal refusal{.why = std::move(why)};
    for (ValueId v : found.made) refusal.matched.push_back(graph_.value(v).producer);
    return refusal;
  }

  const Graph& graph_;
  const Places& places_;
  SumRefusal refusal_;
};

// The matmul's new node, in its place; the term takes the place of the addition.
NodeId add_inside(Rewriter& rewriter, NodeId add, const MatMulAddition& found) {
  const Node matmul = rewriter.graph().node(found.maker);  // a copy: the graph grows
  const ValueId old = matmul.outputs[0];
  Builder& b = rewriter.before(found.maker);
  const ValueId sum = b.reshape(found.sum, b.shape(old));
  const ValueId made = b("MatMulAdd", {matmul.inputs[0], matmul.inputs[1], sum}, matmul.attributes);
  rewriter.replace_node(found.maker, {made});
  rewriter.replace_node(add, {found.term == old ? made : found.term});
  return b.graph().value(made).producer;
}

std::optional<MatMulAddition> matmul_add(const Graph& graph, const Places& places, const Node& add,
                                         SumRefusal& refusal) {
  SumSearch search(graph, places);
  std::optional<MatMulAddition> found = search.find(add);
  refusal = std::move(search.refusal());
  return found;
}

bool sum_inside_matmuls(Graph& graph, PassContext& context) {
  return sum_inside(graph, context, matmul_add, add_inside);
}

}  // namespace

Pass fuse_matmul_add_pass() {
  return {.name = "fuse_matmul_add",
          .formerly = "summed_products",
          .doc = "Let a matmul of the gradients add what else reaches their sum, in place.",
          .run = sum_inside_matmuls,
          .in_bodies = true};
}

}  // namespace trainscope
