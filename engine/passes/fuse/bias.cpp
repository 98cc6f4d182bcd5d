// fuse_bias: a matmul and the bias that is added to its rows as one node.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"
#include "engine/passes/plain_view.h"

namespace trainscope {
namespace {

struct BiasMatch {
  NodeId matmul = kNoNode;
  ValueId bias = kNoValue;    // [columns], perhaps behind axes of size 1
  std::vector<NodeId> nodes;  // the addition, what only reshapes before it, the matmul
};

// From an addition back to the matmul that it adds a vector to.
class BiasSearch {
 public:
  explicit BiasSearch(const Matcher& match) : match_(match) {}

  std::optional<BiasMatch> find(NodeId add) {
    if (!match_.is_op(add, "Add")) return std::nullopt;
    for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      std::optional<BiasMatch> found = matmul_behind(add, i);
      if (found && is_usable(*found)) return found;
    }
    return std::nullopt;
  }

  // Not empty: there are a matmul and a bias, but for this.
  const std::string& why_not() const { return why_not_; }
  const std::vector<NodeId>& matched() const { return matched_; }

 private:
  const Node& node(NodeId id) const { return match_.graph().node(id); }
  const Shape& shape(ValueId v) const { return match_.value(v).type.shape; }
  static std::int64_t last_axis(const Shape& shape) {
    return shape.rank == 0 ? 0 : shape[shape.rank - 1];
  }

  static bool is_matmul(const Node& node) {
    return is_op(node, kOnnxDomain, "MatMul") || is_op(node, kOnnxDomain, "Gemm") ||
           is_op(node, kTrainscopeDomain, "BatchMatMul");
  }

  // The matmul behind operand i of the addition, if the other operand is a number per column.
  std::optional<BiasMatch> matmul_behind(NodeId add, std::size_t i) const {
    BiasMatch found{.bias = match_.input(add, 1 - i), .nodes = {add}};
    ValueId v = match_.input(add, i);
    const TensorType& type = match_.value(v).type;
    const std::int64_t columns = last_axis(type.shape);
    if (type != match_.value(match_.output(add)).type) return std::nullopt;
    const bool is_vector =
        last_axis(shape(found.bias)) == columns && shape(found.bias).elements() == columns;
    if (!is_vector) return std::nullopt;
    // Rows stay rows, whatever shape they are put into.
    NodeId id = match_.value(v).producer;
    while (id != kNoNode && is_plain_view(*node(id).op) && last_axis(shape(v)) == columns) {
      found.nodes.push_back(id);
      v = match_.input(id, 0);
      id = match_.value(v).producer;
    }
    if (id == kNoNode || !is_matmul(node(id)) || last_axis(shape(v)) != columns) {
      return std::nullopt;
    }
    const bool matrices =
        shape(match_.input(id, 0)).rank >= 2 && shape(match_.input(id, 1)).rank >= 2;
    if (!matrices) return std::nullopt;
    found.matmul = id;
    found.nodes.push_back(id);
    return found;
  }

  bool refuse(std::string why) {
    why_not_ = std::move(why);
    return false;
  }

  bool is_usable(const BiasMatch& found) {
    matched_ = found.nodes;
    const Node& matmul = node(found.matmul);
    if (matmul.inputs.size() > 2 && matmul.inputs[2] != kNoValue) {
      return refuse(
          fmt::format("{} '{}' adds something already", matmul.op->name, printable(matmul.name)));
    }
    if (matmul.attributes.number("alpha", 1.0) != 1.0) {
      return refuse(
          fmt::format("{} '{}' scales its result", matmul.op->name, printable(matmul.name)));
    }
    for (NodeId id : found.nodes) {
      const ValueId v = match_.output(id);
      if (id == found.nodes.front() || match_.only_reader(v) != kNoNode) continue;
      return refuse(match_.why_kept(v));
    }
    return true;
  }

  const Matcher& match_;
  std::vector<NodeId> matched_;
  std::string why_not_;
};

ValueId biased_matmul(Builder& b, const BiasMatch& found, const Shape& result) {
  const Node matmul = b.graph().node(found.matmul);  // a copy: the graph grows
  const ValueId bias = b.reshape(found.bias, {b.shape(found.bias).elements()});
  const bool gemm = is_op(matmul, kOnnxDomain, "Gemm");
  Attributes attributes = matmul.attributes;
  if (attributes.number("beta", 1.0) != 1.0) attributes.set("beta", 1.0);
  const ValueId y = b(gemm ? "Gemm" : "BatchMatMul", {matmul.inputs[0], matmul.inputs[1], bias},
                      std::move(attributes));
  return b.reshape(y, result);
}

bool fuse_bias(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const Matcher match(graph, context.options);
  for (NodeId id : graph.order()) {
    if (graph.node(id).erased) continue;
    BiasSearch search(match);
    const std::optional<BiasMatch> found = search.find(id);
    if (!found) {
      if (!search.why_not().empty()) {
        context.near_miss(graph, id, search.matched(), search.why_not());
      }
      continue;
    }
    const Shape result = graph.value(match.output(id)).type.shape;
    replace_region(rewriter, found->nodes, id,
                   [&](Builder& b) { return biased_matmul(b, *found, result); });
    context.count("fused");
  }
  return rewriter.changed();
}

}  // namespace

Pass fuse_bias_pass() {
  return {.name = "fuse_bias",
          .doc = "Let a matmul add the bias of its rows.",
          .run = fuse_bias,
          .in_bodies = true};
}

}  // namespace trainscope
