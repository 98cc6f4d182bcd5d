// Cross entropy with class weights and label smoothing: one op, because its terms share the
// log-sum-exp and a gradient in one pass.
#include <algorithm>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/loss/class_loss_rules.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

const std::vector<AttributeSpec> kAttributes = {
    {"class_axis", "axis of the classes in the scores (default -1)"},
    {"ignore_index", "labels of this value do not count (default -100)"},
    {"label_smoothing",
     "share of each label that goes to all classes alike, in [0, 1], default 0"}};

// The scores' shape without the class axis.
Shape label_shape(const Shape& scores, int class_axis) {
  Shape labels;
  for (int a = 0; a < scores.rank; ++a) {
    if (a != class_axis) labels.push_back(scores[a]);
  }
  return labels;
}

// Inputs: scores at `scores`, labels behind them, weights at `weights` if given.
int checked_class_axis(const OpArgs& args, int scores, int weights) {
  require_float(args, scores);
  require_index(args, scores + 1);
  const int axis = args.axis("class_axis", -1, args.rank(scores));
  require_shape(args, scores + 1, label_shape(args.shape(scores), axis));
  if (args.has(weights)) {
    require_dtype(args, weights, args.type(scores).dtype);
    require_shape(args, weights, Shape{args.shape(scores)[axis]});
  }
  return axis;
}

TensorType scalar_of(const TensorType& like) { return {.dtype = like.dtype, .shape = {}}; }

template <int kScores>
Params params_of(const OpArgs& args) {
  const double smoothing = args.attributes.number("label_smoothing", 0.0);
  require(smoothing >= 0.0 && smoothing <= 1.0, ErrorCode::kBadInput,
          "attribute 'label_smoothing' is {}, expected a number in [0, 1]", smoothing);
  return LossParams{.class_axis = args.axis("class_axis", -1, args.rank(kScores)),
                    .ignore_index = args.attributes.integer("ignore_index", kDefaultIgnoreIndex),
                    .label_smoothing = smoothing};
}

Types loss_shape(const OpArgs& args) {
  checked_class_axis(args, 0, 2);
  const TensorType scalar = scalar_of(args.type(0));
  if (args.has(3)) {
    require_dtype(args, 3, scalar.dtype);
    require_rank(args, 3, 0);
  }
  return {scalar, {.dtype = scalar.dtype, .shape = args.shape(1)}, scalar};
}

Types gradient_shape(const OpArgs& args) {
  checked_class_axis(args, 1, 5);
  const TensorType& logits = args.type(1);
  for (int i : {0, 4}) {
    require_dtype(args, i, logits.dtype);
    require_rank(args, i, 0);
  }
  require_dtype(args, 3, logits.dtype);
  require_shape(args, 3, args.shape(2));
  return {logits};
}

// The loss, and what its gradient reads: computed once more when the node leaves some of it out.
Values all_outputs(const GradArgs& g) {
  const bool complete = g.y.size() == 3 && std::find(g.y.begin(), g.y.end(), kNoValue) == g.y.end();
  if (complete) return Values(g.y.begin(), g.y.end());
  return g.b.multi(g.node.op->name, Values(g.x.begin(), g.x.end()), 3, g.node.attributes);
}

Values loss_gradient(const GradArgs& g) {
  for (std::size_t i = 1; i < g.dy.size(); ++i) {
    require(g.dy[i] == kNoValue, ErrorCode::kBadInput,
            "output {} of '{}' has no gradient; only the loss itself has", i,
            printable(g.node.name));
  }
  for (int i = 2; i < static_cast<int>(g.x.size()); ++i) {
    require(!g.wants(i), ErrorCode::kBadInput, "input {} of '{}' has no gradient", i,
            printable(g.node.name));
  }
  const Values y = all_outputs(g);
  const bool divided = g.x.size() > 3 && g.x[3] != kNoValue;
  Values inputs = {g.dy[0], g.x[0], g.x[1], y[1], divided ? g.x[3] : y[2]};
  if (g.x.size() > 2 && g.x[2] != kNoValue) inputs.push_back(g.x[2]);
  Values dx(g.x.size(), kNoValue);
  dx[0] = g.b("WeightedCrossEntropyGrad", inputs, g.node.attributes);
  return dx;
}

