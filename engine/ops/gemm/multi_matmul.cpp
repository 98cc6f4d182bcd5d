// MultiMatMul: several matmuls of one input.
#include <utility>
#include <vector>

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

bool is_transposed(const Attributes& attributes) {
  return attributes.integer("transpose_b", 0) != 0;
}

Params multi_matmul_params(const OpArgs& args) {
  return MatMulParams{.transpose_b = is_transposed(args.attributes)};
}

// x, a matrix for each output, perhaps a bias for each.
Types multi_matmul_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  const int count = args.output_count;
  require(args.input_count() > count && args.input_count() <= 1 + 2 * count, ErrorCode::kBadInput,
          "{} outputs need x and {} matrices, or these and as many biases; there are {} inputs",
          count, count, args.input_count());
  const Shape& x = args.shape(0);
  require(x.rank >= 2, ErrorCode::kBadInput, "x must have 2 dimensions at least, is {}",
          type_text(args.type(0)));
  const bool transposed = is_transposed(args.attributes);
  Types types;
  for (int i = 1; i <= count; ++i) {
    require_rank(args, i, 2);
    const Shape& b = args.shape(i);
    require(b[transposed ? 1 : 0] == x[x.rank - 1], ErrorCode::kBadInput,
            "cannot multiply {} by {}{}", shape_text(x), shape_text(b),
            transposed ? " transposed" : "");
    Shape shape = x;
    shape[shape.rank - 1] = b[transposed ? 0 : 1];
    if (args.has(count + i)) require_shape(args, count + i, {shape[shape.rank - 1]});
    types.push_back({.dtype = args.type(0).dtype, .shape = checked_shape(shape)});
  }
  return types;
}

Cost multi_matmul_cost(const OpArgs& args) {
  const int count = static_cast<int>(args.outputs.size());
  std::int64_t sums = 0;
  std::int64_t biased = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t elements = args.outputs[static_cast<std::size_t>(i)].elements();
    add_saturating(sums, elements);
    if (args.has(1 + count + i)) add_saturating(biased, elements);
  }
  const std::int64_t inner = args.shape(0)[args.rank(0) - 1];
  return with_flops(args, saturating_add(matmul_flops(sums, inner), matmul_flops(biased, 1)));
}

ValueId as_rows(Builder& b, ValueId v) {
  const Shape shape = b.shape(v);
  std::int64_t rows = 1;
  for (int axis = 0; axis < shape.rank - 1; ++axis) rows *= shape[axis];
  return b.reshape(v, {rows, shape[shape.rank - 1]});
}

// A matmul for each parameter: computed as one, they gained nothing, and all would be there at
// once. Those by x are a sum, which fuse_matmul_add lets them form.
Values multi_matmul_gradient(const GradArgs& g) {
  const bool transposed = is_transposed(g.node.attributes);
  const std::size_t count = g.dy.size();
  const auto input = [](std::size_t i) { return static_cast<int>(i); };
  Values gradients(g.x.size(), kNoValue);
  for (std::size_t i = 0; i < count; ++i) {
    const ValueId dy = g.dy[i];
    if (dy == kNoValue) continue;
    const std::size_t matrix = 1 + i;
    const std::size_t bias = 1 + count + i;
    if (bias < g.x.size() && g.x[bias] != kNoValue) {
      gradients[bias] = gradient_of_input(g, input(bias), [dy] { return dy; });
    }
    if (g.wants(0)) {
      Attributes attributes;
      if (!transposed) attributes.set("transpose_b", std::int64_t{1});
      const ValueId dx = g.b("BatchMatMul", {dy, g.x[matrix]}, std::move(attributes));
      gradients[0] = gradients[0] == kNoValue ? dx : g.b("Add", {gradients[0], dx});
    }
    if (g.wants(input(matrix))) {
      const ValueId x = as_rows(g.b, g.x[0]);
      const ValueId rows = as_rows(g.b, dy);
      gradients[matrix] = g.b("BatchMatMul", {transposed ? rows : x, transposed ? x : rows},
                              {{"transpose_a", std::int64_t{1}}});
    }
  }
  return gradients;
}

OpDef multi_matmul_row() {
  return {
      .name = "MultiMatMul",
      .doc =
          "Matmuls of x with several matrices over x's last axis, from x, the matrices and "
          "perhaps as many biases; an output for each matrix.",
      .domain = kTrainscopeDomain,
      .min_inputs = 2,
      .max_inputs = kVariadic,
      .max_outputs = kVariadic,
      .attributes = {{"transpose_b", "1: the matrices are stored transposed"}},
      .params = multi_matmul_params,
      .shape = multi_matmul_shape,
      .gradient = multi_matmul_gradient,
      .cost = multi_matmul_cost,
      .precision = Precision::kLow,
      .op_class = OpClass::kMatmul,
      .traits = {.sharding = kMultiMatMulSharding,
                 .rows = RowKind::kOther,
                 .rematerialize = Rematerialize::kHeavy,
                 .ranges = kNoRanges},
      .examples = {"[2,3], [3,4], [3,5]; outputs=2",
                   "[2,3], [4,3], [1,3], [2,3]; outputs=3 transpose_b=1",
                   "[2,3,4], [4,5], [4,2], [5], [2]; outputs=2",
                   "[2,3,4], [4,5], [4,2], [4,3], [5], -, [3]; outputs=3",
                   "[2,3], [3,4]; outputs=1", "[2,0,4], [4,5], [4,2], [5], [2]; outputs=2",
                   "[2,3,0], [0,5], [0,2], [5], [2]; outputs=2", "[2,3], [3,0], [3,2]; outputs=2",
                   "[70,50], [73,50], [33,50], [73], [33]; outputs=2 transpose_b=1",
                   "[270,8], [8,260], [8,262]; outputs=2"}};
}

}  // namespace

std::vector<OpDef> multi_matmul_ops() { return {multi_matmul_row()}; }

}  // namespace trainscope
