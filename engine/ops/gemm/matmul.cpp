// Matmuls: MatMul, Gemm and ai.trainscope's BatchMatMul, which transposes, scales and adds
// a bias, and MatMulAdd, which adds to a sum.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/gemm/matmul_cost.h"
#include "engine/ops/gemm/matmul_sharding.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- Shapes --------------------------------------------------------------------------------------

bool flag(const OpArgs& args, std::string_view name) {
  return args.attributes.integer(name, 0) != 0;
}

Params batch_matmul_params(const OpArgs& args) {
  return MatMulParams{.transpose_a = flag(args, "transpose_a"),
                      .transpose_b = flag(args, "transpose_b"),
                      .alpha = args.attributes.number("alpha", 1.0)};
}

Params gemm_params(const OpArgs& args) {
  return MatMulParams{.transpose_a = flag(args, "transA"),
                      .transpose_b = flag(args, "transB"),
                      .alpha = args.attributes.number("alpha", 1.0),
                      .beta = args.attributes.number("beta", 1.0)};
}

Params matmul_params(const OpArgs&) { return MatMulParams{}; }

struct Matrix {
  std::int64_t rows;
  std::int64_t columns;
};

Matrix matrix_of(const Shape& shape, bool transposed) {
  const Matrix stored{shape[shape.rank - 2], shape[shape.rank - 1]};
  return transposed ? Matrix{stored.columns, stored.rows} : stored;
}

// [m, n] of the last two axes; the inner sizes must agree.
Matrix result_matrix(const Shape& a, const Shape& b, const MatMulParams& params) {
  const Matrix left = matrix_of(a, params.transpose_a);
  const Matrix right = matrix_of(b, params.transpose_b);
  require(left.columns == right.rows, ErrorCode::kBadInput,
          "cannot multiply {}{} by {}{}: the left matrix has {} columns, the right one {} rows",
          shape_text(a), params.transpose_a ? " transposed" : "", shape_text(b),
          params.transpose_b ? " transposed" : "", left.columns, right.rows);
  return {left.rows, right.columns};
}

Shape batch_of(const Shape& shape) {
  return Shape(shape.span().first(static_cast<std::size_t>(shape.rank - 2)));
}

// Both of rank 2 at least.
Shape result_shape(const Shape& a, const Shape& b, const MatMulParams& params) {
  const Matrix matrix = result_matrix(a, b, params);
  Shape shape = broadcast_shapes(batch_of(a), batch_of(b));
  shape.push_back(matrix.rows);
  shape.push_back(matrix.columns);
  return checked_shape(shape);
}

void require_matrices(const OpArgs& args, int min_rank) {
  require_float(args, 0);
  require_same_dtypes(args);
  for (int i = 0; i < 2; ++i) {
    require(args.rank(i) >= min_rank, ErrorCode::kBadInput,
            "input {} must have {} dimensions at least, is {}", i, min_rank,
            type_text(args.type(i)));
  }
}

Types batch_matmul_shape(const OpArgs& args) {
  require_matrices(args, 2);
  const auto params = std::get<MatMulParams>(batch_matmul_params(args));
  const Shape shape = result_shape(args.shape(0), args.shape(1), params);
  if (args.has(2)) require_shape(args, 2, {shape[shape.rank - 1]});
  const DType dtype = args.type(0).dtype;
  return {{flag(args, "upcast") ? computed(dtype) : dtype, shape}};
}

Types matmul_add_shape(const OpArgs& args) {
  OpArgs operands = args;
  operands.inputs = args.inputs.first(2);
  const Types types = batch_matmul_shape(operands);
  require_dtype(args, 2, types[0].dtype);
  require_shape(args, 2, types[0].shape);
  return types;
}

Shape as_row(const Shape& shape) { return shape.rank == 1 ? Shape{1, shape[0]} : shape; }
Shape as_column(const Shape& shape) { return shape.rank == 1 ? Shape{shape[0], 1} : shape; }

Types matmul_shape(const OpArgs& args) {
  require_matrices(args, 1);
  const Shape full = result_shape(as_row(args.shape(0)), as_column(args.shape(1)), {});
  Shape shape = batch_of(full);
  if (args.rank(0) > 1) shape.push_back(full[full.rank - 2]);
  if (args.rank(1) > 1) shape.push_back(full[full.rank - 1]);
  return {{args.type(0).dtype, shape}};
}