OpDef loss_row() {
  return {.name = "WeightedCrossEntropy",
          .doc =
              "logits, labels, weights (one per class, optional: 1), divisor (optional: the sum of "
              "w[y]) -> with e = label_smoothing the sum over the labels y that count of (1 - e) * "
              "w[y] * l[y] + e / classes * sum of w[c] * l[c], l = log_sum_exp(logits) - logits, "
              "divided by the divisor; log_sum_exp per label; the sum of w[y]. A label outside [0, "
              "classes) makes the loss NaN",
          .domain = kTrainscopeDomain,
          .min_inputs = 2,
          .max_inputs = 4,
          .max_outputs = 3,
          .attributes = kAttributes,
          .params = params_of<0>,
          .shape = loss_shape,
          .gradient = loss_gradient,
          .cost = per_input_element<13>,
          .class_loss =
              [](const OpArgs& args) { return own_class_loss(args, "WeightedCrossEntropy", 2); },
          .divisor_input = 3,
          .op_class = OpClass::kLoss,
          .traits = {.sharding = kNoSharding,
                     .rows = RowKind::kLoss,
                     .rematerialize = Rematerialize::kLight,
                     .ranges = kNoRanges},
          .examples = {"[3,5], i64[3]<5; label_smoothing=0.1 outputs=3",
                       "[3,5], i64[3]<5; label_smoothing=0.1",
                       "[3,4], i64[3]<4, [4]={0.5,1.0,2.0,0.25}; outputs=3",
                       "[2,4,3], i32[2,3]<4, [4]={0.5,1.0,2.0,0.25}; class_axis=1 ignore_index=2 "
                       "label_smoothing=0.3 outputs=3",
                       "[3,2,7], i64[2,7]<3, [3]={1.0,0.0,3.0}; class_axis=0 label_smoothing=1.0 "
                       "outputs=3",
                       "[2,3], i64[2]={1,-100}; label_smoothing=0.2 outputs=3",
                       "[2,3], i64[2]={1,7}, [3]={1.0,2.0,3.0}; outputs=3",
                       "[0,4], i64[0]<4; label_smoothing=0.5 outputs=3",
                       "[3,4], i64[3]<4, [4]={0.5,1.0,2.0,0.25}, []={3.0}; outputs=3",
                       "[3,5], i64[3]<5, -, []={2.5}; label_smoothing=0.1 outputs=3",
                       "[130,700], i64[130]<700; label_smoothing=0.1 outputs=3"}};
}

OpDef gradient_row() {
  return {
      .name = "WeightedCrossEntropyGrad",
      .doc =
          "dloss, logits, labels, log_sum_exp, sum of w[y], weights (optional) -> (softmax * ((1 "
          "- e) * w[y] + e / classes * sum of w) - one_hot(y) * (1 - e) * w[y] - e / classes * "
          "w) * dloss / sum of w[y], 0 where the label does not count",
      .domain = kTrainscopeDomain,
      .min_inputs = 5,
      .max_inputs = 6,
      .attributes = kAttributes,
      .params = params_of<1>,
      .shape = gradient_shape,
      .cost = per_output_element<13>,
      .in_place = [](const OpArgs&) { return std::vector<InPlace>{{.output = 0, .input = 1}}; },
      .op_class = OpClass::kLoss,
      .traits = kWholeValuesOnce,
      .examples = {"[], [3,5], i64[3]<5, [3]>0, []={3}; label_smoothing=0.1",
                   "[], [2,4,3], i32[2,3]<4, [2,3]>0, []={5}, [4]={0.5,1.0,2.0,0.25}; class_axis=1 "
                   "ignore_index=2 label_smoothing=0.3",
                   "[], [2,3], i64[2]={1,7}, [2]>0, []={2}, [3]={1.0,2.0,3.0}",
                   "[], [0,4], i64[0]<4, [0], []={0}",
                   "[], [130,700], i64[130]<700, [130]>0, []={130}; label_smoothing=0.1"}};
}

}  // namespace

std::vector<OpDef> weighted_loss_ops() { return {loss_row(), gradient_row()}; }

}  // namespace trainscope
