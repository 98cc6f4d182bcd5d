// Op rows: arithmetic element by element, with numpy broadcasting.
#include "engine/ops/pointwise/pointwise.h"

#include <utility>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

Values add_gradient(const GradArgs& g) {
  const auto dy = [&g] { return g.dy[0]; };
  return {gradient_of_input(g, 0, dy), gradient_of_input(g, 1, dy)};
}

Values sub_gradient(const GradArgs& g) {
  const auto dy = [&g] { return g.dy[0]; };
  const ValueId db = gradient_of_input(g, 1, dy);
  return {gradient_of_input(g, 0, dy), db == kNoValue ? kNoValue : g.b("Neg", {db})};
}

Values mul_gradient(const GradArgs& g) {
  return {gradient_of_input(g, 0,
                            [&g] {
                              return g.b("Mul", {g.dy[0], g.x[1]});
                            }),
          gradient_of_input(g, 1, [&g] {
            return g.b("Mul", {g.dy[0], g.x[0]});
          })};
}

// d(a/b)/db = -y/b. Along broadcast axes b is constant, so that the division can follow the sum.
ValueId divisor_gradient(const GradArgs& g) {
  const Shape shape = g.type(g.x[1]).shape;
  if (shape == g.type(g.y[0]).shape) {
    return g.b("Neg", {g.b("Mul", {g.b("Div", {g.dy[0], g.x[1]}), g.y[0]})});
  }
  const ValueId sum = g.b.sum_to(g.b("Mul", {g.dy[0], g.y[0]}), shape);
  return g.b("Neg", {g.b("Div", {sum, g.x[1]})});
}

Values div_gradient(const GradArgs& g) {
  return {gradient_of_input(g, 0,
                            [&g] {
                              return g.b("Div", {g.dy[0], g.x[1]});
                            }),
          g.wants(1) ? divisor_gradient(g) : kNoValue};
}

// --- Mod -----------------------------------------------------------------------------------------
ModParams mod_params(const OpArgs& args) {
  return {.truncated = args.attributes.integer("fmod", 0) != 0};
}

Types mod_shape(const OpArgs& args) { return broadcast_numbers(args); }

// y = a - b * trunc(a / b), or floor(a / b): the quotient is constant almost everywhere.
Values mod_gradient(const GradArgs& g) {
  const auto by_dividend = [&g] { return g.dy[0]; };
  const auto by_divisor = [&g] {
    const ValueId quotient = g.b("Div", {g.b("Sub", {g.y[0], g.x[0]}), g.x[1]});
    return g.b("Mul", {g.dy[0], quotient});
  };
  return {gradient_of_input(g, 0, by_dividend), gradient_of_input(g, 1, by_divisor)};
}

// --- Sum, Mean -----------------------------------------------------------------------------------
constexpr char kAdd[] = "Add";

Types mean_shape(const OpArgs& args) {
  require_float(args, 0);
  return broadcast_given_numbers(args);
}

Values mean_decomposition(Builder& b, const Node& node) {
  const ValueId sum = folded<kAdd>(b, node)[0];
  const DType dtype = b.type(sum).dtype;
  return {b("Div", {sum, b.scalar(static_cast<double>(node.inputs.size()), dtype)})};
}

// --- Pow -----------------------------------------------------------------------------------------
Values pow_gradient(const GradArgs& g) {
  const auto by_base = [&g] { return g.b("PowGrad", {g.dy[0], g.x[0], g.x[1]}); };
  const auto by_exponent = [&g] { return g.b("PowExponentGrad", {g.dy[0], g.x[0], g.y[0]}); };
  ValueId d_exponent = gradient_of_input(g, 1, by_exponent);
  const DType exponent = g.type(g.x[1]).dtype;
  if (d_exponent != kNoValue && exponent != g.type(d_exponent).dtype) {
    d_exponent = cast_to(g.b, d_exponent, exponent);
  }
  return {gradient_of_input(g, 0, by_base), d_exponent};
}

// Whether a kernel has the pair.
bool has_power(DType base, DType exponent) {
  if (exponent == DType::kI32 || exponent == DType::kI64) return true;
  if (is_narrow_integer(base)) return is_narrow_integer(exponent);
  const bool float_exponent = exponent == DType::kF32 || exponent == DType::kF64;
  return float_exponent && base != DType::kU64;
}

