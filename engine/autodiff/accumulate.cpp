// accumulate: with several micro-batches a step, sums each gradient into a state of its own.
#include <fmt/format.h>

#include "engine/ir/rewriter.h"
#include "engine/ir/well_known.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// The first micro-batch overwrites the sum (micro_step is 0), so nothing has to be cleared. The
// optimizer divides by the number of micro-batches.
bool accumulate(Graph& graph, PassContext& context) {
  const TrainingOptions& options = context.options;
  if (options.mode != GraphMode::kTrain || options.micro_batches <= 1) return false;
  if (graph.find(kMicroStepInput) != kNoValue) return false;
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
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
  return true;
}

}  // namespace

Pass accumulate_pass() {
  return {.name = "accumulate",
          .doc = "With several micro-batches a step: sum each gradient into a state.",
          .run = accumulate};
}

}  // namespace trainscope
