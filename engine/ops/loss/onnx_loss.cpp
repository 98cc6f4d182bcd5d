// ONNX's class losses, with class weights and every reduction. The means without weights are ops of
// our own in one pass; the others are written as ONNX defines them.
#include <limits>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

LossReduction reduction_of(const OpArgs& args) {
  const std::string name = args.attributes.text("reduction", "mean");
  if (name == "none") return LossReduction::kNone;
  if (name == "sum") return LossReduction::kSum;
  require(name == "mean", ErrorCode::kBadInput,
          "attribute reduction is '{}'; none, sum and mean exist", printable(name));
  return LossReduction::kMean;
}

Types loss_shape(const OpArgs& args) {
  require_float(args, 0);
  require_index(args, 1);
  const Shape& scores = args.shape(0);
  require(scores.rank >= 2, ErrorCode::kBadInput,
          "input 0 must have a batch and a class dimension, is {}", type_text(args.type(0)));
  Shape labels{scores[0]};
  for (int axis = 2; axis < scores.rank; ++axis) labels.push_back(scores[axis]);
  require_shape(args, 1, labels);
  if (args.has(2)) {
    require_dtype(args, 2, args.type(0).dtype);
    require_shape(args, 2, Shape{scores[1]});
  }
  const bool none = reduction_of(args) == LossReduction::kNone;
  return {{.dtype = args.type(0).dtype, .shape = none ? labels : Shape{}}, args.type(0)};
}

// An absent ignore_index ignores nothing: no label is that small.
std::int64_t ignored_label(const Attributes& attributes) {
  return attributes.integer("ignore_index", std::numeric_limits<std::int64_t>::min());
}

Attributes class_attributes(const Node& node) {
  return {{"class_axis", std::int64_t{1}}, {"ignore_index", ignored_label(node.attributes)}};
}

ClassLoss class_loss_of(const OpArgs& args) {
  const bool weighted = args.has(2);
  const std::int64_t ignored = ignored_label(args.attributes);
  return {.class_axis = 1,
          .ignore_index = ignored,
          .reduction = reduction_of(args),
          .weights_input = weighted ? 2 : -1,
          .rows_form = weighted ? "WeightedCrossEntropy" : "CrossEntropy",
          .attributes = {{"class_axis", std::int64_t{-1}}, {"ignore_index", ignored}}};
}

// Scores, labels and weights of a negative log-likelihood, on their way to a loss per label.
struct Terms {
  ValueId loss = kNoValue;    // of each label, 0 where it is ignored
  ValueId weight = kNoValue;  // the same; none without class weights
};

ValueId zero_where(Builder& b, ValueId condition, ValueId v) {
  return b("Where", {condition, b.scalar(0.0, b.type(v).dtype), v});
}

// -weight[label] * log_probs[label]
Terms terms_of(Builder& b, const Node& node, ValueId log_probs) {
  const Shape shape = b.shape(node.inputs[1]);
  ValueId labels = cast_to(b, node.inputs[1], DType::kI64);
  ValueId ignored = kNoValue;
  if (node.attributes.has("ignore_index")) {
    ignored =
        b("Equal", {labels, b.constant(Tensor::scalar(ignored_label(node.attributes)), "ignored")});
    labels = b("Where", {ignored, b.constant(Tensor::scalar(std::int64_t{0}), "number"), labels});
  }
  Ints with_class = ints_of(shape);
  with_class.insert(with_class.begin() + 1, 1);
  const ValueId picked = b("GatherElements", {log_probs, b.reshape(labels, Shape(with_class))},
                           {{"axis", std::int64_t{1}}});
  const ValueId given = input_of(node, 2);
  Terms terms{.loss = b("Neg", {b.reshape(picked, shape)}), .weight = kNoValue};
  if (given != kNoValue) {
    terms.weight = b("Gather", {given, labels});
    terms.loss = b("Mul", {terms.loss, terms.weight});
  }
  for (ValueId* term : {&terms.loss, &terms.weight}) {
    if (ignored != kNoValue && *term != kNoValue) *term = zero_where(b, ignored, *term);
  }
  return terms;
}

ValueId total(Builder& b, ValueId v) {
  return b("ReduceSum", {v}, {{"keepdims", std::int64_t{0}}});
}

