// chunked_loss: the last linear layer and the loss over it, one chunk of rows after another, so
// that the scores of one chunk only are alive at a time.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/passes/pass.h"
#include "engine/passes/plain_view.h"
#include "engine/passes/token_rows.h"

namespace trainscope {
namespace {

// The node of a loss over classes.
struct Loss {
  NodeId node = kNoNode;
  ClassLoss is = {};
  ValueId scores = kNoValue;
  ValueId labels = kNoValue;
  ValueId weights = kNoValue;  // of the classes
};

// The layer that makes the scores: matmul, maybe a bias, maybe another shape.
struct Head {
  std::vector<NodeId> path;  // from the scores back to the matmul
  ValueId rows = kNoValue;   // [..., features]
  ValueId matrix = kNoValue;
  ValueId bias = kNoValue;  // [classes], of an Add
};

class ChunkedLoss {
 public:
  ChunkedLoss(Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        rewriter_(graph, context.ops, context.pass, context.evaluate) {}

  void run() {
    loss_ = find_loss();
    find_head();
    const TensorType scores = graph_.value(loss_.scores).type;
    const std::int64_t classes = scores.shape[scores.shape.rank - 1];
    const std::int64_t rows = classes == 0 ? 0 : scores.elements() / classes;
    const std::int64_t chunks = context_.options.loss_chunks;
    require(chunks <= rows, ErrorCode::kUsage,
            "the loss cannot be computed in {} chunks: '{}' has {} rows", chunks,
            printable(graph_.value(loss_.scores).name), rows);
    release_outputs();
    replace(rows, classes);
    context_.count("chunks", chunks);
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorCode::kUsage, "the loss cannot be computed in chunks: " +
                                       fmt::format(format, std::forward<Args>(args)...))
        .hint(
            "chunks need a linear layer (MatMul or Gemm, perhaps a bias) whose result nothing but "
            "a cross entropy over its last axis reads");
  }

  std::string name_of_node(const Node& node) const {
    return fmt::format("{} '{}'", node.op->name, printable(node.name));
  }

  const Node* producer_of(ValueId v) const {
    const NodeId id = graph_.value(v).producer;
    return id == kNoNode ? nullptr : &graph_.node(id);
  }

  static bool passes_on(const Node& node) { return is_plain_view(*node.op); }

  Loss find_loss() const {
    ValueId v = graph_.loss;
    const Node* node = producer_of(v);
    while (node != nullptr && passes_on(*node)) {
      v = node->inputs[0];
      node = producer_of(v);
    }
    if (node == nullptr) refuse("nothing computes it");
    if (node->op->class_loss == nullptr) refuse("{} is no cross entropy", name_of_node(*node));
    const NodeArgs args(graph_, *node);
    Loss loss{.node = graph_.value(v).producer,
              .is = node->op->class_loss(*args),
              .scores = node->inputs[0],
              .labels = node->inputs[1]};
    if (loss.is.reduction == LossReduction::kNone) {
      refuse("{} reduces nothing", name_of_node(*node));
    }
    if (node->op->divisor_input >= 0 && args->has(node->op->divisor_input)) {
      refuse("{} is divided by a value of its own", name_of_node(*node));
    }
    if (loss.is.weights_input >= 0) {
      loss.weights = node->inputs[static_cast<std::size_t>(loss.is.weights_input)];
    }
    if (loss.weights != kNoValue && graph_.value(loss.weights).kind == ValueKind::kParameter) {
      refuse("the class weights '{}' are trained (--freeze keeps them as they are)",
             printable(graph_.value(loss.weights).name));
    }
    if (loss.is.class_axis != args->rank(0) - 1) {
      refuse("the classes of {} are not the last axis of its scores", name_of_node(*node));
    }
    return loss;
  }

