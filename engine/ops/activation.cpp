// Op rows: activation functions and their gradients.
#include "engine/ir/builder.h"
#include "engine/ops/cost_rules.h"
#include "engine/ops/gradient_rules.h"
#include "engine/ops/shape_rules.h"

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

std::vector<OpDef> functions() {
  return {
      {.name = "Relu",
       .doc = "max(x, 0); NaN stays NaN",
       .shape = float_same_as_first,
       .gradient = by_output<kReluGrad>,
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .examples = {"[2,3]~", "[]~", "[0]", "[70,1001]~"}},
      {.name = "Tanh",
       .doc = "hyperbolic tangent",
       .shape = float_same_as_first,
       .gradient = by_output<kTanhGrad>,
       .cost = per_output_element<16>,
       .in_place = first_in_place,
       .examples = {"[2,3]", "[]", "[0]", "[20,1001]"}},
      {.name = "Sigmoid",
       .doc = "1 / (1 + e^-x)",
       .shape = float_same_as_first,
       .gradient = by_output<kSigmoidGrad>,
       .cost = per_output_element<12>,
       .in_place = first_in_place,
       .examples = {"[2,3]", "[]", "[0]", "[20,1001]"}},
      {.name = "Erf",
       .doc = "Gauss error function",
       .shape = float_same_as_first,
       .gradient = [](const GradArgs& g) -> Values {
         return {g.b("ErfGrad", {g.dy[0], g.x[0]})};
       },
       .cost = per_output_element<16>,
       .in_place = first_in_place,
       .examples = {"[2,3]", "[]", "[0]", "[20,1001]"}},
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
       .examples = {"[2,3], [2,3]", "[0], [0]", "[20,1001], [20,1001]"}},
  };
}

}  // namespace

std::vector<OpDef> activation_ops() {
  std::vector<OpDef> rows = functions();
  for (OpDef& row : gradients()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace trainscope