// The result has the base's dtype; the exponent may be of another one (ONNX: T and T1).
Types pow_shape(const OpArgs& args) {
  require(is_number(args.type(0).dtype), ErrorCode::kBadInput,
          "the base must be a tensor of numbers, is {}", type_text(args.type(0)));
  require(is_number(args.type(1).dtype), ErrorCode::kBadInput,
          "the exponent must be a tensor of numbers, is {}", type_text(args.type(1)));
  require_supported(has_power(args.type(0).dtype, args.type(1).dtype),
                    "a power of {} with an exponent {} is not supported (exponents int32 and int64 "
                    "are; of float32, float64, int32 and int64 also float32 and float64)",
                    type_text(args.type(0)), type_text(args.type(1)));
  return {{.dtype = args.type(0).dtype, .shape = broadcast_shapes(args.shape(0), args.shape(1))}};
}

Cost pow_cost(const OpArgs& args) {
  const Tensor* exponent = args.constants.size() > 1 ? args.constants[1] : nullptr;
  const bool small = exponent != nullptr && exponent->elements() == 1 &&
                     (args.constant_number(1, 0) == 2.0 || args.constant_number(1, 0) == 3.0);
  return with_flops(args, (small ? 2 : 16) * args.outputs[0].elements());
}

// Inputs dy, base, exponent (of any numeric dtype): the shape of dy.
Types pow_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  require(args.type(1).dtype == args.type(0).dtype && is_number(args.type(2).dtype),
          ErrorCode::kBadInput,
          "dy {} and base {} must have one element type, exponent {} a numeric",
          type_text(args.type(0)), type_text(args.type(1)), type_text(args.type(2)));
  require_supported(has_power(args.type(0).dtype, args.type(2).dtype),
                    "an exponent {} is not supported", type_text(args.type(2)));
  const Shape shape = broadcast_shapes(args.shape(1), args.shape(2));
  require_shape(args, 0, shape);
  return {args.type(0)};
}

Types pow_exponent_grad_shape(const OpArgs& args) {
  require_same_types(args, 0, 2);
  return broadcast_floats(args);
}

std::vector<OpDef> arithmetic_ops() {
  return {
      {.name = "Add",
       .doc = "a + b",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = broadcast_numbers,
       .gradient = add_gradient,
       .cost = per_output_element<1>,
       .in_place = any_input_in_place,
       .is_sum = true,
       .neutral = {{.input = 1, .number = 0.0}, {.input = 0, .number = 0.0}},
       .precision = Precision::kFollow,
       .op_class = OpClass::kPointwise,
       .traits = {.sharding = kAddition,
                  .rows = RowKind::kPointwise,
                  .rematerialize = Rematerialize::kLight,
                  .ranges = kNoRanges},
       .examples = {"[2,3], [2,3]", "[2,3], [3]", "[3,1], [2,1,4]", "[], [5]", "[0,3], [3]",
                    "[], []", "[3,100,400], [100,1]", "i64[2,3]<9, i64[3]<9", "i32[4]<9, i32[]<9"}},
      {.name = "Sub",
       .doc = "a - b",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = broadcast_numbers,
       .gradient = sub_gradient,
       .cost = per_output_element<1>,
       .in_place = any_input_in_place,
       .neutral = {{.input = 1, .number = 0.0}},
       .precision = Precision::kFollow,
       .op_class = OpClass::kPointwise,
       .traits = kPointwise,
       .examples = {"[2,3], [2,3]", "[3], [2,3]", "[2,3], [2,1]", "[0], [0]", "[70,1001], [1001]",
                    "i64[2,3]<9, i64[3]<9", "i32[4]<9, i32[1]<9"}},
      {.name = "Mul",
       .doc = "a * b",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = broadcast_numbers,
       .gradient = mul_gradient,
       .cost = per_output_element<1>,
       .in_place = any_input_in_place,
       .neutral = {{.input = 1, .number = 1.0}, {.input = 0, .number = 1.0}},
       .precision = Precision::kFollow,
       .op_class = OpClass::kPointwise,
       .traits = kPointwise,
       .examples = {"[2,3], [2,3]", "[2,3], []", "[2,1,4], [3,1]", "[3,0], [3,1]",
                    "[70,1001], [70,1]", "i64[2,3]<9, i64[3]<9", "i32[4]<9, i32[1]<9"}},
      {.name = "Div",
       .doc = "a / b; integers truncate towards 0, and a / 0 is 0",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = broadcast_numbers,
       .gradient = div_gradient,
       .cost = per_output_element<4>,
       .in_place = any_input_in_place,
       .neutral = {{.input = 1, .number = 1.0}},
       .poles = {1},
       .precision = Precision::kFollow,
       .op_class = OpClass::kPointwise,
       .traits = {.sharding = kByElement,
                  .rows = RowKind::kQuotient,
                  .rematerialize = Rematerialize::kLight,
                  .ranges = kNoRanges},
       .examples = {"[2,3], [2,3]>0", "[2,3], [3]>0", "[3], [2,3]>0", "[2,4,3], [2,4,1]>0",
                    "[0,2], [2]>0", "[70,1001], [70,1]>0", "i64[2,3]<9, i64[3]<3",
                    "i32[4]<9, i32[1]<9"}},
  };
}

