// Op rows: rows of a matrix that an index names, replaced, added to, multiplied or compared: what
// ONNX's Scatter ops are made of.
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// Inputs: data [P, W], index [N], updates [N, W].

Types rows_shape(const OpArgs& args) {
  require_rank(args, 0, 2);
  require_dtype(args, 1, DType::kI64);
  require_rank(args, 1, 1);
  require_dtype(args, 2, args.type(0).dtype);
  require_shape(args, 2, {args.shape(1)[0], args.shape(0)[1]});
  return {args.type(0)};
}

Types number_rows_shape(const OpArgs& args) {
  require_number(args, 0);
  return rows_shape(args);
}

// The rows of dy that the updates went to.
ValueId updates_gradient(const GradArgs& g) {
  return g.wants(2) ? g.b("Gather", {g.dy[0], g.x[1]}, {{"axis", std::int64_t{0}}}) : kNoValue;
}

// Nothing flows to rows that were replaced.
Values put_gradient(const GradArgs& g) {
  Values gradients{kNoValue, kNoValue, updates_gradient(g)};
  if (g.wants(0)) {
    const TensorType updates = g.type(g.x[2]);
    gradients[0] = g.b("PutRows", {g.dy[0], g.x[1], zeros(g.b, updates)});
  }
  return gradients;
}

Values add_gradient(const GradArgs& g) { return {g.dy[0], kNoValue, updates_gradient(g)}; }

// y = data * the product of the updates of its row.
Values multiply_gradient(const GradArgs& g) {
  const TensorType data = g.type(g.x[0]);
  Values gradients(3, kNoValue);
  if (g.wants(0)) {
    const ValueId ones = g.b("ConstantOfShape", {g.b.ints(ints_of(data.shape))},
                             {{"value", filled(1.0, data.dtype)}});
    gradients[0] = g.b("Mul", {g.dy[0], g.b("MultiplyRows", {ones, g.x[1], g.x[2]})});
  }
  if (g.wants(2)) {
    const ValueId dproduct = g.b("Mul", {g.dy[0], g.x[0]});
    gradients[2] = g.b("MultiplyRowsGrad", {dproduct, g.x[1], g.x[2]});
  }
  return gradients;
}

// An element of the result came from all that are equal to it, which share its gradient.
Values extreme_gradient(const GradArgs& g) {
  const DType dtype = g.type(g.x[0]).dtype;
  const auto rows_of = [&g](ValueId v) {
    return g.b("Gather", {v, g.x[1]}, {{"axis", std::int64_t{0}}});
  };
  const ValueId from_data = cast_to(g.b, g.b("Equal", {g.x[0], g.y[0]}), dtype);
  const ValueId from_updates = cast_to(g.b, g.b("Equal", {g.x[2], rows_of(g.y[0])}), dtype);
  const ValueId count = g.b("AddRows", {from_data, g.x[1], from_updates});
  const ValueId share = g.b("Div", {g.dy[0], count});
  Values gradients(3, kNoValue);
  if (g.wants(0)) gradients[0] = g.b("Mul", {share, from_data});
  if (g.wants(2)) gradients[2] = g.b("Mul", {rows_of(share), from_updates});
  return gradients;
}

Types multiply_rows_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  require_rank(args, 0, 2);
  require_dtype(args, 1, DType::kI64);
  require_rank(args, 1, 1);
  require_dtype(args, 2, args.type(0).dtype);
  require_shape(args, 2, {args.shape(1)[0], args.shape(0)[1]});
  return {args.type(2)};
}

OpDef extreme_rows_row(std::string_view name, std::string_view doc,
                       std::vector<std::string_view> examples) {
  return {.name = name,
          .doc = doc,
          .domain = kTrainscopeDomain,
          .min_inputs = 3,
          .max_inputs = 3,
          .shape = number_rows_shape,
          .gradient = extreme_gradient,
          .in_place = first_in_place,
          .op_class = OpClass::kMovement,
          .traits = kWholeValues,
          .examples = std::move(examples)};
}

}  // namespace

std::vector<OpDef> scatter_rows_ops() {
  const std::vector<std::string_view> examples = {
      "[4,3], i64[2]={2,0}, [2,3]",           "[3,2], i64[0]<3, [0,2]",
      "[2,1], i64[2]={1,9}, [2,1]",           "[40,300], i64[3]={39,0,7}, [3,300]",
      "i64[4,3]<9, i64[2]={2,0}, i64[2,3]<9", "i32[4,3]<9, i64[2]={2,0}, i32[2,3]<9"};
  std::vector<std::string_view> put = examples;
  put.emplace_back("bool[4,1], i64[2]={2,0}, bool[2,1]");
  std::vector<std::string_view> repeated = examples;
  repeated.insert(repeated.end(), {"[4,3], i64[7]<4, [7,3]", "[40,300], i64[500]<40, [500,300]",
                                   "[900,2], i64[9000]<900, [9000,2]"});
  std::vector<std::string_view> apart;  // without ties, where there is a gradient
  for (std::string_view text :
       {"[4,3]~, i64[7]<4, [7,3]~", "[3,2]~, i64[0]<3, [0,2]", "[2,1]~, i64[2]={1,9}, [2,1]~",
        "[9,70]~, i64[20]<9, [20,70]~", "i64[4,3]<9, i64[7]<4, i64[7,3]<9",
        "i32[4,3]<9, i64[2]={2,0}, i32[2,3]<9"}) {
    apart.emplace_back(text);
  }
  return {
      {.name = "PutRows",
       .doc =
           "data [P,W] with row n of the updates in place of row index[n], in the order of n; an "
           "index outside makes all NaN (integers: it is ignored)",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = rows_shape,
       .gradient = put_gradient,
       .in_place = first_in_place,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = put},
      {.name = "AddRows",
       .doc = "data [P,W] with row n of the updates added to row index[n], as PutRows otherwise",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = number_rows_shape,
       .gradient = add_gradient,
       .in_place = first_in_place,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = repeated},
      {.name = "MultiplyRows",
       .doc =
           "data [P,W] with row index[n] multiplied by row n of the updates, as PutRows otherwise",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = number_rows_shape,
       .gradient = multiply_gradient,
       .in_place = first_in_place,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = repeated},
      extreme_rows_row("MaxRows",
                       "data [P,W] with the larger of row index[n] and row n of the updates in "
                       "place of it, as PutRows otherwise; equal ones share the gradient",
                       apart),
      extreme_rows_row("MinRows",
                       "data [P,W] with the smaller of row index[n] and row n of the updates in "
                       "place of it, as PutRows otherwise; equal ones share the gradient",
                       apart),
      {.name = "MultiplyRowsGrad",
       .doc = "g [P,W], index [N], updates [N,W] -> row n: g[index[n]] times the other updates of "
              "that row",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = multiply_rows_grad_shape,
       .cost = per_output_element<4>,
       .op_class = OpClass::kMovement,
       .traits = kWholeValuesOnce,
       .examples = {"[4,3], i64[7]<4, [7,3]", "[4,3], i64[2]={9,0}, [2,3]",
                    "[0,3], i64[2]<4, [2,3]", "[3,2], i64[0]<3, [0,2]",
                    "[40,300], i64[500]<40, [500,300]"}},
  };
}

}  // namespace trainscope
