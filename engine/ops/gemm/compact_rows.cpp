// Compacted rows: which rows count (by their labels, as real tokens) is known only when a step
// runs; matmuls compute these alone.
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/gemm/matmul_cost.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

Params compact_rows_params(const OpArgs& args) {
  return LossParams{.class_axis = 0, .ignore_index = args.attributes.integer("ignore_index", -100)};
}

Types compact_rows_shape(const OpArgs& args) {
  require_index(args, 0);
  require_rank(args, 0, 1);
  return {{.dtype = DType::kI64, .shape = args.shape(0)}, {.dtype = DType::kI64, .shape = {}}};
}

MatMulParams matrix_params(const OpArgs& args) {
  return {.transpose_a = args.attributes.integer("transpose_a", 0) != 0,
          .transpose_b = args.attributes.integer("transpose_b", 0) != 0};
}
Params compact_matmul_params(const OpArgs& args) { return matrix_params(args); }

// a, b, count and perhaps a bias per column.
Types compact_matmul_shape(const OpArgs& args) {
  const MatMulParams params = matrix_params(args);
  require(!params.transpose_a || !params.transpose_b, ErrorCode::kBadInput,
          "transpose_a and transpose_b are both set; one of them may be");
  require_float(args, 0);
  const DType dtype = args.type(0).dtype;
  require_dtype(args, 1, dtype);
  require_rank(args, 0, 2);
  require_rank(args, 1, 2);
  require_dtype(args, 2, DType::kI64);
  require_rank(args, 2, 0);
  const Shape& a = args.shape(0);
  const Shape& b = args.shape(1);
  const std::int64_t inner = a[params.transpose_a ? 0 : 1];
  require(inner == b[params.transpose_b ? 1 : 0], ErrorCode::kBadInput,
          "cannot multiply {}{} by {}{}", shape_text(a), params.transpose_a ? " transposed" : "",
          shape_text(b), params.transpose_b ? " transposed" : "");
  const Shape shape{a[params.transpose_a ? 1 : 0], b[params.transpose_b ? 0 : 1]};
  if (args.has(3)) {
    require_dtype(args, 3, dtype);
    require_shape(args, 3, {shape[1]});
  }
  const bool upcast = args.attributes.integer("upcast", 0) != 0;
  return {{.dtype = upcast ? computed(dtype) : dtype, .shape = checked_shape(shape)}};
}

// Of all rows: how many count is not known.
Cost compact_matmul_cost(const OpArgs& args) {
  const std::int64_t inner = args.shape(0)[matrix_params(args).transpose_a ? 0 : 1];
  return with_flops(args, matmul_flops(args.outputs[0].elements(), inner + (args.has(3) ? 1 : 0)));
}

ValueId compact_matmul(const GradArgs& g, ValueId a, ValueId b, MatMulParams params) {
  Attributes attributes;
  if (params.transpose_a) attributes.set("transpose_a", std::int64_t{1});
  if (params.transpose_b) attributes.set("transpose_b", std::int64_t{1});
  return g.b("CompactMatMul", {a, b, g.x[2]}, std::move(attributes));
}

// Rows of a that do not count have the gradient 0, and add nothing to that of b.
Values compact_matmul_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const MatMulParams params = matrix_params(*args);
  const ValueId a = g.x[0];
  const ValueId b = g.x[1];
  const ValueId dy = g.dy[0];
  const bool biased = g.x.size() > 3;
  const ValueId dbias = biased ? gradient_of_input(g, 3, [&] { return dy; }) : kNoValue;
  Values gradients(g.x.size(), kNoValue);
  if (g.wants(0)) {
    gradients[0] = params.transpose_a
                       ? compact_matmul(g, b, dy, {.transpose_b = true})
                       : compact_matmul(g, dy, b, {.transpose_b = !params.transpose_b});
  }
  if (g.wants(1)) {
    gradients[1] = params.transpose_a   ? compact_matmul(g, a, dy, {})
                   : params.transpose_b ? compact_matmul(g, dy, a, {.transpose_a = true})
                                        : compact_matmul(g, a, dy, {.transpose_a = true});
  }
  if (biased) gradients[3] = dbias;
  return gradients;
}

OpDef compact_rows_row() {
  return {.name = "CompactRows",
          .doc =
              "labels [rows] -> numbers of the rows whose label is not ignore_index, then those of "
              "the others, each in order; how many count.",
          .domain = kTrainscopeDomain,
          .formerly = "CountedRows",
          .max_outputs = 2,
          .attributes = {{"ignore_index", "labels of this value do not count (default -100)"}},
          .params = compact_rows_params,
          .shape = compact_rows_shape,
          .counts_rows = true,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kMovement,
          .traits = kWholeValues,
          .examples = {"i64[5]={3,-100,0,-100,7}; outputs=2", "i32[6]<3; ignore_index=1 outputs=2",
                       "i64[4]<9; outputs=2", "i64[3]={-100,-100,-100}; outputs=2",
                       "i64[0]; outputs=2", "i64[5000]<3; ignore_index=2 outputs=2"}};
}

OpDef compact_matmul_row() {
  return {.name = "CompactMatMul",
          .doc =
              "op(a) op(b) plus a bias per column, from a, b, count, bias (optional); the stored "
              "rows of a from `count` on are taken as 0.",
          .domain = kTrainscopeDomain,
          .formerly = "CountedMatMul",
          .min_inputs = 3,
          .max_inputs = 4,
          .attributes = {{"transpose_a", "1: a is stored transposed"},
                         {"transpose_b", "1: b is stored transposed"},
                         {"upcast", "1: of bf16 and f16 the result is f32", "wide"}},
          .params = compact_matmul_params,
          .shape = compact_matmul_shape,
          .gradient = compact_matmul_gradient,
          .cost = compact_matmul_cost,
          .count_input = 2,
          .precision = Precision::kLow,
          .upcast_form = "CompactMatMul",
          .op_class = OpClass::kMatmul,
          .traits = kWholeValues,
          .examples = {"[5,3], [3,4], i64[]={3}", "[5,3], [4,3], i64[]={2}, [4]; transpose_b=1",
                       "[5,3], [5,4], i64[]={4}; transpose_a=1",
                       "[5,3], [5,4], i64[]={0}, [4]; transpose_a=1", "[5,3], [3,4], i64[]={5}",
                       "[5,3], [3,4], i64[]={0}, [4]", "[5,3], [3,4], i64[]={9}",
                       "[5,3], [3,4], i64[]={-2}", "[0,3], [3,4], i64[]={0}",
                       "[5,0], [0,4], i64[]={2}, [4]", "[90,40], [40,70], i64[]={37}, [70]",
                       "[90,40], [70,40], i64[]={48}, [70]; transpose_b=1",
                       "[90,40], [90,70], i64[]={37}; transpose_a=1",
                       "[90,70], [90,40], i64[]={5}, [40]; transpose_a=1",
                       "[12,20], [12,25], i64[]={7}; transpose_a=1 upcast=1"}};
}

}  // namespace

std::vector<OpDef> compact_rows_ops() { return {compact_rows_row(), compact_matmul_row()}; }

}  // namespace trainscope
