// Op rows: determinants of matrices.
#include <vector>

#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// The shape [...] of matrices [..., n, n] in an input.
Shape batch_shape(const OpArgs& args, int input) {
  require_float(args, input);
  const Shape& x = args.shape(input);
  require(x.rank >= 2 && x[x.rank - 1] == x[x.rank - 2], ErrorCode::kBadInput,
          "input {} must be square matrices, is {}", input, type_text(args.type(input)));
  return Shape(x.span().first(static_cast<std::size_t>(x.rank - 2)));
}

Types det_shape(const OpArgs& args) {
  return {{.dtype = args.type(0).dtype, .shape = batch_shape(args, 0)}};
}

Types det_grad_shape(const OpArgs& args) {
  require_dtype(args, 0, args.type(1).dtype);
  require_shape(args, 0, batch_shape(args, 1));
  return {args.type(1)};
}

// n^3 / 3 multiplications and as many additions.
template <int kMatrices, int kThirds>
Cost elimination_cost(const OpArgs& args) {
  const Shape& x = args.shape(kMatrices);
  return with_flops(
      args, saturating_multiply(saturating_multiply(kThirds, x.elements()), x[x.rank - 1]) / 3);
}

}  // namespace

std::vector<OpDef> determinant_ops() {
  return {
      {.name = "Det",
       .doc = "determinants of matrices [..., n, n]",
       .shape = det_shape,
       .gradient = [](const GradArgs& g) -> Values {
         return {g.b("DetGrad", {g.dy[0], g.x[0]})};
       },
       .cost = elimination_cost<0, 2>,
       .op_class = OpClass::kOther,
       .traits = kWholeValues,
       .examples = {"[3,3]", "[2,4,4]", "[1,1]", "[2,2]={0,1,1,0}", "[0,3,3]", "[2,0,0]",
                    "[2,3,5,5]", "[20,12,12]"}},
      {.name = "DetGrad",
       .doc = "dy [...], x [..., n, n] -> dy times the cofactors of x, which are the gradient of "
              "Det; singular matrices have them too",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = det_grad_shape,
       .cost = elimination_cost<1, 6>,
       .op_class = OpClass::kOther,
       .traits = kWholeValuesOnce,
       .examples = {"[], [3,3]", "[2], [2,4,4]", "[], [2,2]={1,2,2,4}",
                    "[], [3,3]={1,2,4,2,4,8,4,8,16}", "[0], [0,3,3]", "[2], [2,0,0]",
                    "[20], [20,12,12]"}},
  };
}

}  // namespace trainscope
