// Einsum: diagonals, sums, and contractions of two operands at a time.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- Equation ------------------------------------------------------------------------------------

// An axis: a letter, or, below 0, an axis of the ellipsis: -1 is its last.
using Label = int;
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> inputs;  // one label for each axis of each operand
  Labels output;
  std::map<Label, std::int64_t> sizes;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// "ab...c" as labels; the ellipsis stands for `ellipsis` axes.
Labels parse_term(std::string_view term, int ellipsis) {
  constexpr std::string_view kDots = "...";
  Labels labels;
  bool dots_seen = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) {
      labels.push_back(term[i]);
      continue;
    }
    require(!dots_seen && term.substr(i, kDots.size()) == kDots, ErrorCode::kBadInput,
            "term '{}' of the equation must hold letters and at most one '...'", printable(term));
    dots_seen = true;
    for (int axis = ellipsis; axis > 0; --axis) labels.push_back(-axis);
    i += kDots.size() - 1;
  }
  return labels;
}

bool has_ellipsis(std::string_view term) { return term.find('.') != std::string_view::npos; }

// The operand's axes beyond its letters belong to the ellipsis.
Labels operand_labels(std::string_view term, const TensorType& type) {
  const int letters = static_cast<int>(parse_term(term, 0).size());
  const int rank = type.shape.rank;
  require(letters == rank || (has_ellipsis(term) && letters < rank), ErrorCode::kBadInput,
          "term '{}' of the equation does not fit an operand {}", printable(term), type_text(type));
  return parse_term(term, rank - letters);
}

// Sizes by label; axes of size 1 are broadcast, as in numpy.
void add_sizes(Equation& equation, const Labels& labels, const Shape& shape) {
  for (int axis = 0; axis < shape.rank; ++axis) {
    const Label label = labels[static_cast<std::size_t>(axis)];
    const auto [entry, fresh] = equation.sizes.emplace(label, shape[axis]);
    if (fresh || entry->second == shape[axis] || shape[axis] == 1) continue;
    require(entry->second == 1, ErrorCode::kBadInput,
            "two axes with the same label in the equation have {} and {} elements", entry->second,
            shape[axis]);
    entry->second = shape[axis];
  }
}

// Without "->": the ellipsis, then the letters that occur once, in the order of the alphabet.
Labels implied_output(const Equation& equation) {
  std::map<Label, int> count;
  for (const Labels& labels : equation.inputs) {
    for (Label label : labels) ++count[label];
  }
  Labels output;
  for (const auto& [label, times] : count) {
    if (label < 0 || times == 1) output.push_back(label);
  }
  return output;
}

Labels stated_output(const Equation& equation, std::string_view term) {
  int ellipsis = 0;
  for (const auto& [label, size] : equation.sizes) ellipsis = std::max(ellipsis, -label);
  Labels output = parse_term(term, ellipsis);
  for (std::size_t i = 0; i < output.size(); ++i) {
    require(equation.sizes.contains(output[i]), ErrorCode::kBadInput,
            "output '{}' of the equation has a letter that no operand has", printable(term));
    const bool again = std::find(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(i),
                                 output[i]) != output.begin() + static_cast<std::ptrdiff_t>(i);
    require(!again, ErrorCode::kBadInput, "output '{}' of the equation has a letter twice",
            printable(term));
  }
  return output;
}

Equation parse_equation(const OpArgs& args) {
  const std::string text = without_spaces(args.attributes.text("equation", ""));
  const std::size_t arrow = text.find("->");
  const std::string_view left = std::string_view(text).substr(0, arrow);
  const auto terms = split(left, ',');
  require(std::ssize(terms) == args.input_count(), ErrorCode::kBadInput,
          "equation '{}' has {} terms for {} operands", printable(text), terms.size(),
          args.input_count());
  Equation equation;
  for (int i = 0; i < args.input_count(); ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is left out", i);
    equation.inputs.push_back(operand_labels(terms[static_cast<std::size_t>(i)], args.type(i)));
    add_sizes(equation, equation.inputs.back(), args.shape(i));
  }
  equation.output = arrow == std::string::npos
                        ? implied_output(equation)
                        : stated_output(equation, std::string_view(text).substr(arrow + 2));
  return equation;
}

Types einsum_shape(const OpArgs& args) {
  require_number(args, 0);
  require_same_dtypes(args);
  const Equation equation = parse_equation(args);
  Ints dims;
  for (Label label : equation.output) dims.push_back(equation.sizes.at(label));
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(dims)}};
}

