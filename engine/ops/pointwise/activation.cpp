// Op rows: activation functions and their gradients.
#include "engine/ops/pointwise/activation.h"

#include <utility>

#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// Inputs dy and y (or x) of one type.
Types gradient_shape(const OpArgs& args) {
  require_same_types(args, 0, 1);
  return float_same_as_first(args);
}

ValueId times(Builder& b, ValueId v, double factor) {
  return b("Mul", {v, b.scalar(factor, b.type(v).dtype)});
}

// The node's gradient op of its output: only y is kept for the backward.
template <const char* kOp>
Values by_output(const GradArgs& g) {
  return {g.b(kOp, {g.dy[0], g.y[0]})};
}
constexpr char kReluGrad[] = "ReluGrad";
constexpr char kTanhGrad[] = "TanhGrad";
constexpr char kSigmoidGrad[] = "SigmoidGrad";

// dy * (y > 0) is linear in dy and constant in y almost everywhere.
Values relu_grad_gradient(const GradArgs& g) {
  return {g.b("ReluGrad", {g.dy[0], g.x[1]}), kNoValue};
}

// z = dy (1 - y^2): dz/dy = -2 y dy
Values tanh_grad_gradient(const GradArgs& g) {
  const auto by_y = [&g] {
    return g.b("Mul", {g.b("Mul", {g.dy[0], g.x[0]}), times(g.b, g.x[1], -2.0)});
  };
  return {g.wants(0) ? g.b("TanhGrad", {g.dy[0], g.x[1]}) : kNoValue,
          g.wants(1) ? by_y() : kNoValue};
}

// z = dy y (1 - y): dz/dy = dy (1 - 2 y)
Values sigmoid_grad_gradient(const GradArgs& g) {
  const auto by_y = [&g] {
    const ValueId one = g.b.scalar(1.0, g.type(g.x[1]).dtype);
    const ValueId slope = g.b("Add", {times(g.b, g.x[1], -2.0), one});
    return g.b("Mul", {g.b("Mul", {g.dy[0], g.x[0]}), slope});
  };
  return {g.wants(0) ? g.b("SigmoidGrad", {g.dy[0], g.x[1]}) : kNoValue,
          g.wants(1) ? by_y() : kNoValue};
}

// z = dy c e^(-x^2): dz/dx = -2 x z
Values erf_grad_gradient(const GradArgs& g) {
  const auto by_x = [&g] {
    return g.b("Mul", {g.b("Mul", {g.dy[0], g.y[0]}), times(g.b, g.x[1], -2.0)});
  };
  return {g.wants(0) ? g.b("ErfGrad", {g.dy[0], g.x[1]}) : kNoValue,
          g.wants(1) ? by_x() : kNoValue};
}

// --- Functions with a parameter ------------------------------------------------------------------
constexpr AttributeSpec kEluAlpha{"alpha", "the limit at -infinity is -alpha; default 1"};
constexpr AttributeSpec kLeakyAlpha{"alpha", "slope below 0, default 0.01"};

double elu_alpha(const Attributes& attributes) { return attributes.number("alpha", 1.0); }
double leaky_alpha(const Attributes& attributes) { return attributes.number("alpha", 0.01); }

Params elu_params(const OpArgs& args) { return AlphaParams{.alpha = elu_alpha(args.attributes)}; }
Params leaky_params(const OpArgs& args) {
  return AlphaParams{.alpha = leaky_alpha(args.attributes)};
}

// A negative alpha makes y positive everywhere, so that the branch must be told by x.
Values elu_gradient(const GradArgs& g) {
  const double alpha = elu_alpha(g.node.attributes);
  if (alpha >= 0.0) return {g.b("EluGrad", {g.dy[0], g.y[0]}, {{"alpha", alpha}})};
  const DType dtype = g.type(g.y[0]).dtype;
  const ValueId slope = g.b("Add", {g.y[0], g.b.scalar(alpha, dtype)});
  const ValueId positive = g.b("Greater", {g.x[0], g.b.scalar(0.0, dtype)});
  return {g.b("Where", {positive, g.dy[0], g.b("Mul", {g.dy[0], slope})})};
}

// y has the sign of x unless alpha is negative.
Values leaky_relu_gradient(const GradArgs& g) {
  const double alpha = leaky_alpha(g.node.attributes);
  const ValueId sign = alpha >= 0.0 ? g.y[0] : g.x[0];
  return {g.b("LeakyReluGrad", {g.dy[0], sign}, {{"alpha", alpha}})};
}

Values leaky_relu_grad_gradient(const GradArgs& g) {
  return {g.b("LeakyReluGrad", {g.dy[0], g.x[1]}, g.node.attributes), kNoValue};
}

// --- Softplus, Softsign --------------------------------------------------------------------------
Values softplus_gradient(const GradArgs& g) {
  return {g.b("Mul", {g.dy[0], g.b("Sigmoid", {g.x[0]})})};
}

// dy / (1 + |x|)^2; 1 - |y| would cancel for a large x.
Values softsign_gradient(const GradArgs& g) {
  const ValueId one = g.b.scalar(1.0, g.type(g.x[0]).dtype);
  const ValueId divisor = g.b("Add", {g.b("Abs", {g.x[0]}), one});
  return {g.b("Div", {g.b("Div", {g.dy[0], divisor}), divisor})};
}