Types gemm_shape(const OpArgs& args) {
  require_matrices(args, 2);
  require_rank(args, 0, 2);
  require_rank(args, 1, 2);
  const auto params = std::get<MatMulParams>(gemm_params(args));
  const Shape shape = result_shape(args.shape(0), args.shape(1), params);
  if (args.has(2)) {
    const Shape& c = args.shape(2);
    require(c.rank <= 2 && broadcast_shapes(c, shape) == shape, ErrorCode::kBadInput,
            "C {} cannot be broadcast to the result {}", shape_text(c), shape_text(shape));
  }
  return {{args.type(0).dtype, shape}};
}

// --- Costs ---------------------------------------------------------------------------------------

Cost batch_matmul_cost(const OpArgs& args) {
  const auto params = std::get<MatMulParams>(batch_matmul_params(args));
  const Matrix left = matrix_of(args.shape(0), params.transpose_a);
  const std::int64_t addend = args.has(2) ? 1 : 0;
  return with_flops(args, matmul_flops(args.outputs[0].elements(), left.columns + addend));
}

std::int64_t matmul_terms(const OpArgs& args) { return args.shape(0)[args.rank(0) - 1]; }

Cost matmul_cost(const OpArgs& args) {
  return with_flops(args, matmul_flops(args.outputs[0].elements(), matmul_terms(args)));
}

std::int64_t gemm_terms(const OpArgs& args) {
  return matrix_of(args.shape(0), flag(args, "transA")).columns;
}

Cost gemm_cost(const OpArgs& args) {
  const std::int64_t addend = args.has(2) ? 1 : 0;  // beta * C + ... : one more term
  return with_flops(args, matmul_flops(args.outputs[0].elements(), gemm_terms(args) + addend));
}

// --- Gradients -----------------------------------------------------------------------------------

// Y = alpha * op(A) op(B) with matrices of rank 2 at least.
struct Matmul {
  ValueId a, b;
  MatMulParams params;
};

ValueId multiply(Builder& builder, const Matmul& matmul) {
  Attributes attributes;
  if (matmul.params.transpose_a) attributes.set("transpose_a", std::int64_t{1});
  if (matmul.params.transpose_b) attributes.set("transpose_b", std::int64_t{1});
  if (matmul.params.alpha != 1.0) attributes.set("alpha", matmul.params.alpha);
  return builder("BatchMatMul", {matmul.a, matmul.b}, std::move(attributes));
}

ValueId gradient_of_a(Builder& builder, const Matmul& y, ValueId dy) {
  const bool ta = y.params.transpose_a;
  const bool tb = y.params.transpose_b;
  const double alpha = y.params.alpha;
  const ValueId da =
      ta ? multiply(builder, {y.b, dy, {.transpose_a = tb, .transpose_b = true, .alpha = alpha}})
         : multiply(builder, {dy, y.b, {.transpose_b = !tb, .alpha = alpha}});
  return builder.sum_to(da, builder.shape(y.a));
}

ValueId as_matrix(Builder& builder, ValueId value) {
  const Shape shape = builder.shape(value);
  const std::int64_t rows = batch_of(shape).elements() * shape[shape.rank - 2];
  return builder.reshape(value, {rows, shape[shape.rank - 1]});
}

ValueId gradient_of_b(Builder& builder, Matmul y, ValueId dy) {
  const Shape b_shape = builder.shape(y.b);
  const bool flat = batch_of(b_shape).elements() == 1 && !y.params.transpose_a;
  if (flat) {
    // One matmul over the rows of all matrices, instead of a batch of matmuls that is summed.
    y.a = as_matrix(builder, y.a);
    dy = as_matrix(builder, dy);
  }
  const bool ta = y.params.transpose_a;
  const bool tb = y.params.transpose_b;
  const double alpha = y.params.alpha;
  const ValueId db =
      tb ? multiply(builder, {dy, y.a, {.transpose_a = true, .transpose_b = ta, .alpha = alpha}})
         : multiply(builder, {y.a, dy, {.transpose_a = !ta, .alpha = alpha}});
  return flat ? builder.reshape(db, b_shape) : builder.sum_to(db, b_shape);
}

Values operand_gradients(const GradArgs& g, const Matmul& y, ValueId dy) {
  return {g.wants(0) ? gradient_of_a(g.b, y, dy) : kNoValue,
          g.wants(1) ? gradient_of_b(g.b, y, dy) : kNoValue};
}

const MatMulParams& params_of(const Params& params) { return std::get<MatMulParams>(params); }

