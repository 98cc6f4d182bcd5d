// Losses: cross entropy and negative log-likelihood over classes, mean squared error and binary
// cross entropy over elements. Each is a mean, 0/0 = NaN over nothing.
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

const std::vector<AttributeSpec> kClassAttributes = {
    {"class_axis", "axis of the classes in the scores (default -1)"},
    {"ignore_index", "labels of this value do not count (default -100)"}};

TensorType scalar_of(const TensorType& like) { return {.dtype = like.dtype, .shape = {}}; }

// The labels' shape: the scores' without the class axis.
Shape label_shape(const Shape& scores, int class_axis) {
  Shape labels;
  for (int a = 0; a < scores.rank; ++a) {
    if (a != class_axis) labels.push_back(scores[a]);
  }
  return labels;
}

// Inputs `scores` and `scores` + 1, the labels, fit each other.
int checked_class_axis(const OpArgs& args, int scores) {
  require_float(args, scores);
  require_index(args, scores + 1);
  const int axis = args.axis("class_axis", -1, args.rank(scores));
  require_shape(args, scores + 1, label_shape(args.shape(scores), axis));
  return axis;
}

void require_scalar_like(const OpArgs& args, int input, const TensorType& like) {
  require_dtype(args, input, like.dtype);
  require_rank(args, input, 0);
}

LossParams loss_params(const OpArgs& args, int class_axis) {
  return {.class_axis = class_axis,
          .ignore_index = args.attributes.integer("ignore_index", kDefaultIgnoreIndex)};
}

// --- CrossEntropy --------------------------------------------------------------------------------
Types cross_entropy_shape(const OpArgs& args) {
  checked_class_axis(args, 0);
  const TensorType scalar{.dtype = computed(args.type(0).dtype), .shape = {}};
  if (args.has(2)) require_scalar_like(args, 2, scalar);
  return {scalar, {.dtype = scalar.dtype, .shape = args.shape(1)}, scalar};
}

Types cross_entropy_grad_shape(const OpArgs& args) {
  checked_class_axis(args, 1);
  const TensorType& logits = args.type(1);
  const TensorType scalar{.dtype = computed(logits.dtype), .shape = {}};
  require_scalar_like(args, 0, scalar);
  require_dtype(args, 3, scalar.dtype);
  require_shape(args, 3, args.shape(2));
  require_scalar_like(args, 4, scalar);
  return {logits};
}

template <int kScores>
Params class_params(const OpArgs& args) {
  return loss_params(args, args.axis("class_axis", -1, args.rank(kScores)));
}

// Only output 0 is a loss; the others exist for its gradient.
void require_loss_only(const GradArgs& g) {
  for (std::size_t i = 1; i < g.dy.size(); ++i) {
    require(g.dy[i] == kNoValue, ErrorCode::kBadInput,
            "output {} of '{}' has no gradient; only the loss itself has", i,
            printable(g.node.name));
  }
}

// All `count` outputs of the node: computed once more when it leaves some of them out.
Values all_outputs(const GradArgs& g, int count) {
  const bool complete = static_cast<int>(g.y.size()) == count &&
                        std::find(g.y.begin(), g.y.end(), kNoValue) == g.y.end();
  if (complete) return Values(g.y.begin(), g.y.end());
  return g.b.multi(g.node.op->name, {g.x[0], g.x[1]}, count, g.node.attributes);
}

Attributes class_attributes(const GradArgs& g) {
  return {{"class_axis", g.node.attributes.integer("class_axis", -1)},
          {"ignore_index", g.node.attributes.integer("ignore_index", kDefaultIgnoreIndex)}};
}

Values cross_entropy_gradient(const GradArgs& g) {
  require_loss_only(g);
  const bool divided = g.x.size() > 2 && g.x[2] != kNoValue;
  require(!divided || !g.wants(2), ErrorCode::kBadInput, "the divisor of '{}' has no gradient",
          printable(g.node.name));
  const Values y = all_outputs(g, 3);
  Values dx(g.x.size(), kNoValue);
  dx[0] = g.b("CrossEntropyGrad", {g.dy[0], g.x[0], g.x[1], y[1], divided ? g.x[2] : y[2]},
              class_attributes(g));
  return dx;
}

