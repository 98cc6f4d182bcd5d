// Op rows: functions of one element, and conversions between element types.
#include <utility>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

Types number_same_as_first(const OpArgs& args) {
  require_number(args, 0);
  return {args.type(0)};
}

Types cast_shape(const OpArgs& args) {
  const DType to = dtype_of_onnx(args.attributes.integer("to", 0));
  require(!is_storage(to) && !is_storage(args.type(0).dtype), ErrorCode::kBadInput,
          "{} to {}: types that are only stored are converted by StorageCast (Cast of opset 19)",
          type_text(args.type(0)), name_of(to));
  return {{.dtype = to, .shape = args.shape(0)}};
}

Values cast_gradient(const GradArgs& g) {
  const DType from = g.type(g.x[0]).dtype;
  if (!is_float(from) || g.dy[0] == kNoValue) return {kNoValue};
  return {cast_to(g.b, g.dy[0], from)};
}

// Piecewise constant: no gradient flows.
OpDef rounding_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .shape = float_same_as_first,
          .cost = per_output_element<1>,
          .in_place = first_in_place,
          .piecewise_constant = true,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kPointwise,
          .traits = kWholeValues,
          .examples = {"[2,3]", "[5]={-1.5,-0.5,0.5,1.5,2.5}", "[]", "[0]", "[70,1001]"}};
}

std::vector<OpDef> algebraic_ops() {
  return {
      {.name = "Neg",
       .doc = "-x",
       .shape = number_same_as_first,
       .gradient = [](const GradArgs& g) -> Values { return {g.b("Neg", {g.dy[0]})}; },
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kPointwise,
       .traits = kPointwise,
       .examples = {"[2,3]", "[]", "[0]", "[70,1001]", "i64[4]<9", "i32[4]<9"}},
      {.name = "Abs",
       .doc = "|x|",
       .shape = number_same_as_first,
       .gradient = [](const GradArgs& g) -> Values {
         return {g.b("Mul", {g.dy[0], g.b("Sign", {g.x[0]})})};
       },
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kPointwise,
       .traits = kPointwise,
       .examples = {"[2,3]~", "[]~", "[0]", "i64[4]<9", "i32[4]<9"}},
      {.name = "Sign",
       .doc = "-1, 0 or 1",
       .shape = number_same_as_first,
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .piecewise_constant = true,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kOtherPointwise,
       .examples = {"[2,3]~", "[0]", "i64[4]<9", "i32[4]<9"}},
      {.name = "Reciprocal",
       .doc = "1 / x",
       .shape = float_same_as_first,
       .gradient = [](const GradArgs& g) -> Values {
         return {g.b("Neg", {g.b("Mul", {g.b("Mul", {g.dy[0], g.y[0]}), g.y[0]})})};
       },
       .cost = per_output_element<4>,
       .in_place = first_in_place,
       .poles = {0},
       .op_class = OpClass::kPointwise,
       .traits = kUnboundedPointwise,
       .examples = {"[2,3]>0", "[]>0", "[0]"}},
      {.name = "Sqrt",
       .doc = "square root",
       .shape = float_same_as_first,
       .gradient = [](const GradArgs& g) -> Values {
         const ValueId half = g.b.scalar(0.5, g.type(g.y[0]).dtype);
         return {g.b("Div", {g.b("Mul", {g.dy[0], half}), g.y[0]})};
       },
       .cost = per_output_element<4>,
       .in_place = first_in_place,
       .poles = {0},
       .op_class = OpClass::kPointwise,
       .traits = kUnboundedPointwise,
       .examples = {"[2,3]>0", "[]>0", "[0]", "[70,1001]>0"}},
      {.name = "Cast",
       .doc = "elements as another type; floats beyond an integer's range give its nearest, NaN "
              "gives 0; integers keep their low bits in a narrower one. StorageCast has the types "
              "that are only stored",
       .attributes = {{"to",
                       "ONNX's number: 1 f32, 11 f64, 16 bf16, 10 f16, 2 u8, 3 i8, 4 u16, 5 i16, "
                       "6 i32, 12 u32, 7 i64, 13 u64, 9 bool"}},
       .shape = cast_shape,
       .gradient = cast_gradient,
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .keeps_integers = true,
       .keeps_elements = true,
       .op_class = OpClass::kMovement,
       .traits = kPointwise,
       .examples = {"[2,3]; to=1",     "[2,3]; to=11",    "[2,3]; to=6",   "[2,3]; to=7",
                    "[2,3]; to=9",     "[2,3]; to=16",    "[2,3]; to=10",  "i64[4]<9; to=1",
                    "i64[4]<9; to=6",  "i32[4]<9; to=11", "bool[4]; to=7", "bool[70,1001]; to=1",
                    "i64[4]<2; to=9",  "[0]; to=7",       "[]; to=11",     "[2,3]; to=2",
                    "[70,1001]; to=3", "u8[4]; to=1",     "u64[4]; to=11", "i64[4]; to=4",
                    "u32[4]; to=5",    "i16[4]; to=13",   "u8[4]; to=9"}},
  };
}

std::vector<OpDef> exponential_ops() {
  return {
      {.name = "Exp",
       .doc = "e^x",
       .shape = float_same_as_first,
       .gradient = [](const GradArgs& g) -> Values {
         return {g.b("Mul", {g.dy[0], g.y[0]})};
       },
       .cost = per_output_element<8>,
       .in_place = first_in_place,
       .op_class = OpClass::kPointwise,
       .traits = kUnboundedPointwise,
       .examples = {"[2,3]", "[]", "[0]", "[20,1001]"}},
      {.name = "Log",
       .doc = "natural logarithm",
       .shape = float_same_as_first,
       .gradient = [](const GradArgs& g) -> Values {
         return {g.b("Div", {g.dy[0], g.x[0]})};
       },
       .cost = per_output_element<8>,
       .in_place = first_in_place,
       .poles = {0},
       .op_class = OpClass::kPointwise,
       .traits = kOtherPointwise,
       .examples = {"[2,3]>0", "[]>0", "[0]", "[20,1001]>0"}},
  };
}

}  // namespace

std::vector<OpDef> function_ops() {
  std::vector<OpDef> rows = {rounding_row("Ceil", "the nearest integer that is not smaller"),
                             rounding_row("Floor", "the nearest integer that is not larger"),
                             rounding_row("Round", "the nearest integer, of two the even one")};
  for (auto* more : {&algebraic_ops, &exponential_ops}) {
    for (OpDef& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace trainscope