Values batch_matmul_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const Params params = batch_matmul_params(*args);
  const bool biased = g.x.size() > 2;
  const ValueId dbias = biased ? gradient_of_input(g, 2, [&] { return g.dy[0]; }) : kNoValue;
  Values gradients = operand_gradients(g, {g.x[0], g.x[1], params_of(params)}, g.dy[0]);
  if (biased) gradients.push_back(dbias);
  return gradients;
}

Values matmul_add_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const Params params = batch_matmul_params(*args);
  Values gradients = operand_gradients(g, {g.x[0], g.x[1], params_of(params)}, g.dy[0]);
  gradients.push_back(g.wants(2) ? g.dy[0] : kNoValue);
  return gradients;
}

std::vector<InPlace> sum_in_place(const OpArgs&) { return {{.output = 0, .input = 2}}; }

Values matmul_gradient(const GradArgs& g) {
  const Shape a = g.type(g.x[0]).shape;
  const Shape b = g.type(g.x[1]).shape;
  const Matmul y{g.b.reshape(g.x[0], as_row(a)), g.b.reshape(g.x[1], as_column(b)), {}};
  const Shape full = result_shape(as_row(a), as_column(b), {});
  Values gradients = operand_gradients(g, y, g.b.reshape(g.dy[0], full));
  if (gradients[0] != kNoValue) gradients[0] = g.b.reshape(gradients[0], a);
  if (gradients[1] != kNoValue) gradients[1] = g.b.reshape(gradients[1], b);
  return gradients;
}

Values gemm_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const Params all = gemm_params(*args);
  Values gradients = operand_gradients(g, {g.x[0], g.x[1], params_of(all)}, g.dy[0]);
  if (g.x.size() < 3) return gradients;
  gradients.push_back(kNoValue);
  if (g.x[2] == kNoValue || !g.wants(2)) return gradients;
  ValueId dc = g.b.sum_to(g.dy[0], g.type(g.x[2]).shape);
  const double beta = params_of(all).beta;
  if (beta != 1.0) dc = g.b("Mul", {dc, g.b.scalar(beta, g.type(dc).dtype)});
  gradients[2] = dc;
  return gradients;
}

constexpr OpTraits matmul_traits(const Sharding& sharding) {
  return {.sharding = sharding,
          .rows = RowKind::kMatmul,
          .rematerialize = Rematerialize::kHeavy,
          .ranges = kNoRanges};
}

OpDef matmul_row() {
  return {.name = "MatMul",
          .doc = "Matmul of the last two axes; the others are broadcast, as numpy.matmul.",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = matmul_params,
          .shape = matmul_shape,
          .gradient = matmul_gradient,
          .cost = matmul_cost,
          .terms = matmul_terms,
          .precision = Precision::kLow,
          .op_class = OpClass::kMatmul,
          .traits = matmul_traits(kMatMulSharding),
          .examples = {"[2,3], [3,4]", "[5], [5]", "[3], [3,2]", "[2,3], [3]", "[4], [2,4,3]",
                       "[2,3,4], [4]", "[2,3,4], [4,5]", "[3,4], [2,4,5]", "[2,1,3,4], [5,4,2]",
                       "[2,2,3,4], [2,2,4,3]", "[0,3], [3,2]", "[2,0], [0,3]", "[2,0,3], [3,4]",
                       "[67,50], [50,73]"}};
}

OpDef gemm_row() {
  return {
      .name = "Gemm",
      .doc = "alpha * op(A) op(B) + beta * C; transA and transB transpose.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attributes = {{"alpha", "factor of op(A) op(B), 1"},
                     {"beta", "factor of C, 1"},
                     {"transA", "1: A is stored transposed"},
                     {"transB", "1: B is stored transposed"}},
      .params = gemm_params,
      .shape = gemm_shape,
      .gradient = gemm_gradient,
      .cost = gemm_cost,
      .terms = gemm_terms,
      .precision = Precision::kLow,
      .op_class = OpClass::kMatmul,
      .traits = matmul_traits(kBiasedMatMulSharding),
      .examples = {"[2,3], [3,4]", "[2,3], [3,4], [4]", "[2,3], [3,4], [1,4]",
                   "[2,3], [3,4], [2,1]; beta=0.5", "[2,3], [3,4], [2,4]; alpha=0.5 beta=2.0",
                   "[2,3], [3,4], []", "[3,2], [3,4], [4]; transA=1", "[2,3], [4,3], [4]; transB=1",
                   "[3,2], [4,3], [4]; transA=1 transB=1", "[2,3], [3,4], [4]; beta=0.0",
                   "[0,3], [3,2], [2]", "[2,0], [0,3], [3]", "[67,50], [73,50], [73]; transB=1"}};
}