ValueId negative_log_likelihood(Builder& b, const Node& node, ValueId log_probs,
                                LossReduction reduction) {
  if (reduction == LossReduction::kMean && input_of(node, 2) == kNoValue) {
    return b.multi("NegativeLogLikelihood", {log_probs, node.inputs[1]}, 2,
                   class_attributes(node))[0];
  }
  const Terms terms = terms_of(b, node, log_probs);
  if (reduction == LossReduction::kNone) return terms.loss;
  if (reduction == LossReduction::kSum) return total(b, terms.loss);
  return b("Div", {total(b, terms.loss), total(b, terms.weight)});
}

Values nll_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  return {negative_log_likelihood(b, node, node.inputs[0], reduction_of(*args))};
}

Values cross_entropy_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const LossReduction reduction = reduction_of(*args);
  const bool plain_mean = reduction == LossReduction::kMean && input_of(node, 2) == kNoValue;
  if (plain_mean && node.outputs.size() == 1) {
    const Values y =
        b.multi("CrossEntropy", {node.inputs[0], node.inputs[1]}, 3, class_attributes(node));
    return {cast_to(b, y[0], b.type(node.inputs[0]).dtype)};
  }
  const ValueId log_probs = b("LogSoftmax", {node.inputs[0]}, {{"axis", std::int64_t{1}}});
  Values outputs{negative_log_likelihood(b, node, log_probs, reduction)};
  if (node.outputs.size() > 1) outputs.push_back(log_probs);
  return outputs;
}

constexpr AttributeSpec kReduction{"reduction", "none, sum or mean (default) over the labels"};
constexpr AttributeSpec kIgnoreIndex{"ignore_index", "labels of this value do not count"};

}  // namespace

std::vector<OpDef> onnx_loss_ops() {
  return {
      {.name = "SoftmaxCrossEntropyLoss",
       .doc = "scores [N,C,...], labels [N,...], weights [C] -> the loss -weight * log(softmax) at "
              "the labels, the mean divided by the sum of their weights; log(softmax). A label "
              "outside [0,C) gives NaN",
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 2,
       .attributes = {kReduction, kIgnoreIndex},
       .shape = loss_shape,
       .decompose = cross_entropy_decomposition,
       .class_loss = class_loss_of,
       .op_class = OpClass::kLoss,
       .traits = kComposite,
       .examples = {"[3,5], i64[3]<5", "[3,5], i64[3]<5; outputs=2",
                    "[3,5,2], i32[3,2]<5; reduction='none'",
                    "[3,5,2], i64[3,2]<5; reduction='sum' ignore_index=1 outputs=2",
                    "[3,5,2], i64[3,2]<5, [5]>0; ignore_index=2",
                    "[3,5], i64[3]<5, [5]>0; reduction='sum' outputs=2",
                    "[2,3], i64[2]={1,-1}, [3]>0; ignore_index=-1 reduction='none'",
                    "[2,3], i64[2]={1,10}; ignore_index=10",
                    "[2,4,2,3,2], i64[2,2,3,2]<4, [4]>0; outputs=2", "[2,3], i64[2]={1,7}, [3]>0",
                    "[0,4], i64[0]<4; reduction='sum'",
                    "[40,300], i64[40]<300, [300]>0; ignore_index=7", "[40,300,9], i64[40,9]<300"}},
      {.name = "NegativeLogLikelihoodLoss",
       .doc =
           "log_probs [N,C,...], labels [N,...], weights [C] -> -weight * log_probs at the labels, "
           "the mean divided by the sum of their weights. A label outside [0,C) gives NaN",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {kReduction, kIgnoreIndex},
       .shape = loss_shape,
       .decompose = nll_decomposition,
       .op_class = OpClass::kLoss,
       .traits = kComposite,
       .examples = {"[3,5], i64[3]<5", "[3,5,2], i32[3,2]<5; reduction='none'",
                    "[3,5,2], i64[3,2]<5; reduction='sum' ignore_index=1",
                    "[3,5,2], i64[3,2]<5, [5]>0; ignore_index=2",
                    "[3,5], i64[3]<5, [5]>0; reduction='none'",
                    "[2,3], i64[2]={1,-1}; ignore_index=-1 reduction='sum'",
                    "[2,4,2,3], i64[2,2,3]<4, [4]>0", "[2,3], i64[2]={1,7}, [3]>0",
                    "[0,4], i64[0]<4; reduction='none'",
                    "[60,200], i64[60]<200, [200]>0; ignore_index=3"}},
  };
}

}  // namespace trainscope