// --- NegativeLogLikelihood -----------------------------------------------------------------------
Types negative_log_likelihood_shape(const OpArgs& args) {
  checked_class_axis(args, 0);
  const TensorType scalar = scalar_of(args.type(0));
  return {scalar, scalar};
}

// The labels' shape with the class axis put in; negative axes count from the result's end.
Types negative_log_likelihood_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  require_index(args, 1);
  require_scalar_like(args, 0, args.type(0));
  require_scalar_like(args, 2, args.type(0));
  const Shape& labels = args.shape(1);
  const int axis = args.axis("class_axis", -1, labels.rank + 1);
  Ints dims(labels.span().begin(), labels.span().end());
  dims.insert(dims.begin() + axis, args.attributes.integer("classes", 0));
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(dims)}};
}

Params negative_log_likelihood_grad_params(const OpArgs& args) {
  return loss_params(args, args.axis("class_axis", -1, args.rank(1) + 1));
}

Values negative_log_likelihood_gradient(const GradArgs& g) {
  require_loss_only(g);
  const Shape scores = g.type(g.x[0]).shape;
  const std::int64_t axis = g.node.attributes.integer("class_axis", -1);
  Attributes attributes = class_attributes(g);
  attributes.set("classes", scores[normalized_axis(axis, scores.rank)]);
  return {g.b("NegativeLogLikelihoodGrad", {g.dy[0], g.x[1], all_outputs(g, 2)[1]}, attributes),
          kNoValue};
}

// --- Over elements -------------------------------------------------------------------------------
Types element_loss_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_types(args, 0, 1);
  return {scalar_of(args.type(0))};
}

// dloss * factor / n.
ValueId per_element(const GradArgs& g, double factor) {
  const TensorType x = g.type(g.x[0]);
  const double n = static_cast<double>(std::max<std::int64_t>(1, x.elements()));
  return g.b("Mul", {g.dy[0], g.b.scalar(factor / n, x.dtype)});
}

Values mean_squared_error_gradient(const GradArgs& g) {
  const ValueId dx = g.b("Mul", {g.b("Sub", {g.x[0], g.x[1]}), per_element(g, 2.0)});
  return {dx, g.wants(1) ? g.b("Neg", {dx}) : kNoValue};
}

// Of MeanAbsoluteErrorGrad and BceWithLogitsGrad: dloss, x, target.
Types element_loss_grad_shape(const OpArgs& args) {
  require_float(args, 1);
  require_same_types(args, 1, 2);
  require_scalar_like(args, 0, args.type(1));
  return {args.type(1)};
}

Values mean_absolute_error_gradient(const GradArgs& g) {
  const ValueId dx = g.b("MeanAbsoluteErrorGrad", {g.dy[0], g.x[0], g.x[1]});
  return {dx, g.wants(1) ? g.b("Neg", {dx}) : kNoValue};
}

Values bce_with_logits_gradient(const GradArgs& g) {
  Values dx = {kNoValue, kNoValue};
  if (g.wants(0)) dx[0] = g.b("BceWithLogitsGrad", {g.dy[0], g.x[0], g.x[1]});
  if (g.wants(1)) dx[1] = g.b("Mul", {g.x[0], per_element(g, -1.0)});
  return dx;
}

// --- Shards --------------------------------------------------------------------------------------
// Scores cut by classes: the sums over classes are added up over the devices.
std::optional<Shards> shard_cross_entropy(const ShardingArgs& a) {
  const int axis = a.op.axis("class_axis", -1, a.op.rank(0));
  if (input_shard(a, 0) != Shard::split(axis)) return std::nullopt;
  return every_output(a, Shard::partial());
}

std::optional<Shards> shard_cross_entropy_grad(const ShardingArgs& a) {
  const int axis = a.op.axis("class_axis", -1, a.op.rank(1));
  if (input_shard(a, 1) != Shard::split(axis)) return std::nullopt;
  return every_output(a, Shard::split(axis));
}

