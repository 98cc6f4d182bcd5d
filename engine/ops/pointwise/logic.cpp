// Op rows: comparison, logic and selection element by element, with numpy broadcasting.
#include <limits>
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

Types comparison_shape(const OpArgs& args) {
  require(!is_storage(args.type(0).dtype), ErrorCode::kBadInput,
          "input 0 must be a tensor of numbers or truth values, is {}", type_text(args.type(0)));
  require_same_dtypes(args);
  return {{.dtype = DType::kBool, .shape = broadcast_shapes(args.shape(0), args.shape(1))}};
}

Types number_comparison_shape(const OpArgs& args) {
  Types types = broadcast_numbers(args);
  types[0].dtype = DType::kBool;
  return types;
}

Types logic_shape(const OpArgs& args) {
  for (int i = 0; i < args.input_count(); ++i) require_dtype(args, i, DType::kBool);
  Shape shape = args.shape(0);
  if (args.input_count() == 2) shape = broadcast_shapes(shape, args.shape(1));
  return {{.dtype = DType::kBool, .shape = shape}};
}

Types where_shape(const OpArgs& args) {
  require_dtype(args, 0, DType::kBool);
  require_same_dtypes(args, 1);
  const Shape data = broadcast_shapes(args.shape(1), args.shape(2));
  return {{.dtype = args.type(1).dtype, .shape = broadcast_shapes(args.shape(0), data)}};
}

Values where_gradient(const GradArgs& g) {
  const auto zero = [&g] { return g.b.scalar(0.0, g.type(g.dy[0]).dtype); };
  return {kNoValue,
          gradient_of_input(g, 1,
                            [&] {
                              return g.b("Where", {g.x[0], g.dy[0], zero()});
                            }),
          gradient_of_input(g, 2, [&] {
            return g.b("Where", {g.x[0], zero(), g.dy[0]});
          })};
}

// Of two tensors of numbers; false where one of them is NaN.
OpDef comparison_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .min_inputs = 2,
          .max_inputs = 2,
          .shape = number_comparison_shape,
          .cost = per_output_element<1>,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kPointwise,
          .traits = kWholeValues,
          .examples = {"[2,3], [3]", "i64[2,3]<3, i64[3]<3", "i32[4]<3, i32[]<3", "[0], [1]"}};
}

OpDef logic_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .min_inputs = 2,
          .max_inputs = 2,
          .shape = logic_shape,
          .cost = per_output_element<1>,
          .in_place = any_input_in_place,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kPointwise,
          .traits = kWholeValues,
          .examples = {"bool[2,3], bool[3]", "bool[3,1], bool[2,1,4]", "bool[0], bool[1]",
                       "bool[70,1001], bool[1001]"}};
}

// --- Tests of one element ------------------------------------------------------------------------
Types float_test_shape(const OpArgs& args) {
  require_float(args, 0);
  return {{.dtype = DType::kBool, .shape = args.shape(0)}};
}

Values is_nan_decomposition(Builder& b, const Node& node) {
  return {b("Not", {b("Equal", {node.inputs[0], node.inputs[0]})})};
}

Values is_inf_decomposition(Builder& b, const Node& node) {
  const bool negative = node.attributes.integer("detect_negative", 1) != 0;
  const bool positive = node.attributes.integer("detect_positive", 1) != 0;
  const ValueId x = node.inputs[0];
  const TensorType type = b.type(x);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto equals = [&](ValueId v, double number) {
    return b("Equal", {v, b.scalar(number, type.dtype)});
  };
  if (negative && positive) return {equals(b("Abs", {x}), infinity)};
  if (negative) return {equals(x, -infinity)};
  if (positive) return {equals(x, infinity)};
  return {zeros(b, {.dtype = DType::kBool, .shape = type.shape})};
}

std::vector<OpDef> test_ops() {
  return {
      {.name = "IsNaN",
       .doc = "whether x is not a number",
       .shape = float_test_shape,
       .decompose = is_nan_decomposition,
       .cost = per_output_element<1>,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kComposite,
       .examples = {"[2,3]", "[4]={nan,1,inf,-inf}", "[]", "[0]"}},
      {.name = "IsInf",
       .doc = "whether x is infinite",
       .attributes = {{"detect_negative", "1 (default): -inf counts"},
                      {"detect_positive", "1 (default): inf counts"}},
       .shape = float_test_shape,
       .decompose = is_inf_decomposition,
       .cost = per_output_element<1>,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kComposite,
       .examples = {"[2,3]", "[4]={nan,1,inf,-inf}", "[4]={nan,1,inf,-inf}; detect_negative=0",
                    "[4]={nan,1,inf,-inf}; detect_positive=0",
                    "[4]={nan,1,inf,-inf}; detect_negative=0 detect_positive=0", "[0]"}},
  };
}

std::vector<OpDef> selection_ops() {
  return {
      {.name = "Equal",
       .doc = "a == b",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = comparison_shape,
       .cost = per_output_element<1>,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kOtherPointwise,
       .examples = {"[2,3], [3]", "i64[2,3]<2, i64[3]<2", "i32[70,1001]<2, i32[1]<2",
                    "bool[2,3], bool[2,1]", "i64[0]<2, i64[]<2"}},
      {.name = "Not",
       .doc = "true where x is false",
       .shape = logic_shape,
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kOtherPointwise,
       .examples = {"bool[2,3]", "bool[]", "bool[0]"}},
      {.name = "Where",
       .doc = "the element of input 1 where input 0 is true, else of input 2",
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = where_shape,
       .gradient = where_gradient,
       .cost = per_output_element<1>,
       .in_place = any_input_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kPointwise,
       .traits = kUnboundedPointwise,
       .examples = {"bool[2,3], [2,3], [2,3]", "bool[3,3], [2,3,3], []", "bool[2,1], [], [3]",
                    "bool[], [2], [2]", "bool[0], [0], [1]", "bool[300,300], [2,300,300], []",
                    "bool[3], i64[3]<9, i64[]<9", "bool[3], i32[2,1]<9, i32[3]<9",
                    "bool[3], bool[2,1], bool[3]"}},
  };
}

}  // namespace

std::vector<OpDef> logic_ops() {
  std::vector<OpDef> rows = {comparison_row("Less", "a < b"),
                             comparison_row("LessOrEqual", "a <= b"),
                             comparison_row("Greater", "a > b"),
                             comparison_row("GreaterOrEqual", "a >= b"),
                             logic_row("And", "a and b"),
                             logic_row("Or", "a or b"),
                             logic_row("Xor", "either a or b, not both")};
  for (auto* more : {&selection_ops, &test_ops}) {
    for (OpDef& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace trainscope
