// Op rows: trigonometric and hyperbolic functions (Tanh is with the activations) and their
// inverses.
#include "engine/ir/builder.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

ValueId one(const GradArgs& g) { return g.b.scalar(1.0, g.type(g.x[0]).dtype); }

ValueId times_dy(const GradArgs& g, ValueId slope) { return g.b("Mul", {g.dy[0], slope}); }

ValueId square_plus_one(const GradArgs& g, ValueId v) {
  return g.b("Add", {g.b("Mul", {v, v}), one(g)});
}

// 1 - x^2 as a product, which is exact near 1 too.
ValueId one_minus_square(const GradArgs& g) {
  return g.b("Mul", {g.b("Sub", {one(g), g.x[0]}), g.b("Add", {one(g), g.x[0]})});
}

ValueId arc_slope(const GradArgs& g) {
  return g.b("Div", {g.dy[0], g.b("Sqrt", {one_minus_square(g)})});
}

// --- The rules -----------------------------------------------------------------------------------
Values sin_gradient(const GradArgs& g) { return {times_dy(g, g.b("Cos", {g.x[0]}))}; }
Values cos_gradient(const GradArgs& g) { return {g.b("Neg", {times_dy(g, g.b("Sin", {g.x[0]}))})}; }
Values tan_gradient(const GradArgs& g) { return {times_dy(g, square_plus_one(g, g.y[0]))}; }
Values asin_gradient(const GradArgs& g) { return {arc_slope(g)}; }
Values acos_gradient(const GradArgs& g) { return {g.b("Neg", {arc_slope(g)})}; }
Values atan_gradient(const GradArgs& g) {
  return {g.b("Div", {g.dy[0], square_plus_one(g, g.x[0])})};
}
Values sinh_gradient(const GradArgs& g) { return {times_dy(g, g.b("Cosh", {g.x[0]}))}; }
Values cosh_gradient(const GradArgs& g) { return {times_dy(g, g.b("Sinh", {g.x[0]}))}; }
Values asinh_gradient(const GradArgs& g) {
  return {g.b("Div", {g.dy[0], g.b("Sqrt", {square_plus_one(g, g.x[0])})})};
}
Values acosh_gradient(const GradArgs& g) {
  const ValueId below = g.b("Sub", {g.x[0], one(g)});
  const ValueId square = g.b("Mul", {below, g.b("Add", {g.x[0], one(g)})});
  return {g.b("Div", {g.dy[0], g.b("Sqrt", {square})})};
}
Values atanh_gradient(const GradArgs& g) { return {g.b("Div", {g.dy[0], one_minus_square(g)})}; }

struct Function {
  std::string_view name;
  std::string_view doc;
  GradientRule gradient;
  OpTraits traits = kWholeValues;
};

OpDef row_of(const Function& function, std::vector<std::string_view> examples) {
  return {.name = function.name,
          .doc = function.doc,
          .shape = float_same_as_first,
          .gradient = function.gradient,
          .cost = per_output_element<8>,
          .in_place = first_in_place,
          .op_class = OpClass::kPointwise,
          .traits = function.traits,
          .examples = std::move(examples)};
}

const std::vector<std::string_view> kAnywhere = {"[2,3]", "[]", "[0]", "[20,1001]"};
// Within (-1, 1): numbers 0.03 apart around 0.
const std::vector<std::string_view> kNearZero = {"[2,3]~", "[]~", "[0]", "[5,13]~"};

}  // namespace

std::vector<OpDef> trigonometric_ops() {
  return {
      row_of({"Sin", "sine", sin_gradient, kOtherPointwise}, kAnywhere),
      row_of({"Cos", "cosine", cos_gradient, kOtherPointwise}, kAnywhere),
      row_of({"Tan", "tangent", tan_gradient}, kNearZero),
      row_of({"Asin", "inverse of the sine; NaN outside [-1, 1]", asin_gradient}, kNearZero),
      row_of({"Acos", "inverse of the cosine; NaN outside [-1, 1]", acos_gradient}, kNearZero),
      row_of({"Atan", "inverse of the tangent", atan_gradient}, kAnywhere),
      row_of({"Sinh", "hyperbolic sine", sinh_gradient}, kAnywhere),
      row_of({"Cosh", "hyperbolic cosine", cosh_gradient}, kAnywhere),
      row_of({"Asinh", "inverse of the hyperbolic sine", asinh_gradient}, kAnywhere),
      row_of({"Acosh", "inverse of the hyperbolic cosine; NaN below 1", acosh_gradient},
             {"[2,3]>1", "[]>1", "[0]>1", "[20,1001]>1"}),
      row_of({"Atanh", "inverse of the hyperbolic tangent; NaN outside [-1, 1]", atanh_gradient},
             kNearZero),
  };
}

}  // namespace trainscope