std::vector<OpDef> functions() {
  return {
      {.name = "Relu",
       .doc = "max(x, 0); NaN stays NaN",
       .shape = float_same_as_first,
       .gradient = by_output<kReluGrad>,
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]~", "[]~", "[0]", "[70,1001]~"}},
      {.name = "Tanh",
       .doc = "hyperbolic tangent",
       .shape = float_same_as_first,
       .gradient = by_output<kTanhGrad>,
       .cost = per_output_element<16>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]", "[]", "[0]", "[20,1001]"}},
      {.name = "Sigmoid",
       .doc = "1 / (1 + e^-x)",
       .shape = float_same_as_first,
       .gradient = by_output<kSigmoidGrad>,
       .cost = per_output_element<12>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]", "[]", "[0]", "[20,1001]"}},
      {.name = "Erf",
       .doc = "Gauss error function",
       .shape = float_same_as_first,
       .gradient = [](const GradArgs& g) -> Values {
         return {g.b("ErfGrad", {g.dy[0], g.x[0]})};
       },
       .cost = per_output_element<16>,
       .in_place = first_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]", "[]", "[0]", "[20,1001]"}},
  };
}

std::vector<OpDef> further_functions() {
  return {
      {.name = "Elu",
       .doc = "x where x > 0, else alpha * (e^x - 1)",
       .attributes = {kEluAlpha},
       .params = elu_params,
       .shape = float_same_as_first,
       .gradient = elu_gradient,
       .cost = per_output_element<10>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]~", "[]~", "[0]", "[2,3]~; alpha=0.5", "[2,3]~; alpha=-0.5",
                    "[2,3]~; alpha=0.0", "[20,1001]~"}},
      {.name = "LeakyRelu",
       .doc = "x where x > 0, else alpha * x",
       .attributes = {kLeakyAlpha},
       .params = leaky_params,
       .shape = float_same_as_first,
       .gradient = leaky_relu_gradient,
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]~", "[]~", "[0]", "[2,3]~; alpha=0.5", "[2,3]~; alpha=-0.5",
                    "[2,3]~; alpha=0.0", "[70,1001]~"}},
      {.name = "Softplus",
       .doc = "log(1 + e^x)",
       .shape = float_same_as_first,
       .gradient = softplus_gradient,
       .cost = per_output_element<18>,
       .in_place = first_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]", "[]", "[0]", "[4]={-200,-20,20,200}", "[20,1001]"}},
      // Not decomposed: through Div and Abs the gradient would lose its digits for a large x.
      {.name = "Softsign",
       .doc = "x / (1 + |x|)",
       .shape = float_same_as_first,
       .gradient = softsign_gradient,
       .cost = per_output_element<5>,
       .in_place = first_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwise,
       .examples = {"[2,3]~", "[]~", "[0]", "[70,1001]~"}},
  };
}

// Ops of their own because each is one pass where simpler ops would write temporaries.
std::vector<OpDef> gradients() {
  return {
      {.name = "ReluGrad",
       .doc = "dy where y > 0, else 0, of inputs dy, y = Relu(x)",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = gradient_shape,
       .gradient = relu_grad_gradient,
       .cost = per_output_element<1>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]~", "[0], [0]", "[70,1001], [70,1001]~"}},
      {.name = "TanhGrad",
       .doc = "dy * (1 - y^2) of inputs dy, y = Tanh(x)",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = gradient_shape,
       .gradient = tanh_grad_gradient,
       .cost = per_output_element<3>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]", "[0], [0]", "[70,1001], [70,1001]"}},
      {.name = "SigmoidGrad",
       .doc = "dy * y * (1 - y) of inputs dy, y = Sigmoid(x)",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = gradient_shape,
       .gradient = sigmoid_grad_gradient,
       .cost = per_output_element<3>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]", "[0], [0]", "[70,1001], [70,1001]"}},
      {.name = "ErfGrad",
       .doc = "dy * 2 / sqrt(pi) * e^(-x^2) of inputs dy, x",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = gradient_shape,
       .gradient = erf_grad_gradient,
       .cost = per_output_element<11>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]", "[0], [0]", "[20,1001], [20,1001]"}},
      {.name = "EluGrad",
       .doc = "dy where y > 0, else dy * (y + alpha), of inputs dy, y = Elu(x); alpha >= 0",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kEluAlpha},
       .params = elu_params,
       .shape = gradient_shape,
       .cost = per_output_element<2>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]~", "[0], [0]", "[70,1001], [70,1001]~; alpha=0.5"}},
      {.name = "LeakyReluGrad",
       .doc = "dy where v > 0, else alpha * dy, of inputs dy, v with the sign of LeakyRelu's x",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kLeakyAlpha},
       .params = leaky_params,
       .shape = gradient_shape,
       .gradient = leaky_relu_grad_gradient,
       .cost = per_output_element<1>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kActivation,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]~", "[0], [0]", "[70,1001], [70,1001]~; alpha=0.5"}},
  };
}

}  // namespace

std::vector<OpDef> activation_ops() {
  std::vector<OpDef> rows = functions();
  for (auto* more : {&further_functions, &gradients, &composite_activation_ops}) {
    for (OpDef& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace trainscope