// --- Operands ------------------------------------------------------------------------------------

struct Operand {
  ValueId value = kNoValue;
  Labels labels;  // distinct
};

std::int64_t elements_along(const Equation& equation, const Labels& labels) {
  std::int64_t size = 1;
  for (Label label : labels) size *= equation.sizes.at(label);
  return size;
}

Shape shape_of(const Equation& equation, const Labels& labels) {
  Ints dims;
  for (Label label : labels) dims.push_back(equation.sizes.at(label));
  return checked_shape(dims);
}

Operand in_order(Builder& b, const Operand& operand, const Labels& wanted) {
  if (operand.labels == wanted) return operand;
  Ints permutation;
  for (Label label : wanted) {
    const auto place = std::find(operand.labels.begin(), operand.labels.end(), label);
    permutation.push_back(place - operand.labels.begin());
  }
  return {.value = transposed(b, operand.value, permutation), .labels = wanted};
}

// Axes of size 1 whose label is longer elsewhere are broadcast: this operand does without them.
Operand without_broadcast_axes(Builder& b, const Equation& equation, const Operand& operand) {
  const Shape from = b.shape(operand.value);
  Operand result;
  Shape shape;
  for (int axis = 0; axis < from.rank; ++axis) {
    const Label label = operand.labels[static_cast<std::size_t>(axis)];
    if (from[axis] == 1 && equation.sizes.at(label) != 1) continue;
    shape.push_back(from[axis]);
    result.labels.push_back(label);
  }
  result.value = b.reshape(operand.value, shape);
  return result;
}

// Two axes of one label become its diagonal: with both at the end as one axis of n * n elements,
// every (n + 1)-th of those.
Operand diagonal(Builder& b, const Operand& operand, std::size_t first, std::size_t second) {
  Ints permutation;
  Labels labels;
  for (std::size_t axis = 0; axis < operand.labels.size(); ++axis) {
    if (axis == first || axis == second) continue;
    permutation.push_back(static_cast<std::int64_t>(axis));
    labels.push_back(operand.labels[axis]);
  }
  permutation.push_back(static_cast<std::int64_t>(first));
  permutation.push_back(static_cast<std::int64_t>(second));
  labels.push_back(operand.labels[first]);
  const ValueId moved = transposed(b, operand.value, permutation);
  Shape flat = b.shape(moved);
  const std::int64_t n = flat[flat.rank - 1];
  --flat.rank;
  flat[flat.rank - 1] = checked_multiply(n, n);
  const ValueId axis = b.ints({flat.rank - 1});
  return {.value = b("Slice",
                     {b.reshape(moved, flat), b.ints({0}), b.ints({n * n}), axis, b.ints({n + 1})}),
          .labels = labels};
}

Operand without_repeated_labels(Builder& b, Operand operand) {
  for (std::size_t first = 0; first < operand.labels.size();) {
    const auto begin = operand.labels.begin() + static_cast<std::ptrdiff_t>(first);
    const auto again = std::find(begin + 1, operand.labels.end(), *begin);
    if (again == operand.labels.end()) {
      ++first;
      continue;
    }
    operand = diagonal(b, operand, first, static_cast<std::size_t>(again - operand.labels.begin()));
    first = 0;
  }
  return operand;
}

// The sum over the labels that are not kept.
Operand summed(Builder& b, const Operand& operand, const Labels& kept) {
  Ints axes;
  Labels labels;
  for (std::size_t axis = 0; axis < operand.labels.size(); ++axis) {
    if (contains(kept, operand.labels[axis])) {
      labels.push_back(operand.labels[axis]);
    } else {
      axes.push_back(static_cast<std::int64_t>(axis));
    }
  }
  if (axes.empty()) return operand;
  return {.value = b("ReduceSum", {operand.value, b.ints(axes)}, {{"keepdims", std::int64_t{0}}}),
          .labels = labels};
}

// --- Contractions --------------------------------------------------------------------------------

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The labels of two operands by their role in the contraction.
struct Roles {
  Labels batch;       // in both, kept
  Labels contracted;  // in both, summed over
  Labels left;        // in the left only
  Labels right;
};

Roles roles_of(const Operand& left, const Operand& right, const Labels& kept) {
  Roles roles;
  for (Label label : left.labels) {
    const bool shared = contains(right.labels, label);
    Labels& role = !shared ? roles.left : contains(kept, label) ? roles.batch : roles.contracted;
    role.push_back(label);
  }
  for (Label label : right.labels) {
    if (!contains(left.labels, label)) roles.right.push_back(label);
  }
  return roles;
}

