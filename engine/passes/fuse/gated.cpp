// The search from a gate through its only readers.
#include "engine/passes/fuse/gated.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr double kNearNumber = 0.02;  // a constant so near to the pattern's is meant to be it
constexpr int kMostReaders = 8;       // further from the gate nothing is looked for

// plain + gated * g of a value that is computed from g.
struct Expression {
  ValueId value = kNoValue;
  Polynomial plain;
  Polynomial gated;
  std::vector<NodeId> nodes = {};
};

std::string text_of(const Expression& e) {
  return fmt::format("{} + ({}) g", polynomial_text(e.plain.c), polynomial_text(e.gated.c));
}

bool matches(const Expression& e, const GatedPattern& pattern, ValueId x) {
  const bool of_x = (e.plain.x == x || e.plain.x == kNoValue) && e.gated.x == x;
  return of_x && is_near(e.plain.c, pattern.plain, kSameNumber) &&
         is_near(e.gated.c, pattern.gated, kSameNumber);
}

// (e + factor * other) or (e * factor): nothing when it is no polynomial any more.
std::optional<Expression> plus(const Expression& e, const Polynomial& other) {
  const std::optional<Polynomial> plain = sum(e.plain, other);
  if (!plain) return std::nullopt;
  return Expression{.value = e.value, .plain = *plain, .gated = e.gated, .nodes = e.nodes};
}

std::optional<Expression> times(const Expression& e, const Polynomial& factor) {
  const std::optional<Polynomial> plain = product(e.plain, factor);
  const std::optional<Polynomial> gated = product(e.gated, factor);
  if (!plain || !gated) return std::nullopt;
  return Expression{.value = e.value, .plain = *plain, .gated = *gated, .nodes = e.nodes};
}

Polynomial number_of(double number) { return {.x = kNoValue, .c = {number}}; }

// What `reader` makes of e, whose only reader it is.
std::optional<Expression> read_by(const Matcher& match, NodeId reader, const Expression& e) {
  const bool is_first = match.input(reader, 0) == e.value;
  if (match.is_op(reader, "Neg")) return times(e, number_of(-1.0));
  const ValueId operand = match.other_input(reader, e.value);
  if (operand == kNoValue) return std::nullopt;
  const Polynomial other = match.polynomial(operand);
  if (match.is_op(reader, "Add")) return plus(e, other);
  if (match.is_op(reader, "Mul")) return times(e, other);
  if (match.is_op(reader, "Sub")) {
    const std::optional<Expression> left = is_first ? e : times(e, number_of(-1.0));
    const std::optional<Polynomial> right = is_first ? product(other, number_of(-1.0)) : other;
    return left && right ? plus(*left, *right) : std::nullopt;
  }
  const bool by_number = match.is_op(reader, "Div") && is_first && other.x == kNoValue;
  return by_number && other.c[0] != 0.0 ? times(e, number_of(1.0 / other.c[0])) : std::nullopt;
}

class GateSearch {
 public:
  GateSearch(const Matcher& match, NodeId gate)
      : match_(match),
        gate_(gate),
        argument_(match.polynomial(match.input(gate, 0))),
        matched_(argument_.nodes) {
    matched_.push_back(gate);
  }

  const Polynomial& argument() const { return argument_; }
  // The gate, what computes its argument, and what find() took besides.
  const std::vector<NodeId>& matched() const { return matched_; }

  // The match of the pattern; else nothing, and why_not() says what was found.
  std::optional<Expression> find(const GatedPattern& pattern) {
    Expression e{.value = match_.output(gate_),
                 .plain = number_of(0.0),
                 .gated = number_of(1.0),
                 .nodes = matched_};
    for (int i = 0; i < kMostReaders; ++i) {
      if (matches(e, pattern, argument_.x) && has_type_of_x(e)) return e;
      const NodeId reader = match_.only_reader(e.value);
      if (reader == kNoNode) {
        why_not_ = fmt::format("{}, which is {}", match_.why_kept(e.value), text_of(e));
        return std::nullopt;
      }
      std::optional<Expression> next = read_by(match_, reader, e);
      if (!next || !is_of_x(next->plain) || !is_of_x(next->gated)) {
        why_not_ = match_.why_no_number(reader);
        break;
      }
      e = *std::move(next);
      e.value = match_.output(reader);
      e.nodes.push_back(reader);
      for (const Polynomial* p : {&e.plain, &e.gated}) {
        e.nodes.insert(e.nodes.end(), p->nodes.begin(), p->nodes.end());
      }
      matched_ = e.nodes;
    }
    if (!why_not_.empty()) return std::nullopt;
    why_not_ = fmt::format("'{}' is {} with g = {}({}), expected {}",
                           printable(match_.value(e.value).name), text_of(e), pattern.gate,
                           polynomial_text(argument_.c), expected_text(pattern));
    return std::nullopt;
  }

