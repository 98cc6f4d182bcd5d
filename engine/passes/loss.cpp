// loss: attaches the loss asked for, or a weighted sum of several, to the graph's outputs, with the
// labels as new inputs.
#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/ir/well_known.h"
#include "engine/ops/rules/gradient_rules.h"
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
    case LossKind::kHuber:
      return "huber";
    case LossKind::kFocal:
      return "focal";
    case LossKind::kCtc:
      return "ctc";
    case LossKind::kOutput:
      return "output";
  }
  return "?";
}

std::vector<const LossOptions*> terms_of_loss(const LossOptions& loss) {
  std::vector<const LossOptions*> terms = {&loss};
  for (const LossOptions& term : loss.further) terms.push_back(&term);
  return terms;
}

std::string term_name(const LossOptions& term) {
  if (term.kind == LossKind::kOutput) return term.output;
  return fmt::format("{}({})", name_of(term.kind), term.output);
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

// Of an output [T, N, C] or, with time_axis 1, [N, T, C].
TensorType ctc_labels_type(const Value& scored, const LossOptions& loss) {
  const Shape& shape = scored.type.shape;
  require(shape.rank == 3, ErrorCode::kUsage,
          "ctc needs an output of shape [time, batch, classes], '{}' is {}", printable(scored.name),
          type_text(scored.type));
  if (loss.most_labels <= 0) {
    throw Error(ErrorCode::kUsage, "ctc: how many labels has an example at most?")
        .hint("--loss ctc:most_labels=S, for labels [N,S] filled up with any number");
  }
  require(loss.blank >= 0 && loss.blank < shape[2], ErrorCode::kUsage,
          "ctc: blank={}, but '{}' has {} classes", loss.blank, printable(scored.name), shape[2]);
  return {.dtype = DType::kI64, .shape = {shape[1 - loss.time_axis], loss.most_labels}};
}

TensorType labels_type(const Value& scored, const LossOptions& loss) {
  const TensorType& output = scored.type;
  if (loss.kind == LossKind::kCtc) return ctc_labels_type(scored, loss);
  if (!is_by_class(loss.kind)) return output;
  require(output.shape.rank >= 2, ErrorCode::kUsage,
          "{} needs an output of shape [N, ..., classes], '{}' is {}", name_of(loss.kind),
          printable(scored.name), type_text(output));
  const std::int64_t rank = output.shape.rank;
  require(loss.class_axis >= -rank && loss.class_axis < rank, ErrorCode::kUsage,
          "class_axis={} of the loss is outside [-{}, {}): '{}' is {}", loss.class_axis, rank, rank,
          printable(scored.name), type_text(output));
  int axis = normalized_axis(loss.class_axis, output.shape.rank);
  if (output.shape[axis] == 1) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} over one class is always 0: '{}' is {}", name_of(loss.kind),
                            printable(scored.name), type_text(output)))
        .hint("a yes or no: --loss bce_with_logits, labels 0.0 and 1.0; a number: --loss mse");
  }
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

// New, or that of another term of the loss.
ValueId lengths_input(Builder& b, std::string_view name, const TensorType& type) {
  const ValueId found = b.graph().find(name);
  if (found == kNoValue) return b.input(name, type);
  const Value& value = b.graph().value(found);
  require(value.kind == ValueKind::kInput && value.type == type, ErrorCode::kUsage,
          "ctc reads {} as an input '{}', the model has another value of this name",
          type_text(type), name);
  return found;
}

// With the lengths of inputs and labels as inputs of their own.
ValueId ctc(Builder& b, ValueId output, ValueId labels, const LossOptions& loss) {
  const ValueId log_probs = b("LogSoftmax", {output}, {{"axis", std::int64_t{2}}});
  const ValueId by_time =
      loss.time_axis == 0 ? log_probs : b("Transpose", {log_probs}, {{"perm", Ints{1, 0, 2}}});
  const TensorType lengths{.dtype = DType::kI64, .shape = {b.shape(labels)[0]}};
  const ValueId input_lengths = lengths_input(b, kInputLengths, lengths);
  const ValueId label_lengths = lengths_input(b, kLabelLengths, lengths);
  ValueId losses =
      b("CtcLoss", {by_time, labels, input_lengths, label_lengths}, {{"blank", loss.blank}});
  const DType dtype = b.type(losses).dtype;
  if (loss.zero_infinity) {
    losses = b("Where", {b("IsInf", {losses}), b.scalar(0.0, dtype), losses});
  }
  const ValueId divisors = b("Max", {cast_to(b, label_lengths, dtype), b.scalar(1.0, dtype)});
  return b("ReduceMean", {b("Div", {losses, divisors})}, {{"keepdims", std::int64_t{0}}});
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
    case LossKind::kHuber:
      return b("HuberLoss", {output, labels}, {{"delta", loss.delta}});
    case LossKind::kFocal:
      return b("FocalLoss", {output, labels}, {{"gamma", loss.gamma}, {"alpha", loss.alpha}});
    case LossKind::kCtc:
      return ctc(b, output, labels, loss);
    case LossKind::kOutput:
      return b.reshape(output, Shape());
  }
  return kNoValue;
}

