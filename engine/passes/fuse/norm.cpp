// The search from a mean of squares through its only readers.
#include "engine/passes/fuse/norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/core/text.h"

namespace trainscope {
namespace {

// A mean over the last axes, which stay as axes of size 1.
struct Mean {
  NodeId node = kNoNode;
  ValueId of = kNoValue;
  int axis = 0;  // the first
};

std::optional<Mean> mean_at(const Matcher& match, NodeId id) {
  if (!match.is_op(id, "ReduceMean")) return std::nullopt;
  const Node& node = match.graph().node(id);
  const Shape& shape = match.value(node.inputs[0]).type.shape;
  if (shape.rank == 0 || node.attributes.integer("keepdims", 1) == 0) return std::nullopt;
  std::vector<int> axes;
  for (std::int64_t axis : node.attributes.integers("axes")) {
    axes.push_back(normalized_axis(axis, shape.rank));
  }
  const int first = axes.empty() ? 0 : *std::ranges::min_element(axes);
  const bool to_the_end = axes.empty() || static_cast<int>(axes.size()) == shape.rank - first;
  if (!to_the_end) return std::nullopt;
  return Mean{.node = id, .of = node.inputs[0], .axis = first};
}

// x - mean(x)
struct Centered {
  ValueId x = kNoValue;
  int axis = 0;
  std::vector<NodeId> nodes;
};

std::optional<Centered> centered(const Matcher& match, ValueId v) {
  const NodeId difference = match.made_by(v, "Sub");
  if (difference == kNoNode) return std::nullopt;
  const ValueId x = match.input(difference, 0);
  const NodeId subtracted = match.value(match.input(difference, 1)).producer;
  if (subtracted == kNoNode) return std::nullopt;
  const std::optional<Mean> mean = mean_at(match, subtracted);
  if (!mean || mean->of != x) return std::nullopt;
  return Centered{.x = x, .axis = mean->axis, .nodes = {difference, mean->node}};
}

class NormSearch {
 public:
  NormSearch(const Matcher& match, NormKind kind) : match_(match), kind_(kind) {}

  // Whether the node is the mean of squares that a norm of this kind begins with.
  bool begins(NodeId id) {
    const std::optional<Mean> mean = mean_at(match_, id);
    if (!mean) return false;
    const NodeId square = match_.value(mean->of).producer;
    squared_ = square == kNoNode ? kNoValue : match_.square_root_of(square);
    if (squared_ == kNoValue) return false;
    const std::optional<Centered> deviation = centered(match_, squared_);
    if (deviation.has_value() != (kind_ == NormKind::kLayerNorm)) return false;
    if (deviation && deviation->axis != mean->axis) return false;
    found_ = {.x = deviation ? deviation->x : squared_, .axis = mean->axis, .nodes = {id, square}};
    if (deviation) add(deviation->nodes);
    at_ = match_.output(id);
    return true;
  }

  // The rest of the norm; else nothing, and why_not() says what was found.
  std::optional<NormMatch> find() {
    if (!add_epsilon() || !divide()) return std::nullopt;
    add_scale();
    if (kind_ == NormKind::kLayerNorm) add_bias();
    found_.last = match_.value(at_).producer;
    if (const ValueId kept = match_.kept_inside(found_.nodes, found_.last); kept != kNoValue) {
      refuse(match_.why_kept(kept));
      return std::nullopt;
    }
    return found_;
  }

  const std::string& why_not() const { return why_not_; }
  const std::vector<NodeId>& matched() const { return found_.nodes; }

 private:
  void add(const std::vector<NodeId>& nodes) {
    found_.nodes.insert(found_.nodes.end(), nodes.begin(), nodes.end());
  }

  void go_on_to(NodeId reader) {
    found_.nodes.push_back(reader);
    at_ = match_.output(reader);
  }

  bool refuse(std::string why) {
    why_not_ = std::move(why);
    return false;
  }

  // The only reader of what is reached, or a refusal.
  NodeId reader() {
    const NodeId reader = match_.only_reader(at_);
    if (reader == kNoNode) refuse(match_.why_kept(at_));
    return reader;
  }

  bool refuse_reader(NodeId reader) {
    if (std::string why = match_.why_no_number(reader); !why.empty()) return refuse(why);
    const Node& node = match_.graph().node(reader);
    return refuse(
        fmt::format("{} '{}' does not belong to a norm", node.op->name, printable(node.name)));
  }

  bool add_epsilon() {
    const NodeId next = reader();
    if (next == kNoNode) return false;
    const std::optional<double> epsilon = match_.number(match_.other_input(next, at_));
    if (!match_.is_op(next, "Add") || !epsilon || grows(next)) return refuse_reader(next);
    if (!(*epsilon >= 0.0)) return refuse(fmt::format("epsilon is {}", *epsilon));
    found_.epsilon = *epsilon;
    go_on_to(next);
    return true;
  }

  // Whether the reader broadcasts what is reached to another shape.
  bool grows(NodeId reader) const {
    return match_.value(match_.output(reader)).type != match_.value(at_).type;
  }

