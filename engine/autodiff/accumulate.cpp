// accumulate: sums each gradient over the micro-batches of a step: into a state of its own, and
// over the ranks of a run.
#include "engine/ir/rewriter.h"
#include "engine/ir/well_known.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

bool is_sum_over_ranks(const Graph& graph, ValueId gradient) {
  const NodeId producer = graph.value(gradient).producer;
  return producer != kNoNode && is_op(graph.node(producer), kTrainscopeDomain, "AllReduce");
}

// The first micro-batch overwrites the sum (micro_step is 0), so nothing has to be cleared.
void sum_over_micro_batches(Rewriter& rewriter, PassContext& context) {
  Graph& graph = rewriter.graph();
  Builder& b = rewriter.at_end(Phase::kBackward);
  b.set_prefix("accumulate/");
  ValueId micro_step = b.input(kMicroStepInput, {.dtype = DType::kI64, .shape = {}});
  for (GradientOf& gradient : graph.gradients) {
    if (graph.value(gradient.of).kind != ValueKind::kParameter) continue;
    std::string name = kAccumulatedPrefix + graph.value(gradient.of).name;
    ValueId sum = b.state(name, b.type(gradient.gradient), nullptr);
    ValueId next = b("Accumulate", {sum, gradient.gradient, micro_step});
    graph.updates.push_back({sum, next});
    gradient.gradient = next;
    context.count("gradients accumulated");
  }
}

// Once a step, in the update phase: no rank changes anything before all have their gradients.
// False when all are summed already.
bool sum_over_ranks(Rewriter& rewriter, PassContext& context) {
  Graph& graph = rewriter.graph();
  bool changed = false;
  Builder& b = rewriter.at_end(Phase::kUpdate);
  b.set_prefix("all_reduce/");
  b.set_evaluate(nullptr);  // the sum of a known gradient is not that gradient
  for (GradientOf& gradient : graph.gradients) {
    if (graph.value(gradient.of).kind != ValueKind::kParameter) continue;
    if (is_sum_over_ranks(graph, gradient.gradient)) continue;
    gradient.gradient = b("AllReduce", {gradient.gradient});
    context.count("gradients summed over ranks");
    changed = true;
  }
  return changed;
}

// The optimizer divides by the number of micro-batches of all ranks.
bool accumulate(Graph& graph, PassContext& context) {
  const TrainingOptions& options = context.options;
  if (options.mode != GraphMode::kTrain || graph.find(kLearningRateInput) != kNoValue) return false;
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const bool accumulates = options.micro_batches > 1 && graph.find(kMicroStepInput) == kNoValue;
  if (accumulates) sum_over_micro_batches(rewriter, context);
  const bool reduces = options.ranks > 1 && sum_over_ranks(rewriter, context);
  return accumulates || reduces;
}

}  // namespace

Pass accumulate_pass() {
  return {
      .name = "accumulate",
      .doc =
          "With several micro-batches a step: sum each gradient into a state. With several ranks: "
          "sum it over them, once a step.",
      .run = accumulate};
}

}  // namespace trainscope