// [batch, m, k] times [batch, k, n]. With k = 1 it is a product element by element, and of
// integers, for which there is no MatMul, such products and their sum.
ValueId batch_matmul(Builder& b, ValueId left, ValueId right) {
  const Shape l = b.shape(left);
  const Shape r = b.shape(right);
  if (l[2] == 1) return b("Mul", {left, right});
  if (is_float(b.type(left).dtype)) return b("MatMul", {left, right});
  const ValueId products =
      b("Mul", {b.reshape(left, {l[0], l[1], l[2], 1}), b.reshape(right, {r[0], 1, r[1], r[2]})});
  return b("ReduceSum", {products, b.ints({2})}, {{"keepdims", std::int64_t{0}}});
}

Operand contract(Builder& b, const Equation& equation, const Operand& left, const Operand& right,
                 const Labels& kept) {
  const Roles roles = roles_of(left, right, kept);
  const std::int64_t batch = elements_along(equation, roles.batch);
  const std::int64_t inner = elements_along(equation, roles.contracted);
  const Operand l = in_order(b, left, joined(joined(roles.batch, roles.left), roles.contracted));
  const Operand r = in_order(b, right, joined(joined(roles.batch, roles.contracted), roles.right));
  const ValueId matmul =
      batch_matmul(b, b.reshape(l.value, {batch, elements_along(equation, roles.left), inner}),
                   b.reshape(r.value, {batch, inner, elements_along(equation, roles.right)}));
  const Labels labels = joined(joined(roles.batch, roles.left), roles.right);
  return {.value = b.reshape(matmul, shape_of(equation, labels)), .labels = labels};
}

// Labels that the output or an operand from `next` on needs.
Labels needed(const Equation& equation, const std::vector<Operand>& operands, std::size_t next) {
  Labels labels = equation.output;
  for (std::size_t i = next; i < operands.size(); ++i) labels = joined(labels, operands[i].labels);
  return labels;
}

Values einsum_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Equation equation = parse_equation(*args);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Operand operand{.value = node.inputs[i], .labels = equation.inputs[i]};
    operands.push_back(without_repeated_labels(b, without_broadcast_axes(b, equation, operand)));
  }
  Operand result = summed(b, operands[0], needed(equation, operands, 1));
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Labels later = needed(equation, operands, i + 1);
    const Operand next = summed(b, operands[i], joined(later, result.labels));
    result = summed(b, contract(b, equation, result, next, later), later);
  }
  return {own_value(b, node, in_order(b, result, equation.output).value)};
}

}  // namespace

std::vector<OpDef> einsum_ops() {
  return {
      {.name = "Einsum",
       .doc = "sums of products over labelled axes, as numpy.einsum",
       .min_inputs = 1,
       .max_inputs = kVariadic,
       .attributes = {{"equation",
                       "'ij,jk->ik': labels of the operands' axes and of the result's"}},
       .shape = einsum_shape,
       .decompose = einsum_decomposition,
       .op_class = OpClass::kMatmul,
       .traits = kComposite,
       .examples = {"[2,3], [3,4]; equation='ij,jk->ik'",
                    "[5,2,3], [5,3,4]; equation='bij, bjk -> bik'",
                    "[3,4]; equation='ij->i'",
                    "[3,4]; equation='ij->ji'",
                    "[5], [5]; equation='i,i'",
                    "[3,5,5]; equation='...ii ->...i'",
                    "[4,4,4]; equation='iii->i'",
                    "[4,4]; equation='ii'",
                    "[2,3], [4]; equation='ij,k->kji'",
                    "[2,1,3,4], [5,4,2]; equation='...ij,...jk->...ik'",
                    "[2,3], [3,4], [4,2]; equation='ij,jk,ki->'",
                    "[2,3], [3,4], [2]; equation='ij,jk,i->k'",
                    "[2,1], [2,3]; equation='ij,ij->ij'",
                    "[2,3], [2,3]; equation='ij,ij->i'",
                    "[2,3], []; equation='ij,->ji'",
                    "[0,3], [3,4]; equation='ij,jk->ik'",
                    "[3]; equation='i->i'",
                    "[2,3,4,5], [2,6,4,5]; equation='bqhd,bkhd->bhqk'",
                    "[8,60,70], [8,70,50]; equation='bij,bjk->bik'",
                    "i64[2,3]<9, i64[3,4]<9; equation='ij,jk->ik'"}},
  };
}

}  // namespace trainscope