  void find_head() {
    ValueId v = loss_.scores;
    for (;;) {
      const Node* node = producer_of(v);
      if (node == nullptr) refuse("its scores '{}' are an input", printable(graph_.value(v).name));
      head_.path.push_back(graph_.value(v).producer);
      if (row_kind(*node) == RowKind::kMatmul) break;
      v = step_back(*node);
    }
    const Node& matmul = graph_.node(head_.path.back());
    head_.rows = matmul.inputs[0];
    head_.matrix = matmul.inputs[1];
    const bool matrices = graph_.value(head_.rows).type.shape.rank >= 2 &&
                          graph_.value(head_.matrix).type.shape.rank == 2;
    const bool transposed = matmul.attributes.integer("transA", 0) != 0 ||
                            matmul.attributes.integer("transpose_a", 0) != 0;
    if (!matrices || transposed) {
      refuse("{} does not multiply rows by one matrix", name_of_node(matmul));
    }
    const bool addend = matmul.inputs.size() > 2 && matmul.inputs[2] != kNoValue;
    if (addend && !is_bias(matmul.inputs[2])) {
      refuse("{} adds more than a bias", name_of_node(matmul));
    }
  }

  std::int64_t classes() const {
    const Shape& scores = graph_.value(loss_.scores).type.shape;
    return scores[scores.rank - 1];
  }

  // One number for each class.
  bool is_bias(ValueId v) const {
    const Shape& shape = graph_.value(v).type.shape;
    return shape.rank > 0 && shape[shape.rank - 1] == classes() && shape.elements() == classes();
  }

  // What the result of a node between matmul and loss is made of.
  ValueId step_back(const Node& node) {
    if (passes_on(node)) {
      const Shape& from = graph_.value(node.inputs[0]).type.shape;
      if (from.rank > 0 && from[from.rank - 1] == classes()) return node.inputs[0];
      refuse("{} changes the classes of a row", name_of_node(node));
    }
    if (!node.op->is_sum || head_.bias != kNoValue) {
      refuse("{} stands between the linear layer and the loss", name_of_node(node));
    }
    for (std::size_t i : {std::size_t{1}, std::size_t{0}}) {
      const ValueId other = node.inputs[1 - i];
      const bool same = graph_.value(other).type == graph_.value(node.outputs[0]).type;
      if (!is_bias(node.inputs[i]) || !same) continue;
      head_.bias = node.inputs[i];
      return other;
    }
    refuse("{} adds more than a bias", name_of_node(node));
  }

  // The scores stop being outputs of the model: they would be kept to the end of the step.
  void release_outputs() {
    std::vector<ValueId> released;
    std::vector<NodeId> nodes = head_.path;
    nodes.push_back(loss_.node);
    for (NodeId id : nodes) {
      const Node& node = graph_.node(id);
      for (std::size_t i = id == loss_.node ? 1 : 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != kNoValue) released.push_back(node.outputs[i]);
      }
    }
    for (ValueId v : released) {
      for (const Use& use : graph_.value(v).uses) {
        const bool inside = std::ranges::find(nodes, use.node) != nodes.end();
        if (!inside) {
          refuse("'{}' is also read by {}", printable(graph_.value(v).name),
                 name_of_node(graph_.node(use.node)));
        }
      }
    }
    graph_.release_outputs(released);
  }