  const std::string& why_not() const { return why_not_; }

  // Whether the gate is an operand of a product with x.
  bool is_multiplied_by_x() const {
    const ValueId g = match_.output(gate_);
    return std::ranges::any_of(match_.value(g).uses, [&](const Use& use) {
      return match_.is_op(use.node, "Mul") &&
             match_.polynomial(match_.other_input(use.node, g)).x == argument_.x;
    });
  }

  static std::string expected_text(const GatedPattern& pattern) {
    return fmt::format("{} + ({}) g", polynomial_text(pattern.plain),
                       polynomial_text(pattern.gated));
  }

 private:
  bool is_of_x(const Polynomial& p) const { return p.x == kNoValue || p.x == argument_.x; }
  bool has_type_of_x(const Expression& e) const {
    return match_.value(e.value).type == match_.value(argument_.x).type;
  }

  const Matcher& match_;
  NodeId gate_;
  Polynomial argument_;
  std::vector<NodeId> matched_;
  std::string why_not_;
};

// Whether the pattern is one of those whose gate has no other common use than this.
bool is_telling(const GatedPattern& pattern) {
  return pattern.argument[3] != 0.0 || pattern.gate == "Erf";
}

class GatedFusion {
 public:
  GatedFusion(Graph& graph, PassContext& context)
      : context_(context),
        rewriter_(graph, context.ops, context.pass, context.evaluate),
        match_(graph, context.options) {}

  void try_at(NodeId id, const GatedPattern& pattern) {
    const Graph& graph = match_.graph();
    if (graph.node(id).erased || !match_.is_op(id, pattern.gate)) return;
    GateSearch search(match_, id);
    const Polynomial& argument = search.argument();
    if (argument.x == kNoValue) return;
    if (!is_near(argument.c, pattern.argument, kNearNumber)) {
      note_trained(id, search, pattern);
      return;
    }
    if (!is_near(argument.c, pattern.argument, kSameNumber)) {
      context_.near_miss(
          graph, id, search.matched(),
          fmt::format("the argument of {} is {}, expected {}", pattern.gate,
                      polynomial_text(argument.c), polynomial_text(pattern.argument)));
      return;
    }
    const std::optional<Expression> found = search.find(pattern);
    if (found) {
      fuse(*found, pattern, argument.x);
    } else if (is_telling(pattern) || search.is_multiplied_by_x()) {
      context_.near_miss(graph, id, search.matched(), search.why_not());
    }
  }

  bool changed() const { return rewriter_.changed(); }

 private:
  // A trained factor of the gate's argument, where the gate has no other common use.
  void note_trained(NodeId id, const GateSearch& search, const GatedPattern& pattern) {
    if (pattern.gate != "Erf") return;
    std::string why = match_.why_no_number(match_.value(match_.input(id, 0)).producer);
    if (why.empty()) return;
    context_.near_miss(match_.graph(), id, search.matched(), std::move(why));
  }

  void fuse(const Expression& found, const GatedPattern& pattern, ValueId x) {
    const NodeId last = match_.value(found.value).producer;
    replace_region(rewriter_, found.nodes, last, [&](Builder& b) {
      return b(pattern.fused, {x}, {{std::string(pattern.attribute), pattern.attribute_value}});
    });
    context_.count("fused");
  }

  PassContext& context_;
  Rewriter rewriter_;
  Matcher match_;
};

}  // namespace

bool fuse_gated(Graph& graph, PassContext& context, std::span<const GatedPattern> patterns) {
  GatedFusion fusion(graph, context);
  for (NodeId id : graph.order()) {
    for (const GatedPattern& pattern : patterns) fusion.try_at(id, pattern);
  }
  return fusion.changed();
}

}  // namespace trainscope