std::vector<OpDef> further_arithmetic_ops() {
  return {
      {.name = "Mod",
       .doc = "the rest of a / b; a mod 0 is 0 for integers, NaN for floats",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"fmod", "1: the result has the sign of a; 0 (default): of b"}},
       .params = [](const OpArgs& args) -> Params { return mod_params(args); },
       .shape = mod_shape,
       .gradient = mod_gradient,
       .cost = per_output_element<4>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kPointwise,
       .traits = kWholeValues,
       .examples = {"[2,3], [2,3]>0; fmod=1", "[2,3], [3]>0; fmod=1", "[0], []; fmod=1",
                    "[2,3]~, [2,3]>0", "i64[70,1001], i64[1001]", "i64[2,3], i64[3]",
                    "i64[2,3], i64[3]; fmod=1", "i32[4], i32[1]", "i32[9], i32[9]; fmod=1",
                    "i64[0], i64[]"}},
      {.name = "Sum",
       .doc = "the sum of the inputs, element by element",
       .min_inputs = 1,
       .max_inputs = kVariadic,
       .shape = broadcast_given_numbers,
       .decompose = folded<kAdd>,
       .cost = per_output_element<1>,
       .op_class = OpClass::kPointwise,
       .traits = kPointwiseComposite,
       .examples = {"[2,3], [2,3]", "[3]", "[2,3], [3], [2,1]", "[], [5], [1], [5]", "[0,3], [3]",
                    "i64[2,3]<9, i64[3]<9"}},
      {.name = "Mean",
       .doc = "the mean of the inputs, element by element",
       .min_inputs = 1,
       .max_inputs = kVariadic,
       .shape = mean_shape,
       .decompose = mean_decomposition,
       .cost = per_output_element<1>,
       .op_class = OpClass::kPointwise,
       .traits = kComposite,
       .examples = {"[2,3], [2,3]", "[3]", "[2,3], [3], [2,1]", "[], [5], [1], [5]", "[0,3], [3]"}},
  };
}

std::vector<OpDef> power_ops() {
  return {
      {.name = "Pow",
       .doc = "a to the power b; the exponents 2, 3 and 0.5 are as cheap as Mul and Sqrt",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = pow_shape,
       .gradient = pow_gradient,
       .cost = pow_cost,
       .in_place = first_in_place,
       .exponent_input = 1,
       .poles = {0},
       .op_class = OpClass::kPointwise,
       .traits = kUnboundedPointwise,
       .examples = {"[2,3]>0, [2,3]", "[2,3]>0, [3]", "[3]>0, [2,3]", "[2,3], i64[]={2}",
                    "[2,3], i64[1]={3}", "[0], []", "[70,1001]>0, []", "[5]>0, i32[5]<3",
                    "i64[4], i64[]<9", "i32[4], i64[4]<9", "i64[2,3], [3]>0", "i32[4], f64[1]>0"}},
      // One pass where Mul and Pow would take three with full-size temporaries.
      {.name = "PowGrad",
       .doc = "dy * b * a^(b - 1) of inputs dy, a, b",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = pow_grad_shape,
       .cost = per_output_element<16>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kPointwise,
       .traits = kPointwiseGradient,
       .examples = {"[2,3], [2,3]>0, [2,3]", "[2,3], [3]>0, [2,1]", "[2,3], [2,3], i64[]={2}",
                    "[2,3], [2,3], i64[1]={3}", "[0], [0], []", "[70,1001], [70,1001]>0, []"}},
      {.name = "PowExponentGrad",
       .doc = "dy * y * log(a) of inputs dy, a, y = a^b; 0 where a <= 0",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = pow_exponent_grad_shape,
       .cost = per_output_element<10>,
       .in_place = any_input_in_place,
       .op_class = OpClass::kPointwise,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3], [2,3]>0, [2,3]", "[2,3], [3], [2,3]", "[0], [0], [0]",
                    "[70,1001], [1001]>0, [70,1001]"}},
  };
}

}  // namespace

std::vector<OpDef> pointwise_ops() {
  std::vector<OpDef> rows = arithmetic_ops();
  for (auto* more : {&further_arithmetic_ops, &power_ops, &logic_ops, &extreme_ops, &function_ops,
                     &trigonometric_ops}) {
    for (OpDef& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace trainscope