  void replace(std::int64_t rows, std::int64_t classes) {
    const Node matmul = graph_.node(head_.path.back());  // copies: the graph grows
    const SourceNames loss_sources = graph_.node(loss_.node).provenance.sources;
    Builder& b = rewriter_.before(loss_.node);
    // With its gradient, so that a chunk's scores are gone before the next chunk's are made.
    b.set_phase(Phase::kBackward);
    b.set_prefix("chunk/");
    const Shape features = b.shape(head_.rows);
    const ValueId labels = b.reshape(loss_.labels, {rows});
    const ValueId divisor = divisor_of(b, labels);
    const std::vector<ValueId> x_chunks =
        split(b, b.reshape(head_.rows, {rows, features[features.rank - 1]}));
    const std::vector<ValueId> label_chunks = split(b, labels);
    if (head_.bias != kNoValue) head_.bias = b.reshape(head_.bias, {classes});
    ValueId total = kNoValue;
    ValueId last_scores = kNoValue;
    for (std::size_t i = 0; i < x_chunks.size(); ++i) {
      std::vector<ValueId> inputs = matmul.inputs;
      inputs[0] = x_chunks[i];
      b.set_provenance({.sources = matmul.provenance.sources, .pass = std::string(context_.pass)});
      ValueId scores = b(matmul.op->name, inputs, matmul.attributes);
      if (head_.bias != kNoValue) scores = b("Add", {scores, head_.bias});
      b.set_provenance({.sources = loss_sources, .pass = std::string(context_.pass)});
      const ValueId loss = loss_of_chunk(b, scores, label_chunks[i], divisor);
      last_scores = scores;
      total = total == kNoValue ? loss : b("Add", {total, loss});
    }
    rewriter_.replace(graph_.node(loss_.node).outputs[0], total);
    rewriter_.erase(loss_.node);
    for (NodeId id : head_.path) rewriter_.erase_into(id, last_scores);
  }

  // Chunks of nearly equal size.
  std::vector<ValueId> split(Builder& b, ValueId v) const {
    const std::int64_t rows = b.shape(v)[0];
    const std::int64_t chunks = context_.options.loss_chunks;
    Ints sizes;
    for (std::int64_t i = 0; i < chunks; ++i) {
      sizes.push_back((i + 1) * rows / chunks - i * rows / chunks);
    }
    return b.multi("Split", {v, b.ints(sizes)}, static_cast<int>(chunks),
                   {{"axis", std::int64_t{0}}});
  }

  // What the sum over all rows is divided by, from the labels alone: it is there before any chunk.
  ValueId divisor_of(Builder& b, ValueId labels) const {
    const DType dtype = b.type(loss_.scores).dtype;
    if (loss_.is.reduction == LossReduction::kSum) return b.scalar(1.0, dtype);
    const ValueId numbers = cast_to(b, labels, DType::kI64);
    const ValueId ignored =
        b("Equal", {numbers, b.constant(Tensor::scalar(loss_.is.ignore_index), "ignored")});
    ValueId counts = kNoValue;
    if (loss_.weights == kNoValue) {
      counts = cast_to(b, b("Not", {ignored}), dtype);
    } else {
      const ValueId zero = b.constant(Tensor::scalar(std::int64_t{0}), "number");
      const ValueId weights = b("Gather", {loss_.weights, b("Where", {ignored, zero, numbers})});
      counts = b("Where", {ignored, b.scalar(0.0, dtype), weights});
    }
    return b("ReduceSum", {counts}, {{"keepdims", std::int64_t{0}}});
  }

  ValueId loss_of_chunk(Builder& b, ValueId scores, ValueId labels, ValueId divisor) const {
    const int place = context_.ops.get(loss_.is.rows_form).divisor_input;
    std::vector<ValueId> inputs{scores, labels, loss_.weights};
    inputs.resize(static_cast<std::size_t>(place));
    inputs.push_back(divisor);
    return b.multi(loss_.is.rows_form, std::move(inputs), 3, loss_.is.attributes).front();
  }

  Graph& graph_;
  PassContext& context_;
  Rewriter rewriter_;
  Loss loss_;
  Head head_;
};

bool split_loss(Graph& graph, PassContext& context) {
  const TrainingOptions& options = context.options;
  const bool training = options.mode == GraphMode::kTrain || options.mode == GraphMode::kGradients;
  if (!training || options.loss_chunks <= 1 || graph.loss == kNoValue) return false;
  for (NodeId id : graph.order()) {
    if (graph.node(id).provenance.pass == context.pass) return false;  // done
  }
  ChunkedLoss(graph, context).run();
  return true;
}

}  // namespace

Pass chunked_loss_pass() {
  return {.name = "chunked_loss",
          .doc =
              "With several loss chunks: the last linear layer and the loss over a chunk of the "
              "rows at a time.",
          .run = split_loss};
}

}  // namespace trainscope
