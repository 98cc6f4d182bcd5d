// Matcher and the arithmetic of polynomials.
#include "engine/passes/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kMostNodes = 24;  // of a polynomial: none that is worth it has more

enum class Arithmetic : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide, kNegate, kPower };
struct ArithmeticOp {
  std::string_view op;
  Arithmetic kind;
};
constexpr ArithmeticOp kArithmetic[] = {
    {"Add", Arithmetic::kAdd},    {"Sub", Arithmetic::kSubtract}, {"Mul", Arithmetic::kMultiply},
    {"Div", Arithmetic::kDivide}, {"Neg", Arithmetic::kNegate},   {"Pow", Arithmetic::kPower}};

const ArithmeticOp* arithmetic_of(const Node& node) {
  const auto* found = std::ranges::find_if(
      kArithmetic, [&node](const ArithmeticOp& each) { return is_op(node, kOnnxDomain, each.op); });
  return found != std::end(kArithmetic) ? found : nullptr;
}

Polynomial number_polynomial(double number) { return {.x = kNoValue, .c = {number}}; }

bool is_number(const Polynomial& p) { return p.x == kNoValue; }

// The value that both are of; nothing when there are two.
std::optional<ValueId> common_value(const Polynomial& a, const Polynomial& b) {
  if (is_number(a)) return b.x;
  if (is_number(b) || a.x == b.x) return a.x;
  return std::nullopt;
}

std::vector<NodeId> joined(const Polynomial& a, const Polynomial& b) {
  std::vector<NodeId> nodes = a.nodes;
  nodes.insert(nodes.end(), b.nodes.begin(), b.nodes.end());
  return nodes;
}

std::optional<Polynomial> scaled(const Polynomial& p, double factor) {
  return product(p, number_polynomial(factor));
}

std::optional<Polynomial> power(const Polynomial& base, const Polynomial& exponent) {
  const double n = exponent.c[0];
  if (!is_number(exponent) || n != std::floor(n) || n < 1.0 || n > 3.0) return std::nullopt;
  Polynomial power = base;
  for (int i = 1; i < static_cast<int>(n); ++i) {
    std::optional<Polynomial> next = product(power, {.x = base.x, .c = base.c});
    if (!next) return std::nullopt;
    power = *std::move(next);
  }
  return power;
}

std::optional<Polynomial> quotient(const Polynomial& a, const Polynomial& b) {
  if (!is_number(b) || b.c[0] == 0.0) return std::nullopt;
  return scaled(a, 1.0 / b.c[0]);
}

std::optional<Polynomial> difference_of(const Polynomial& a, const Polynomial& b) {
  const std::optional<Polynomial> minus = scaled(b, -1.0);
  return minus ? sum(a, *minus) : std::nullopt;
}

std::string number_text(double number) { return fmt::format("{:.7g}", number); }

}  // namespace

std::optional<Polynomial> sum(const Polynomial& a, const Polynomial& b) {
  const std::optional<ValueId> x = common_value(a, b);
  if (!x) return std::nullopt;
  Polynomial sum{.x = *x, .c = a.c, .nodes = joined(a, b)};
  for (std::size_t i = 0; i < sum.c.size(); ++i) sum.c[i] += b.c[i];
  return sum;
}

std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
  const std::optional<ValueId> x = common_value(a, b);
  if (!x) return std::nullopt;
  Polynomial product{.x = *x, .c = {}, .nodes = joined(a, b)};
  for (std::size_t i = 0; i < a.c.size(); ++i) {
    for (std::size_t k = 0; k < b.c.size(); ++k) {
      const double term = a.c[i] * b.c[k];
      if (term == 0.0) continue;
      if (i + k >= product.c.size()) return std::nullopt;
      product.c[i + k] += term;
    }
  }
  return product;
}

bool is_near(const Coefficients& c, const Coefficients& expected, double share) {
  for (std::size_t i = 0; i < c.size(); ++i) {
    // A NaN is near nothing.
    if (!(std::fabs(c[i] - expected[i]) <= share * std::fabs(expected[i]))) return false;
  }
  return true;
}

std::string polynomial_text(const Coefficients& c) {
  constexpr std::string_view kPowers[] = {"", " x", " x^2", " x^3"};
  std::vector<std::string> terms;
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (c[i] != 0.0) terms.push_back(number_text(c[i]) + std::string(kPowers[i]));
  }
  return terms.empty() ? "0" : join(terms, " + ");
}

Matcher::Matcher(const Graph& graph, const TrainingOptions& options) : graph_(graph) {
  for (const std::string& name : options.gradient_of) gradient_of_.insert(graph.find(name));
}

bool Matcher::is_op(NodeId id, std::string_view op) const {
  if (id == kNoNode) return false;
  return trainscope::is_op(graph_.node(id), kOnnxDomain, op);
}

NodeId Matcher::made_by(ValueId v, std::string_view op) const {
  const NodeId id = v == kNoValue ? kNoNode : value(v).producer;
  return is_op(id, op) && output(id) == v ? id : kNoNode;
}

std::optional<double> Matcher::number(ValueId v) const {
  if (v == kNoValue) return std::nullopt;
  const Value& of = value(v);
  const bool varies = of.kind == ValueKind::kParameter || of.kind == ValueKind::kState;
  if (varies || !of.data || of.type.shape.elements() != 1) return std::nullopt;
  return convert(*of.data, DType::kF64).values<double>()[0];
}

std::string Matcher::why_no_number(NodeId id) const {
  if (id == kNoNode) return {};
  for (ValueId v : graph_.node(id).inputs) {
    if (v == kNoValue || value(v).kind != ValueKind::kParameter) continue;
    if (value(v).type.shape.elements() != 1) continue;
    return fmt::format("'{}' is trained, a constant is expected: freeze it (--freeze)",
                       printable(value(v).name));
  }
  return {};
}