  // The power of the variance that the reader makes of its power `exponent`.
  std::optional<double> next_exponent(NodeId reader, double exponent) const {
    if (match_.is_op(reader, "Sqrt")) return exponent * 0.5;
    if (match_.is_op(reader, "Reciprocal")) return -exponent;
    const bool is_first = match_.input(reader, 0) == at_;
    const std::optional<double> number = match_.number(match_.other_input(reader, at_));
    if (!number || grows(reader)) return std::nullopt;
    if (match_.is_op(reader, "Pow") && is_first) return exponent * *number;
    if (match_.is_op(reader, "Div") && !is_first && *number == 1.0) return -exponent;
    return std::nullopt;
  }

  // Whether v is what was squared, or the same computed once more.
  bool is_deviation(ValueId v) {
    if (v == squared_) return true;
    const std::optional<Centered> same = centered(match_, v);
    if (kind_ == NormKind::kRmsNorm || !same) return false;
    if (same->x != found_.x || same->axis != found_.axis) return false;
    add(same->nodes);
    return true;
  }

  // From the variance to x divided by its root.
  bool divide() {
    double exponent = 1.0;
    for (int i = 0; i < 4; ++i) {
      const NodeId next = reader();
      if (next == kNoNode) return false;
      const std::optional<double> power = next_exponent(next, exponent);
      if (!power) return divide_by(next, exponent);
      exponent = *power;
      go_on_to(next);
    }
    return refuse("the root of the variance is taken in too many nodes");
  }

  bool divide_by(NodeId next, double exponent) {
    const bool is_quotient =
        exponent == 0.5 && match_.is_op(next, "Div") && match_.input(next, 1) == at_;
    const bool is_product = exponent == -0.5 && match_.is_op(next, "Mul");
    if (!is_quotient && !is_product) return refuse_reader(next);
    if (!is_deviation(match_.other_input(next, at_))) {
      return refuse(fmt::format("what is divided, '{}', is not what was squared",
                                printable(match_.value(match_.other_input(next, at_)).name)));
    }
    go_on_to(next);
    return true;
  }

  // Whether v has one element for each of the normalised ones.
  bool fits(ValueId v) const {
    const TensorType& type = match_.value(v).type;
    const TensorType& x = match_.value(found_.x).type;
    const Shape wanted(x.shape.span().subspan(static_cast<std::size_t>(found_.axis)));
    if (type.dtype != x.dtype || type.shape.rank < wanted.rank || type.shape.rank > x.shape.rank) {
      return false;
    }
    const int lead = type.shape.rank - wanted.rank;
    for (int a = 0; a < type.shape.rank; ++a) {
      if (type.shape[a] != (a < lead ? 1 : wanted[a - lead])) return false;
    }
    return true;
  }

  // The other operand of the op that alone reads what is reached, when it fits.
  ValueId fitting_operand(std::string_view op) {
    const NodeId next = match_.only_reader(at_);
    if (!match_.is_op(next, op)) return kNoValue;
    const ValueId operand = match_.other_input(next, at_);
    if (!fits(operand)) return kNoValue;
    go_on_to(next);
    return operand;
  }

  void add_scale() { found_.scale = fitting_operand("Mul"); }
  void add_bias() { found_.bias = fitting_operand("Add"); }

  const Matcher& match_;
  NormKind kind_;
  NormMatch found_;
  ValueId squared_ = kNoValue;
  ValueId at_ = kNoValue;  // what is reached so far
  std::string why_not_;
};

ValueId ones(Builder& b, const TensorType& x, int axis) {
  const Shape shape(x.shape.span().subspan(static_cast<std::size_t>(axis)));
  const std::vector<double> numbers(static_cast<std::size_t>(shape.elements()), 1.0);
  return b.constant(convert(Tensor::of<double>(shape, numbers), x.dtype), "ones");
}

ValueId norm_node(Builder& b, const NormMatch& norm, NormKind kind) {
  const TensorType x = b.type(norm.x);  // a copy: the graph grows
  std::vector<ValueId> inputs{norm.x, norm.scale};
  if (norm.scale == kNoValue) inputs[1] = ones(b, x, norm.axis);
  if (norm.bias != kNoValue) inputs.push_back(norm.bias);
  const std::int64_t axis = norm.axis - x.shape.rank;
  return b(kind == NormKind::kLayerNorm ? "LayerNormalization" : "RMSNormalization",
           std::move(inputs), {{"axis", axis}, {"epsilon", norm.epsilon}});
}

}  // namespace

bool fuse_norms(Graph& graph, PassContext& context, NormKind kind) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const Matcher match(graph, context.options);
  for (NodeId id : graph.order()) {
    if (graph.node(id).erased) continue;
    NormSearch search(match, kind);
    if (!search.begins(id)) continue;
    const std::optional<NormMatch> found = search.find();
    if (!found) {
      context.near_miss(graph, id, search.matched(), search.why_not());
      continue;
    }
    replace_region(rewriter, found->nodes, found->last,
                   [&](Builder& b) { return norm_node(b, *found, kind); });
    context.count("fused");
  }
  return rewriter.changed();
}

}  // namespace trainscope
