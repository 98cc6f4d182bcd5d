// TokenRows, and the table of ops that work on tokens one by one.
#include "engine/passes/token_rows.h"

#include <algorithm>
#include <string_view>

#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

struct KnownOp {
  std::string_view op;
  RowKind kind;
};
// Exp, Log, Pow and their like may be infinite for rows that mean nothing: they see all rows.
constexpr KnownOp kKnownOps[] = {{"Add", RowKind::kPointwise},
                                 {"Sub", RowKind::kPointwise},
                                 {"Mul", RowKind::kPointwise},
                                 {"Sum", RowKind::kPointwise},
                                 {"Neg", RowKind::kPointwise},
                                 {"Abs", RowKind::kPointwise},
                                 {"Relu", RowKind::kPointwise},
                                 {"Tanh", RowKind::kPointwise},
                                 {"Sigmoid", RowKind::kPointwise},
                                 {"Erf", RowKind::kPointwise},
                                 {"Elu", RowKind::kPointwise},
                                 {"LeakyRelu", RowKind::kPointwise},
                                 {"Softplus", RowKind::kPointwise},
                                 {"Softsign", RowKind::kPointwise},
                                 {"Gelu", RowKind::kPointwise},
                                 {"Swish", RowKind::kPointwise},
                                 {"Celu", RowKind::kPointwise},
                                 {"Selu", RowKind::kPointwise},
                                 {"HardSigmoid", RowKind::kPointwise},
                                 {"HardSwish", RowKind::kPointwise},
                                 {"Cast", RowKind::kPointwise},
                                 {"Dropout", RowKind::kPointwise},
                                 {"RandomDropout", RowKind::kPointwise},
                                 {"Div", RowKind::kQuotient},
                                 {"LayerNormalization", RowKind::kNorm},
                                 {"RMSNormalization", RowKind::kNorm},
                                 {"MatMul", RowKind::kMatmul},
                                 {"Gemm", RowKind::kMatmul},
                                 {"BatchMatMul", RowKind::kMatmul},
                                 {"Exp", RowKind::kInPlace},
                                 {"Pow", RowKind::kInPlace},
                                 {"Sqrt", RowKind::kInPlace},
                                 {"Reciprocal", RowKind::kInPlace},
                                 {"Where", RowKind::kInPlace},
                                 {"Split", RowKind::kInPlace},
                                 {"RotaryEmbedding", RowKind::kInPlace},
                                 {"Softmax", RowKind::kInPlace},
                                 {"LogSoftmax", RowKind::kInPlace},
                                 {"CrossEntropy", RowKind::kLoss},
                                 {"WeightedCrossEntropy", RowKind::kLoss},
                                 {"NegativeLogLikelihood", RowKind::kLoss}};

}  // namespace

RowKind row_kind(const Node& node) {
  if (node.op->is_view) return RowKind::kView;
  const auto* found = std::ranges::find(kKnownOps, node.op->name, &KnownOp::op);
  return found == std::end(kKnownOps) ? RowKind::kOther : found->kind;
}

int TokenRows::axes(const Shape& shape) const {
  std::int64_t elements = 1;
  for (int axis = 0; axis < shape.rank; ++axis) {
    elements *= shape[axis];
    if (elements == rows()) return axis + 1;
  }
  return 0;
}

Shape TokenRows::flat(const Shape& shape) const {
  Shape flat{rows()};
  for (int axis = axes(shape); axis < shape.rank; ++axis) flat.push_back(shape[axis]);
  return flat;
}

bool TokenRows::are_in(const Shape& v, const Shape& whole) const {
  const int leading = axes(whole);
  if (leading == 0 || v.rank != whole.rank) return false;
  return std::ranges::equal(v.span().first(static_cast<std::size_t>(leading)),
                            whole.span().first(static_cast<std::size_t>(leading)));
}

int first_axis(const Node& node, int rank) {
  const bool counts_from_first = node.op->name == "Split" || node.op->name == "Gather";
  return normalized_axis(node.attributes.integer("axis", counts_from_first ? 0 : -1), rank);
}

}  // namespace trainscope