// The labels as a new input of the graph, or an input that there is: one of the model, as an
// autoencoder's own, or the labels of a term before.
ValueId labels_input(Builder& b, ValueId output, const LossOptions& loss) {
  const TensorType type = labels_type(b.graph().value(output), loss);
  const ValueId found = b.graph().find(loss.labels);
  if (found == kNoValue) return b.input(loss.labels, type);
  const Value& value = b.graph().value(found);
  if (value.kind == ValueKind::kInput && value.type == type) return found;
  const bool is_input = value.kind == ValueKind::kInput;
  throw Error(ErrorCode::kUsage,
              fmt::format("the model already has a value named '{}': choose another name with "
                          "labels=NAME in --loss",
                          printable(loss.labels)))
      .hint(is_input ? fmt::format("as labels of '{}' it would have to be {}, it is {}",
                                   printable(b.graph().value(output).name), type_text(type),
                                   type_text(value.type))
                     : "");
}

// The model computes the loss itself: an output of one element.
void check_own_loss(const Value& value) {
  require(value.type.elements() == 1 && value.kind == ValueKind::kNode, ErrorCode::kUsage,
          "the loss 'output:{}' must be a scalar that the model computes, it is {} {}",
          printable(value.name), name_of(value.kind), type_text(value.type));
}

ValueId term(Builder& b, const LossOptions& loss) {
  const ValueId output = scored_output(b.graph(), loss);
  const Value& value = b.graph().value(output);
  require(is_float(value.type.dtype), ErrorCode::kUsage,
          "the loss reads '{}', which is {}, not float", printable(value.name),
          type_text(value.type));
  if (loss.kind == LossKind::kOutput) {
    check_own_loss(value);
    return attach(b, output, kNoValue, loss);
  }
  return attach(b, output, labels_input(b, output, loss), loss);
}

// weight * term, as an output of its own name besides, so that each can be read after a step.
ValueId weighted_term(Builder& b, const LossOptions& loss) {
  Graph& graph = b.graph();
  ValueId value = term(b, loss);
  const bool is_of_model = value == scored_output(graph, loss);
  if (is_of_model) value = b("Identity", {value});
  graph.rename(value, graph.unique_name(kLossTermPrefix + term_name(loss)));
  graph.outputs.push_back(value);
  if (loss.weight == 1.0) return value;
  return b("Mul", {value, b.scalar(loss.weight, b.type(value).dtype)});
}

ValueId sum_of_terms(Builder& b, const std::vector<const LossOptions*>& terms) {
  ValueId sum = kNoValue;
  for (const LossOptions* each : terms) {
    const ValueId value = weighted_term(b, *each);
    sum = sum == kNoValue ? value : b("Add", {sum, cast_to(b, value, b.type(sum).dtype)});
  }
  return sum;
}

bool attach_loss(Graph& graph, PassContext& context) {
  if (context.options.mode == GraphMode::kInference || graph.loss != kNoValue) return false;
  const std::vector<const LossOptions*> terms = terms_of_loss(context.options.loss);
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  Builder& b = rewriter.at_end(Phase::kForward);
  const bool is_plain = terms.size() == 1 && terms.front()->weight == 1.0;
  graph.loss = is_plain ? term(b, *terms.front()) : sum_of_terms(b, terms);
  return true;
}

}  // namespace

Pass loss_pass() {
  return {.name = "loss",
          .doc = "Attach the loss to the model's output; the labels become a graph input.",
          .run = attach_loss};
}

}  // namespace trainscope