std::vector<OpDef> cross_entropy_losses() {
  return {
      {.name = "CrossEntropy",
       .doc = "logits, labels, divisor (optional: count) -> sum of log_sum_exp(logits) - "
              "logits[label] over the labels that count, divided by the divisor; log_sum_exp per "
              "label, 0 where it does not count; count, how many count. A label outside "
              "[0, classes) makes the loss NaN",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 3,
       .attributes = kClassAttributes,
       .params = class_params<0>,
       .shape = cross_entropy_shape,
       .gradient = cross_entropy_gradient,
       .cost = per_input_element<10>,
       .of_scores = true,
       .class_loss = [](const OpArgs& args) { return own_class_loss(args, "CrossEntropy", -1); },
       .divisor_input = 2,
       .precision = Precision::kFollow,
       .f32_inputs = {2},
       .op_class = OpClass::kLoss,
       .traits = {.sharding =
                      Sharding{
                          .rule = shard_cross_entropy, .exchanges = true, .sums_at_once = true},
                  .rows = RowKind::kLoss,
                  .rematerialize = Rematerialize::kLight,
                  .ranges = kNoRanges},
       .examples = {"[3,5], i64[3]<5; outputs=3", "[3,5], i64[3]<5",
                    "[2,4,3], i32[2,3]<4; class_axis=1 ignore_index=2 outputs=3",
                    "[2,3,7], i64[2,3]<7; class_axis=2 ignore_index=0 outputs=3",
                    "[5,2,33], i64[2,33]<5; class_axis=0 outputs=3", "[1], i64[]={0}; outputs=3",
                    "[2,3], i64[2]={1,-100}; outputs=3", "[2,3], i64[2]={1,7}; outputs=3",
                    "[0,4], i64[0]<4; outputs=3",
                    "[2,0,3], i64[2,3]={-100,-100,-100,-100,-100,-100}; class_axis=1 outputs=3",
                    "[4,1100], i64[4]<1100; outputs=3", "[130,700], i64[130]<700; outputs=3",
                    "[3,5], i64[3]<5, []={7.5}; outputs=3"}},
      {.name = "CrossEntropyGrad",
       .doc = "dloss, logits, labels, log_sum_exp, count -> (softmax(logits) - one_hot(label)) * "
              "dloss / count, 0 where the label does not count",
       .domain = kTrainscopeDomain,
       .min_inputs = 5,
       .max_inputs = 5,
       .attributes = kClassAttributes,
       .params = class_params<1>,
       .shape = cross_entropy_grad_shape,
       .cost = per_output_element<10>,
       .in_place = [](const OpArgs&) { return std::vector<InPlace>{{.output = 0, .input = 1}}; },
       .op_class = OpClass::kLoss,
       .traits = sharded_once({.rule = shard_cross_entropy_grad, .exchanges = true}),
       .examples = {"[], [3,5], i64[3]<5, [3]>0, []={3}",
                    "[], [2,4,3], i32[2,3]<4, [2,3]>0, []={5}; class_axis=1 ignore_index=2",
                    "[], [2,3], i64[2]={1,7}, [2]>0, []={2}", "[], [0,4], i64[0]<4, [0], []={0}",
                    "[], [130,700], i64[130]<700, [130]>0, []={130}"}},
  };
}

std::vector<OpDef> likelihood_losses() {
  return {
      {.name = "NegativeLogLikelihood",
       .doc = "log_probs, labels -> mean of -log_probs[label] over the labels that count; count",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .max_outputs = 2,
       .attributes = kClassAttributes,
       .params = class_params<0>,
       .shape = negative_log_likelihood_shape,
       .gradient = negative_log_likelihood_gradient,
       .cost =
           [](const OpArgs& args) {
             const std::int64_t labels = args.type(1).elements();
             return Cost{
                 .flops = labels,
                 .bytes_read = static_cast<std::int64_t>(args.type(1).bytes()) +
                               labels * static_cast<std::int64_t>(size_of(args.type(0).dtype)),
                 .bytes_written =
                     static_cast<std::int64_t>(args.outputs.size() * size_of(args.type(0).dtype))};
           },
       .op_class = OpClass::kLoss,
       .traits = {.sharding = kNoSharding,
                  .rows = RowKind::kLoss,
                  .rematerialize = Rematerialize::kLight,
                  .ranges = kNoRanges},
       .examples = {"[3,5], i64[3]<5; outputs=2", "[3,5], i64[3]<5",
                    "[2,4,3], i32[2,3]<4; class_axis=1 ignore_index=2 outputs=2",
                    "[1], i64[]={0}; outputs=2", "[2,3], i64[2]={1,7}; outputs=2",
                    "[0,4], i64[0]<4; outputs=2", "[5000,3], i64[5000]<3; outputs=2"}},
      {.name = "NegativeLogLikelihoodGrad",
       .doc = "dloss, labels, count -> -dloss / count at the labels that count, else 0",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {kClassAttributes[0],
                      kClassAttributes[1],
                      {"classes", "size of the class axis of the result"}},
       .params = negative_log_likelihood_grad_params,
       .shape = negative_log_likelihood_grad_shape,
       .op_class = OpClass::kLoss,
       .traits = kWholeValuesOnce,
       .examples = {"[], i64[3]<5, []={3}; classes=5",
                    "[], i32[2,3]<4, []={5}; class_axis=1 ignore_index=2 classes=4",
                    "[], i64[2]={1,7}, []={2}; classes=3", "[], i64[0]<4, []={0}; classes=4",
                    "[], i64[400]<200, []={400}; classes=200"}},
  };
}