bool Matcher::is_wanted(ValueId v) const { return graph_.is_output(v) || is_gradient_wanted(v); }

NodeId Matcher::only_reader(ValueId v) const {
  const std::vector<Use>& uses = value(v).uses;
  return uses.size() == 1 && !is_wanted(v) ? uses.front().node : kNoNode;
}

std::string Matcher::why_kept(ValueId v) const {
  const std::string name = printable(value(v).name);
  if (graph_.is_output(v)) return fmt::format("'{}' is an output of the graph", name);
  if (is_wanted(v)) return fmt::format("the gradient of '{}' is asked for", name);
  return fmt::format("'{}' has {} readers", name, value(v).uses.size());
}

ValueId Matcher::kept_inside(const std::vector<NodeId>& nodes, NodeId last) const {
  const std::unordered_set<NodeId> inside(nodes.begin(), nodes.end());
  for (NodeId id : nodes) {
    if (id == last) continue;
    for (ValueId v : graph_.node(id).outputs) {
      if (v == kNoValue) continue;
      const bool read = std::ranges::any_of(
          value(v).uses, [&inside](const Use& use) { return !inside.contains(use.node); });
      if (read || is_wanted(v)) return v;
    }
  }
  return kNoValue;
}

ValueId Matcher::input(NodeId id, std::size_t i) const {
  const std::vector<ValueId>& inputs = graph_.node(id).inputs;
  return i < inputs.size() ? inputs[i] : kNoValue;
}

ValueId Matcher::other_input(NodeId id, ValueId v) const {
  return input(id, 0) == v ? input(id, 1) : input(id, 0);
}

ValueId Matcher::square_root_of(NodeId id) const {
  const bool product = is_op(id, "Mul") && input(id, 0) == input(id, 1);
  const bool power = is_op(id, "Pow") && number(input(id, 1)) == 2.0;
  const bool square = (product || power) && value(input(id, 0)).type == value(output(id)).type;
  return square ? input(id, 0) : kNoValue;
}

bool Matcher::is_arithmetic(ValueId v) const {
  const NodeId id = value(v).producer;
  return id != kNoNode && arithmetic_of(graph_.node(id)) != nullptr && only_reader(v) != kNoNode;
}

std::optional<Polynomial> Matcher::combined(NodeId id, const std::vector<Polynomial>& p) const {
  const auto result = [&]() -> std::optional<Polynomial> {
    switch (arithmetic_of(graph_.node(id))->kind) {
      case Arithmetic::kAdd:
        return sum(p[0], p[1]);
      case Arithmetic::kSubtract:
        return difference_of(p[0], p[1]);
      case Arithmetic::kMultiply:
        return product(p[0], p[1]);
      case Arithmetic::kDivide:
        return quotient(p[0], p[1]);
      case Arithmetic::kNegate:
        return scaled(p[0], -1.0);
      case Arithmetic::kPower:
        return power(p[0], p[1]);
    }
    return std::nullopt;
  };
  std::optional<Polynomial> polynomial = result();
  if (!polynomial || is_number(*polynomial)) return std::nullopt;
  if (value(polynomial->x).type != value(output(id)).type) return std::nullopt;
  polynomial->nodes.push_back(id);
  return polynomial;
}

Polynomial Matcher::polynomial(ValueId v) const {
  std::unordered_map<ValueId, Polynomial> done;
  std::vector<ValueId> waiting{v};
  const auto finish = [&](ValueId of, Polynomial p) {
    done.insert_or_assign(of, std::move(p));
    waiting.pop_back();
  };
  while (!waiting.empty()) {
    const ValueId next = waiting.back();
    const Polynomial itself{.x = next, .c = {0.0, 1.0}};
    if (const std::optional<double> known = number(next)) {
      finish(next, number_polynomial(*known));
      continue;
    }
    if (!is_arithmetic(next) || done.size() + waiting.size() > kMostNodes) {
      finish(next, itself);
      continue;
    }
    const NodeId id = value(next).producer;
    std::vector<Polynomial> operands;
    for (ValueId operand : graph_.node(id).inputs) {
      const auto found = done.find(operand);
      if (found == done.end())
        waiting.push_back(operand);
      else
        operands.push_back(found->second);
    }
    if (waiting.back() != next) continue;  // the operands first
    std::optional<Polynomial> p = combined(id, operands);
    finish(next, p ? *std::move(p) : itself);
  }
  return done.at(v);
}

void replace_region(Rewriter& rewriter, std::vector<NodeId> nodes, NodeId last,
                    const std::function<ValueId(Builder&)>& make) {
  const Graph& graph = rewriter.graph();
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  Builder& b = rewriter.before(last);
  Provenance provenance = b.provenance();
  provenance.sources = {};
  std::unordered_set<std::string> known;
  for (NodeId id : nodes) {
    for (const std::string& source : graph.node(id).provenance.sources) {
      if (known.insert(source).second) provenance.sources.add(source);
    }
  }
  b.set_provenance(std::move(provenance));
  const ValueId made = make(b);
  CHECK_INVARIANT(graph.value(made).type == graph.value(graph.node(last).outputs[0]).type);
  rewriter.replace_node(last, {made});
  // Later nodes read earlier ones.
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    if (graph.node(*id).erased) continue;
    const bool read = std::ranges::any_of(graph.node(*id).outputs, [&graph](ValueId v) {
      return v != kNoValue && (!graph.value(v).uses.empty() || graph.is_output(v));
    });
    if (!read) rewriter.erase_into(*id, made);
  }
}

}  // namespace trainscope
