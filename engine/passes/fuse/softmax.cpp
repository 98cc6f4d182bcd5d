// fuse_softmax: e^(x - max) / sum(e^(x - max)) along one axis as one node.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "engine/core/text.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// A reduction along one axis, which stays as an axis of size 1.
struct Reduction {
  NodeId node = kNoNode;
  ValueId of = kNoValue;
  int axis = 0;
};

// The axes: an attribute, or with ReduceSum an input whose elements are known.
Ints axes_of(const Matcher& match, const Node& node) {
  if (node.inputs.size() < 2) return node.attributes.integers("axes");
  const SharedTensor& known = match.value(node.inputs[1]).data;
  if (!known || known->dtype() != DType::kI64) return {};
  const auto axes = known->values<std::int64_t>();
  return {axes.begin(), axes.end()};
}

std::optional<Reduction> reduction(const Matcher& match, ValueId v, std::string_view op) {
  const NodeId id = match.made_by(v, op);
  if (id == kNoNode) return std::nullopt;
  const Node& node = match.graph().node(id);
  const Ints axes = axes_of(match, node);
  if (axes.size() != 1 || node.attributes.integer("keepdims", 1) == 0) return std::nullopt;
  const int rank = match.value(node.inputs[0]).type.shape.rank;
  return Reduction{.node = id, .of = node.inputs[0], .axis = normalized_axis(axes[0], rank)};
}

struct SoftmaxMatch {
  ValueId x = kNoValue;
  int axis = 0;
  std::vector<NodeId> nodes = {};
};

// From the quotient's last node back: the exponentials and their sum.
class SoftmaxSearch {
 public:
  explicit SoftmaxSearch(const Matcher& match) : match_(match) {}

  // e / sum(e), or e * (1 / sum(e))
  std::optional<SoftmaxMatch> find(NodeId id) {
    for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const std::optional<Reduction> sum = divisor(id, i);
      if (!sum) continue;
      const ValueId exponentials = match_.input(id, 1 - i);
      const NodeId exp = match_.made_by(exponentials, "Exp");
      if (exp == kNoNode || sum->of != exponentials) continue;
      found_.nodes.insert(found_.nodes.end(), {id, exp, sum->node});
      if (const ValueId kept = match_.kept_inside(found_.nodes, id); kept != kNoValue) {
        why_not_ = match_.why_kept(kept);
        return std::nullopt;
      }
      found_.axis = sum->axis;
      found_.x = without_largest(match_.input(exp, 0), id);
      return found_;
    }
    return std::nullopt;
  }

  // Not empty: it is a softmax but for this.
  const std::string& why_not() const { return why_not_; }
  const std::vector<NodeId>& matched() const { return found_.nodes; }

 private:
  // The sum that input i of the node divides by.
  std::optional<Reduction> divisor(NodeId id, std::size_t i) {
    const ValueId v = match_.input(id, i);
    if (match_.is_op(id, "Div") && i == 1) return reduction(match_, v, "ReduceSum");
    const NodeId inverse = match_.is_op(id, "Mul") ? match_.made_by(v, "Reciprocal") : kNoNode;
    if (inverse == kNoNode) return std::nullopt;
    found_.nodes = {inverse};
    return reduction(match_, match_.input(inverse, 0), "ReduceSum");
  }

  // x of x - max(x) along the same axis, else v itself: the softmax subtracts it anyway. So it does
  // where something else needs the difference or the maximum.
  ValueId without_largest(ValueId v, NodeId last) {
    const NodeId difference = match_.made_by(v, "Sub");
    if (difference == kNoNode) return v;
    const std::optional<Reduction> largest =
        reduction(match_, match_.input(difference, 1), "ReduceMax");
    const ValueId x = match_.input(difference, 0);
    if (!largest || largest->of != x || largest->axis != found_.axis) return v;
    std::vector<NodeId> longer = found_.nodes;
    longer.insert(longer.end(), {difference, largest->node});
    if (match_.kept_inside(longer, last) != kNoValue) return v;
    found_.nodes = std::move(longer);
    return x;
  }

  const Matcher& match_;
  SoftmaxMatch found_;
  std::string why_not_;
};

bool fuse_softmax(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const Matcher match(graph, context.options);
  for (NodeId id : graph.order()) {
    if (graph.node(id).erased) continue;
    SoftmaxSearch search(match);
    const std::optional<SoftmaxMatch> found = search.find(id);
    if (!search.why_not().empty()) {
      context.near_miss(graph, id, search.matched(), search.why_not());
    }
    if (!found) continue;
    replace_region(rewriter, found->nodes, id, [&](Builder& b) {
      return b("Softmax", {found->x}, {{"axis", std::int64_t{found->axis}}});
    });
    context.count("fused");
  }
  return rewriter.changed();
}

}  // namespace

Pass fuse_softmax_pass() {
  return {.name = "fuse_softmax",
          .doc = "Compute Softmax in one node where a model spells it out.",
          .run = fuse_softmax,
          .in_bodies = true};
}

}  // namespace trainscope