OpDef batch_matmul_row() {
  return {.name = "BatchMatMul",
          .doc =
              "alpha * op(A) op(B) on the last two axes, the others are broadcast; plus a bias per "
              "column.",
          .domain = kTrainscopeDomain,
          .min_inputs = 2,
          .max_inputs = 3,
          .attributes = {{"transpose_a", "1: the matrices of A are stored transposed"},
                         {"transpose_b", "1: the matrices of B are stored transposed"},
                         {"alpha", "factor of op(A) op(B), 1"},
                         {"upcast", "1: of bf16 and f16 the result is f32", "wide"}},
          .params = batch_matmul_params,
          .shape = batch_matmul_shape,
          .gradient = batch_matmul_gradient,
          .cost = batch_matmul_cost,
          .precision = Precision::kLow,
          .upcast_form = "BatchMatMul",
          .op_class = OpClass::kMatmul,
          .traits = matmul_traits(kBiasedMatMulSharding),
          .examples = {"[2,3], [3,4]; alpha=0.5",
                       "[3,2], [3,4]; transpose_a=1",
                       "[2,3], [4,3]; transpose_b=1",
                       "[3,2], [4,3]; transpose_a=1 transpose_b=1",
                       "[2,3,4], [2,4,5]",
                       "[2,4,3], [2,4,5]; transpose_a=1 alpha=2.0",
                       "[2,3,4], [2,5,4]; transpose_b=1",
                       "[2,4,3], [2,5,4]; transpose_a=1 transpose_b=1 alpha=0.5",
                       "[2,3,4], [4,5]",
                       "[2,4,3], [4,5]; transpose_a=1",
                       "[2,3,4], [1,5,4]; transpose_b=1",
                       "[3,4], [2,4,5]",
                       "[3,1,2,4], [2,4,3]",
                       "[2,0,3], [2,3,4]",
                       "[2,3,0], [2,0,4]",
                       "[12,20,30], [12,25,30]; transpose_b=1",
                       "[2,3], [3,4], [4]",
                       "[2,3,4], [4,5], [5]",
                       "[2,3,4], [2,5,4], [5]; transpose_b=1 alpha=0.5",
                       "[2,0,3], [3,4], [4]",
                       "[2,3,0], [0,4], [4]",
                       "[2,70,50], [50,73], [73]",
                       "[2,3,4], [4,1], [1]",
                       "[12,20], [12,25]; transpose_a=1 upcast=1"}};
}

OpDef matmul_add_row() {
  return {.name = "MatMulAdd",
          .doc = "sum + alpha * op(A) op(B) on the last two axes, from A, B, sum.",
          .domain = kTrainscopeDomain,
          .formerly = "SummedMatMul",
          .min_inputs = 3,
          .max_inputs = 3,
          .attributes = {{"transpose_a", "1: the matrices of A are stored transposed"},
                         {"transpose_b", "1: the matrices of B are stored transposed"},
                         {"alpha", "factor of op(A) op(B), 1"},
                         {"upcast", "1: of bf16 and f16 the sum and the result are f32", "wide"}},
          .params = batch_matmul_params,
          .shape = matmul_add_shape,
          .gradient = matmul_add_gradient,
          .cost = batch_matmul_cost,
          .in_place = sum_in_place,
          .added_input = 2,
          .unadded_form = "BatchMatMul",
          .precision = Precision::kLow,
          .op_class = OpClass::kMatmul,
          .traits = sharded_once(kMatMulAddSharding),
          .examples = {
              "[2,3], [3,4], [2,4]; alpha=0.5", "[3,2], [4,3], [2,4]; transpose_a=1 transpose_b=1",
              "[2,3], [4,3], [2,4]; transpose_b=1", "[2,3,4], [4,5], [2,3,5]",
              "[2,1,4], [4,5], [2,1,5]", "[1,3,4], [4,5], [1,3,5]", "[2,3,4], [4,1], [2,3,1]",
              "[2,4,3], [2,4,5], [2,3,5]; transpose_a=1", "[2,0,3], [3,4], [2,0,4]",
              "[2,3,0], [0,4], [2,3,4]", "[3,1,2,4], [2,4,3], [3,2,2,3]",
              "[70,50], [73,50], [70,73]; transpose_b=1", "[300,20], [20,260], [300,260]"}};
}

}  // namespace

std::vector<OpDef> matmul_ops() {
  return {matmul_row(), gemm_row(), batch_matmul_row(), matmul_add_row()};
}

}  // namespace trainscope