std::vector<OpDef> element_losses() {
  return {
      {.name = "MeanSquaredError",
       .doc = "x, target -> mean of (x - target)^2 over all elements",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = element_loss_shape,
       .gradient = mean_squared_error_gradient,
       .cost = per_input_element<3>,
       .op_class = OpClass::kLoss,
       .traits = kWholeValues,
       .examples = {"[2,3], [2,3]", "[], []", "[0,2], [0,2]", "[7,9001], [7,9001]"}},
      {.name = "MeanAbsoluteError",
       .doc = "x, target -> mean of |x - target| over all elements",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = element_loss_shape,
       .gradient = mean_absolute_error_gradient,
       .cost = per_input_element<3>,
       .op_class = OpClass::kLoss,
       .traits = kWholeValues,
       .examples = {"[2,3]~, [2,3]~", "[]~, []~", "[0,2], [0,2]", "[2,2500]~, [2,2500]~"}},
      {.name = "MeanAbsoluteErrorGrad",
       .doc = "dloss, x, target -> sign(x - target) * dloss / n; 0 where they are equal",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = element_loss_grad_shape,
       .cost = per_output_element<3>,
       .in_place =
           [](const OpArgs&) {
             return std::vector<InPlace>{{.output = 0, .input = 1}, {.output = 0, .input = 2}};
           },
       .op_class = OpClass::kLoss,
       .traits = kWholeValuesOnce,
       .examples = {"[], [2,3]~, [2,3]~", "[], [3]={1.0,2.0,3.0}, [3]={1.0,5.0,-3.0}",
                    "[], [0,2], [0,2]", "[], [7,9001]~, [7,9001]~"}},
      {.name = "BceWithLogits",
       .doc = "x, target -> mean over all elements of the binary cross entropy of sigmoid(x): "
              "max(x, 0) - x * target + log(1 + exp(-|x|))",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = element_loss_shape,
       .gradient = bce_with_logits_gradient,
       .cost = per_input_element<22>,
       .op_class = OpClass::kLoss,
       .traits = kWholeValues,
       .examples = {"[2,3], [2,3]", "[], []", "[0,2], [0,2]", "[7,9001], [7,9001]"}},
      {.name = "BceWithLogitsGrad",
       .doc = "dloss, x, target -> (sigmoid(x) - target) * dloss / n",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = element_loss_grad_shape,
       .cost = per_output_element<15>,
       .in_place =
           [](const OpArgs&) {
             return std::vector<InPlace>{{.output = 0, .input = 1}, {.output = 0, .input = 2}};
           },
       .op_class = OpClass::kLoss,
       .traits = kWholeValuesOnce,
       .examples = {"[], [2,3], [2,3]", "[], [], []", "[], [0,2], [0,2]",
                    "[], [7,9001], [7,9001]"}},
  };
}

}  // namespace

std::vector<OpDef> loss_ops() {
  std::vector<OpDef> rows = cross_entropy_losses();
  for (auto family : {likelihood_losses, element_losses}) {
    for (OpDef& row : family()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace trainscope
