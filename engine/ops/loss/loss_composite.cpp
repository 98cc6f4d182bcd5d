// Losses over elements that are written with simpler ops.
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

Types element_loss_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_types(args, 0, 1);
  return {{.dtype = args.type(0).dtype, .shape = {}}};
}

// Of all elements, a scalar.
ValueId mean(Builder& b, ValueId v) {
  return b("ReduceMean", {v}, {{"keepdims", std::int64_t{0}}});
}

double delta_of(const OpArgs& args) {
  const double delta = args.attributes.number("delta", 1.0);
  require(delta > 0.0, ErrorCode::kBadInput, "attribute delta is {}, expected a number above 0",
          delta);
  return delta;
}

Types huber_shape(const OpArgs& args) {
  delta_of(args);
  return element_loss_shape(args);
}

// With d = x - target and c = d within [-delta, delta]: c * (d - c / 2).
Values huber_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const DType dtype = args->type(0).dtype;
  const double delta = delta_of(*args);
  const ValueId d = b("Sub", {node.inputs[0], node.inputs[1]});
  const ValueId c = b("Clip", {d, b.scalar(-delta, dtype), b.scalar(delta, dtype)});
  const ValueId half = b("Mul", {c, b.scalar(0.5, dtype)});
  return {mean(b, b("Mul", {c, b("Sub", {d, half})}))};
}

struct FocalNumbers {
  double gamma;
  double alpha;  // below 0: no weights
};

FocalNumbers focal_numbers(const OpArgs& args) {
  const FocalNumbers numbers{.gamma = args.attributes.number("gamma", 2.0),
                             .alpha = args.attributes.number("alpha", 0.25)};
  require(numbers.gamma >= 0.0, ErrorCode::kBadInput,
          "attribute gamma is {}, expected a number of 0 or more", numbers.gamma);
  require(numbers.alpha <= 1.0, ErrorCode::kBadInput,
          "attribute alpha is {}, expected a number of at most 1", numbers.alpha);
  return numbers;
}

Types focal_shape(const OpArgs& args) {
  focal_numbers(args);
  return element_loss_shape(args);
}

// a * target + b * (1 - target), both given as values of x's shape or scalars.
ValueId by_target(Builder& b, ValueId target, ValueId of_one, ValueId of_zero) {
  const ValueId one = b.scalar(1.0, b.type(target).dtype);
  return b("Add", {b("Mul", {of_one, target}), b("Mul", {of_zero, b("Sub", {one, target})})});
}

// Cross entropy times what is missing to certainty, to the power gamma: sigmoid(-x) where the
// target is 1 and sigmoid(x) where it is 0, which no difference from 1 makes inexact.
Values focal_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const FocalNumbers numbers = focal_numbers(*args);
  const ValueId x = node.inputs[0];
  const ValueId target = node.inputs[1];
  const DType dtype = args->type(0).dtype;
  ValueId loss = b("Sub", {b("Softplus", {x}), b("Mul", {x, target})});
  if (numbers.gamma != 0.0) {
    const ValueId missing = by_target(b, target, b("Sigmoid", {b("Neg", {x})}), b("Sigmoid", {x}));
    loss = b("Mul", {loss, b("Pow", {missing, b.scalar(numbers.gamma, dtype)})});
  }
  if (numbers.alpha >= 0.0) {
    const ValueId weight =
        by_target(b, target, b.scalar(numbers.alpha, dtype), b.scalar(1.0 - numbers.alpha, dtype));
    loss = b("Mul", {loss, weight});
  }
  return {mean(b, loss)};
}

}  // namespace

std::vector<OpDef> loss_composite_ops() {
  return {
      {.name = "HuberLoss",
       .doc =
           "x, target -> mean over all elements of d^2 / 2 where |d| <= delta, else delta * (|d| "
           "- delta / 2); d = x - target",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"delta", "above 0, default 1"}},
       .shape = huber_shape,
       .decompose = huber_decomposition,
       .op_class = OpClass::kLoss,
       .traits = kComposite,
       .examples = {"[2,3]~, [2,3]~", "[3]={1.0,2.0,3.0}, [3]={1.5,5.0,-3.0}; delta=0.7", "[], []",
                    "[0,2], [0,2]", "[70,301], [70,301]; delta=20.0"}},
      {.name = "FocalLoss",
       .doc = "x, target -> mean over all elements of a * (1 - q)^gamma * the binary cross entropy "
              "of p = sigmoid(x): q = p * target + (1 - p) * (1 - target), a = alpha * target + (1 "
              "- alpha) * (1 - target), or 1 with an alpha below 0",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"gamma", "0 or more, default 2"}, {"alpha", "at most 1, default 0.25"}},
       .shape = focal_shape,
       .decompose = focal_decomposition,
       .op_class = OpClass::kLoss,
       .traits = kComposite,
       .examples = {"[2,3]~, [2,3]={0.0,1.0,1.0,0.0,1.0,0.0}",
                    "[4]={-3.0,0.5,2.0,8.0}, [4]={0.0,1.0,0.25,1.0}; gamma=1.5 alpha=-1.0",
                    "[3]~, [3]={0.0,1.0,1.0}; gamma=0.0 alpha=0.5", "[0,2], [0,2]"}},
  };
}

}  // namespace trainscope
