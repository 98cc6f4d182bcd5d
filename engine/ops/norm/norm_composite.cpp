// LRN and LpNormalization, written with simpler ops.
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

std::int64_t lrn_size(const OpArgs& args) {
  const std::int64_t size = args.attributes.integer("size", 0);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  require(size >= 1 && size <= kMost, ErrorCode::kBadInput,
          "attribute size is {}, expected a number in [1, {}]", size, kMost);
  return size;
}

Types lrn_shape(const OpArgs& args) {
  require(args.rank(0) >= 2, ErrorCode::kBadInput,
          "input 0 must have a batch and a channel dimension, is {}", type_text(args.type(0)));
  lrn_size(args);
  return float_same_as_first(args);
}

// The mean of x^2 over `size` channels, those beyond the ends counting as 0: a pool whose windows
// reach along [N, 1, C, the rest].
ValueId mean_square(Builder& b, ValueId x, std::int64_t size) {
  const Shape shape = b.shape(x);
  const Shape channels{shape[0], 1, shape[1], Shape(shape.span().subspan(2)).elements()};
  const ValueId squares = b.reshape(b("Mul", {x, x}), channels);
  const ValueId means = b("AveragePool", {squares},
                          {{"kernel_shape", Ints{size, 1}},
                           {"pads", Ints{(size - 1) / 2, 0, size / 2, 0}},
                           {"count_include_pad", std::int64_t{1}}});
  return b.reshape(means, shape);
}

// x / (bias + alpha / size * the sum of x^2 over the window) ^ beta
Values lrn_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const ValueId x = node.inputs[0];
  const DType dtype = args->type(0).dtype;
  if (args->type(0).elements() == 0) return {b("Identity", {x})};
  const auto number = [&](std::string_view name, double absent) {
    return b.scalar(node.attributes.number(name, absent), dtype);
  };
  const ValueId weighted = b("Mul", {mean_square(b, x, lrn_size(*args)), number("alpha", 1e-4)});
  const ValueId base = b("Add", {weighted, number("bias", 1.0)});
  return {b("Div", {x, b("Pow", {base, number("beta", 0.75)})})};
}

int norm_order(const OpArgs& args) {
  const std::int64_t order = args.attributes.integer("p", 2);
  require(order == 1 || order == 2, ErrorCode::kBadInput, "attribute p is {}; 1 and 2 exist",
          order);
  return static_cast<int>(order);
}

Types lp_normalization_shape(const OpArgs& args) {
  norm_order(args);
  args.axis("axis", -1, args.rank(0));
  return float_same_as_first(args);
}

Values lp_normalization_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const ValueId x = node.inputs[0];
  const bool absolute = norm_order(*args) == 1;
  const ValueId axes = b.ints({args->axis("axis", -1, args->rank(0))});
  const ValueId terms = absolute ? b("Abs", {x}) : b("Mul", {x, x});
  const ValueId sum = b("ReduceSum", {terms, axes}, {{"keepdims", std::int64_t{1}}});
  // Where all elements are 0 the result is 0 by definition, and its gradient. Neither a quotient
  // nor a root of that sum is formed, whose gradients would be NaN.
  const DType dtype = args->type(0).dtype;
  const ValueId none = b("Equal", {sum, b.scalar(0.0, dtype)});
  const ValueId positive = b("Where", {none, b.scalar(1.0, dtype), sum});
  const ValueId quotient = b("Div", {x, absolute ? positive : b("Sqrt", {positive})});
  return {b("Where", {none, b.scalar(0.0, dtype), quotient})};
}

}  // namespace

std::vector<OpDef> norm_composite_ops() {
  return {
      {.name = "LRN",
       .doc = "x / (bias + alpha * mean of x^2 over a window of channels, beyond the ends 0)^beta",
       .attributes = {{"size", "channels of the window; required"},
                      {"alpha", "1e-4"},
                      {"beta", "0.75"},
                      {"bias", "1"}},
       .shape = lrn_shape,
       .decompose = lrn_decomposition,
       .op_class = OpClass::kNorm,
       .traits = kComposite,
       .examples = {"[2,5,3,4]; size=3", "[2,5,3]; size=4 alpha=0.5 beta=0.5 bias=2.0",
                    "[3,4]; size=1 alpha=0.5", "[0,3,2]; size=3",
                    "[4,16,20,30]; size=5 alpha=0.1"}},
      {.name = "LpNormalization",
       .doc = "x / its norm along the axis, 0 where that is 0",
       .attributes = {{"axis", "-1"}, {"p", "order of the norm, 1 or 2 (default)"}},
       .shape = lp_normalization_shape,
       .decompose = lp_normalization_decomposition,
       .op_class = OpClass::kNorm,
       .traits = kComposite,
       .examples = {"[2,3]~", "[2,3,4]~; axis=1", "[2,3]~; p=1", "[0,3]", "[70,200]~; axis=0"}},
  };
}

}  // namespace trainscope
