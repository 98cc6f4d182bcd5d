// Connectionist temporal classification (Graves et al. 2006): labels without a time of their own.
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// Inputs `first` to `first` + 3: log_probs [T, N, C], labels [N, S], lengths of inputs and labels
// [N].
void check_inputs(const OpArgs& args, int first) {
  require_float(args, first);
  require_rank(args, first, 3);
  const Shape& scores = args.shape(first);
  for (int i = first + 1; i < first + 4; ++i) require_dtype(args, i, DType::kI64);
  require_rank(args, first + 1, 2);
  require_shape(args, first + 1, {scores[1], args.shape(first + 1)[1]});
  for (int i = first + 2; i < first + 4; ++i) require_shape(args, i, {scores[1]});
  const std::int64_t blank = args.attributes.integer("blank", 0);
  require(blank >= 0 && blank < std::max<std::int64_t>(1, scores[2]), ErrorCode::kBadInput,
          "attribute blank is {}, there are {} classes", blank, scores[2]);
}

Types ctc_shape(const OpArgs& args) {
  check_inputs(args, 0);
  return {{.dtype = args.type(0).dtype, .shape = {args.shape(0)[1]}}};
}

Types ctc_grad_shape(const OpArgs& args) {
  check_inputs(args, 1);
  require_dtype(args, 0, args.type(1).dtype);
  require_shape(args, 0, {args.shape(1)[1]});
  return {args.type(1)};
}

// The blank is the label that names no class.
Params ctc_params(const OpArgs& args) {
  return LossParams{.class_axis = 2, .ignore_index = args.attributes.integer("blank", 0)};
}

// A few logarithms for each place of each path at each time; the gradient goes both ways.
template <int kScores>
Cost ctc_cost(const OpArgs& args) {
  const std::int64_t places = 2 * args.shape(kScores + 1)[1] + 1;
  const Shape& scores = args.shape(kScores);
  const std::int64_t cells = saturating_multiply(places, scores[0] * scores[1]);
  return with_flops(args, saturating_multiply(kScores == 0 ? 60 : 150, cells));
}

Values ctc_gradient(const GradArgs& g) {
  return {g.b("CtcLossGrad", {g.dy[0], g.x[0], g.x[1], g.x[2], g.x[3]},
              {{"blank", g.node.attributes.integer("blank", 0)}}),
          kNoValue, kNoValue, kNoValue};
}

}  // namespace

std::vector<OpDef> ctc_loss_ops() {
  const std::vector<AttributeSpec> attributes = {
      {"blank", "the class that stands for no label (default 0)"}};
  return {
      {.name = "CtcLoss",
       .doc = "log_probs [T, N, C], labels [N, S], input_lengths [N], label_lengths [N] -> [N]: "
              "-log of the probability that the classes of the first input_length times, with "
              "repetitions and then blanks left out, are the first label_length labels. Infinite "
              "where no path is that short; NaN for a length or a label that there cannot be",
       .domain = kTrainscopeDomain,
       .min_inputs = 4,
       .max_inputs = 4,
       .attributes = attributes,
       .params = ctc_params,
       .shape = ctc_shape,
       .gradient = ctc_gradient,
       .cost = ctc_cost<0>,
       .op_class = OpClass::kLoss,
       .traits = kWholeValues,
       .examples = {"[5,2,4], i64[2,3]={1,2,2,3,1,0}, i64[2]={5,4}, i64[2]={3,2}",
                    "[4,3,3], i64[3,2]={1,0,2,2,1,2}, i64[3]={4,3,1}, i64[3]={2,2,1}; blank=1",
                    "[3,1,2], i64[1,2]={1,1}, i64[1]={3}, i64[1]={0}",
                    "[6,2,5], i64[2,2]={4,4,1,3}, i64[2]={6,5}, i64[2]={2,2}; blank=2",
                    "[3,0,4], i64[0,2]={}, i64[0]={}, i64[0]={}",
                    "[60,9,30], i64[9,12]<29, i64[9]={60,60,50,40,60,60,55,60,60}, "
                    "i64[9]={12,3,8,1,0,5,6,7,8}; blank=29"}},
      {.name = "CtcLossGrad",
       .doc = "dloss [N], log_probs, labels, input_lengths, label_lengths -> dlog_probs: -dloss * "
              "the share of the paths that have the class at that time; 0 after the lengths and "
              "where dloss is 0",
       .domain = kTrainscopeDomain,
       .min_inputs = 5,
       .max_inputs = 5,
       .attributes = attributes,
       .params = ctc_params,
       .shape = ctc_grad_shape,
       .cost = ctc_cost<1>,
       .op_class = OpClass::kLoss,
       .traits = kWholeValuesOnce,
       .examples = {"[2], [5,2,4], i64[2,3]={1,2,2,3,1,0}, i64[2]={5,4}, i64[2]={3,2}",
                    "[3], [4,3,3], i64[3,2]={1,0,2,2,0,2}, i64[3]={4,4,2}, i64[3]={0,2,1}; blank=1",
                    "[1]={0.0}, [2,1,3], i64[1,2]={1,1}, i64[1]={2}, i64[1]={2}",
                    "[0], [3,0,4], i64[0,2]={}, i64[0]={}, i64[0]={}"}},
  };
}

}  // namespace trainscope
