// loss: attaches the loss asked for to the graph's output, with the labels as a new input.
#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {

std::string_view name_of(LossKind kind) {
  switch (kind) {
    case LossKind::kCrossEntropy:
      return "cross_entropy";
    case LossKind::kNll:
      return "nll";
    case LossKind::kMse:
      return "mse";
    case LossKind::kBceWithLogits:
      return "bce_with_logits";
    case LossKind::kL1:
      return "l1";
    case LossKind::kOutput:
      return "output";
  }
  return "?";
}

namespace {

ValueId scored_output(const Graph& graph, const LossOptions& loss) {
  if (loss.output.empty()) return graph.outputs.front();
  ValueId found = graph.find(loss.output);
  if (found != kNoValue) return found;
  std::vector<std::string> names;
  for (ValueId v : graph.outputs) names.push_back(graph.value(v).name);
  throw Error(ErrorCode::kUsage,
              fmt::format("the loss reads output '{}', which the model does not have",
                          printable(loss.output)))
      .hint(fmt::format("outputs: {}", printable(join(names, ", "), 400)));
}

TensorType labels_type(const Value& scored, const LossOptions& loss) {
  const TensorType& output = scored.type;
  if (!is_by_class(loss.kind)) return output;
  require(output.shape.rank >= 2, ErrorCode::kUsage,
          "{} needs an output of shape [N, ..., classes], '{}' is {}", name_of(loss.kind),
          printable(scored.name), type_text(output));
  const std::int64_t rank = output.shape.rank;
  require(loss.class_axis >= -rank && loss.class_axis < rank, ErrorCode::kUsage,
          "class_axis={} of the loss is outside [-{}, {}): '{}' is {}", loss.class_axis, rank, rank,
          printable(scored.name), type_text(output));
  int axis = normalized_axis(loss.class_axis, output.shape.rank);
  TensorType type{.dtype = DType::kI64, .shape = {}};
  for (int a = 0; a < output.shape.rank; ++a) {
    if (a != axis) type.shape.push_back(output.shape[a]);
  }
  return type;
}

// The weights as a constant of the scores' type.
ValueId class_weights(Builder& b, ValueId scores, const LossOptions& loss) {
  const TensorType& type = b.type(scores);
  const std::int64_t classes = type.shape[normalized_axis(loss.class_axis, type.shape.rank)];
  const auto given = static_cast<std::int64_t>(loss.class_weights.size());
  require(given == classes, ErrorCode::kUsage, "the loss has {} class weights, '{}' has {} classes",
          given, printable(b.graph().value(scores).name), classes);
  const Tensor weights = Tensor::of<double>(Shape{given}, loss.class_weights);
  return b.constant(convert(weights, type.dtype), "class_weights");
}

ValueId cross_entropy(Builder& b, std::vector<ValueId> inputs, const LossOptions& loss,
                      Attributes attributes) {
  if (loss.class_weights.empty() && loss.label_smoothing == 0.0) {
    return b.multi("CrossEntropy", std::move(inputs), 3, std::move(attributes)).front();
  }
  attributes.set("label_smoothing", loss.label_smoothing);
  if (!loss.class_weights.empty()) inputs.push_back(class_weights(b, inputs.front(), loss));
  return b.multi("WeightedCrossEntropy", std::move(inputs), 3, std::move(attributes)).front();
}

ValueId attach(Builder& b, ValueId output, ValueId labels, const LossOptions& loss) {
  Attributes attributes;
  if (is_by_class(loss.kind)) {
    attributes.set("class_axis", loss.class_axis);
    attributes.set("ignore_index", loss.ignore_index);
  }
  switch (loss.kind) {
    case LossKind::kCrossEntropy:
      return cross_entropy(b, {output, labels}, loss, std::move(attributes));
    case LossKind::kNll:
      return b.multi("NegativeLogLikelihood", {output, labels}, 2, attributes).front();
    case LossKind::kMse:
      return b("MeanSquaredError", {output, labels});
    case LossKind::kBceWithLogits:
      return b("BceWithLogits", {output, labels});
    case LossKind::kL1:
      return b("MeanAbsoluteError", {output, labels});
    case LossKind::kOutput:
      return b.reshape(output, Shape());
  }
  return kNoValue;
}

// The model computes its loss itself: an output of one element.
bool take_output(Graph& graph, PassContext& context, ValueId output) {
  const Value& value = graph.value(output);
  require(value.type.elements() == 1 && value.kind == ValueKind::kNode, ErrorCode::kUsage,
          "the loss 'output:{}' must be a scalar that the model computes, it is {} {}",
          printable(value.name), name_of(value.kind), type_text(value.type));
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  graph.loss = attach(rewriter.at_end(Phase::kForward), output, kNoValue, context.options.loss);
  return true;
}

bool attach_loss(Graph& graph, PassContext& context) {
  if (context.options.mode == GraphMode::kInference || graph.loss != kNoValue) return false;
  const LossOptions& loss = context.options.loss;
  ValueId output = scored_output(graph, loss);
  const TensorType type = graph.value(output).type;
  require(is_float(type.dtype), ErrorCode::kUsage, "the loss reads '{}', which is {}, not float",
          printable(graph.value(output).name), type_text(type));
  if (loss.kind == LossKind::kOutput) return take_output(graph, context, output);
  require(
      graph.find(loss.labels) == kNoValue, ErrorCode::kUsage,
      "the model already has a value named '{}': choose another name with labels=NAME in --loss",
      printable(loss.labels));
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  Builder& b = rewriter.at_end(Phase::kForward);
  ValueId labels = b.input(loss.labels, labels_type(graph.value(output), loss));
  graph.loss = attach(b, output, labels, loss);
  return true;
}

}  // namespace

Pass loss_pass() {
  return {.name = "loss",
          .doc = "Attach the loss to the model's output; the labels become a graph input.",
          .run = attach_loss};
}

}  // namespace trainscope
