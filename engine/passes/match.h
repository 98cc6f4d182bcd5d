// What patterns of fusion passes are made of: questions about a graph, arithmetic as polynomials in
// one of its values, and the replacement of a matched region by one value.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/ir/rewriter.h"
#include "engine/passes/training_options.h"

namespace trainscope {

// A constant of a pattern may be off by this share: models write it as float, or with six digits.
inline constexpr double kSameNumber = 1e-6;

// c[0] + c[1] x + c[2] x^2 + c[3] x^3; without an x the number c[0].
using Coefficients = std::array<double, 4>;
struct Polynomial {
  ValueId x = kNoValue;
  Coefficients c{};
  std::vector<NodeId> nodes = {};  // that compute it, in any order
};
// Empty where the result is no polynomial of degree 3 at most in one value.
std::optional<Polynomial> sum(const Polynomial& a, const Polynomial& b);
std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b);
// Whether each coefficient is the expected one up to the given share of it.
bool is_near(const Coefficients& c, const Coefficients& expected, double share);
// "0.5 x + 0.0357 x^3"; "0" when all are 0.
std::string polynomial_text(const Coefficients& c);

class Matcher {
 public:
  Matcher(const Graph& graph, const TrainingOptions& options);

  bool is_op(NodeId id, std::string_view op) const;  // of ONNX's domain; kNoNode is none
  // The node that makes v, when it is of this op; else kNoNode.
  NodeId made_by(ValueId v, std::string_view op) const;
  // The one element of v, when it is known at compile time.
  std::optional<double> number(ValueId v) const;
  // Of a node that has a parameter of one element for an input: "'v' is trained, .."; else empty.
  std::string why_no_number(NodeId id) const;
  // The only node that reads v, when nothing else wants v; else kNoNode.
  NodeId only_reader(ValueId v) const;
  // Why v has no only reader: "'v' has 2 readers".
  std::string why_kept(ValueId v) const;
  // Whether something else than nodes asks for v.
  bool is_wanted(ValueId v) const;
  bool is_gradient_wanted(ValueId v) const { return gradient_of_.contains(v); }

  // A result of these nodes, but `last`, that something else reads or asks for; else kNoValue.
  ValueId kept_inside(const std::vector<NodeId>& nodes, NodeId last) const;

  // Input i of a node; kNoValue when there is none.
  ValueId input(NodeId id, std::size_t i) const;
  ValueId output(NodeId id) const { return graph_.node(id).outputs[0]; }
  // The input of a node of two inputs that is not v.
  ValueId other_input(NodeId id, ValueId v) const;
  // Of a square, x * x or x ^ 2: x; else kNoValue.
  ValueId square_root_of(NodeId id) const;

  // v as a polynomial in the nearest value behind it that has several readers, or that arithmetic
  // does not make. Operands that are broadcast to a larger shape end it.
  Polynomial polynomial(ValueId v) const;

  const Graph& graph() const { return graph_; }
  const Value& value(ValueId v) const { return graph_.value(v); }

 private:
  bool is_arithmetic(ValueId v) const;
  std::optional<Polynomial> combined(NodeId id, const std::vector<Polynomial>& operands) const;

  const Graph& graph_;
  std::unordered_set<ValueId> gradient_of_;
};

// Puts what `make` builds, a value of the same type, in the place of what `last` computes, the last
// of the matched `nodes`.
// The new nodes come from all of `nodes`; those that nobody reads any more are erased.
void replace_region(Rewriter& rewriter, std::vector<NodeId> nodes, NodeId last,
                    const std::function<ValueId(Builder&)>& make);

}  // namespace trainscope
