// optimizer_step: appends clipping and one fused update of all parameters.
#include <algorithm>
#include <vector>

#include "engine/autodiff/optimizer_update.h"
#include "engine/core/error.h"
#include "engine/ir/rewriter.h"
#include "engine/ir/well_known.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// Where each parameter can change: the node before which its gradient is there and nothing reads
// its old elements any more, be it through views; kNoNode: the end.
class UpdatePlaces {
 public:
  explicit UpdatePlaces(const Graph& graph)
      : graph_(graph), order_(graph.order()), position_(graph.node_capacity(), 0) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position_[static_cast<std::size_t>(order_[i])] = i;
    }
  }

  NodeId of(ValueId parameter, ValueId gradient) const {
    const NodeId producer = graph_.value(gradient).producer;
    std::size_t last = producer == kNoNode ? 0 : position(producer);
    std::vector<ValueId> open = {parameter};
    while (!open.empty()) {
      const Value& value = graph_.value(open.back());
      open.pop_back();
      for (const Use& use : value.uses) {
        last = std::max(last, position(use.node));
        const Node& reader = graph_.node(use.node);
        if (reader.op->is_view) open.push_back(reader.outputs[0]);
      }
    }
    return last + 1 < order_.size() ? order_[last + 1] : kNoNode;
  }

 private:
  std::size_t position(NodeId id) const { return position_[static_cast<std::size_t>(id)]; }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<std::size_t> position_;  // by NodeId
};

void check_in_backward(const TrainingOptions& options) {
  require(options.optimizer.clip_norm <= 0.0, ErrorCode::kUsage,
          "the optimizer cannot run in the backward phase with clipping: the norm of all gradients "
          "is known at its end");
  require(
      options.precision != StepPrecision::kF16, ErrorCode::kUsage,
      "the optimizer cannot run in the backward phase with fp16: whether a step counts is known "
      "at its end");
  require(options.micro_batches == 1, ErrorCode::kUsage,
          "the optimizer cannot run in the backward phase with accumulation: gradients are summed "
          "over {} micro-batches first",
          options.micro_batches);
  require(options.ranks == 1, ErrorCode::kUsage,
          "the optimizer cannot run in the backward phase on {} ranks: gradients are summed over "
          "them first",
          options.ranks);
}

// One update for each parameter, as early as it can be: its gradient's bytes are free then.
void update_in_backward(Rewriter& rewriter, const Trained& trained, PassContext& context) {
  check_in_backward(context.options);
  const UpdatePlaces places(rewriter.graph());
  std::vector<NodeId> place;
  for (std::size_t i = 0; i < trained.parameters.size(); ++i) {
    place.push_back(places.of(trained.parameters[i], trained.gradients[i]));
  }
  const StepInputs common =
      add_step_inputs(rewriter.at_end(Phase::kBackward), trained, context.options);
  for (std::size_t i = 0; i < place.size(); ++i) {
    Builder& b =
        place[i] == kNoNode ? rewriter.at_end(Phase::kBackward) : rewriter.before(place[i]);
    b.set_phase(Phase::kBackward);
    b.set_prefix("update/");
    append_update(b, {.parameters = {trained.parameters[i]}, .gradients = {trained.gradients[i]}},
                  common, context.options);
  }
}

bool append_optimizer_step(Graph& graph, PassContext& context) {
  if (context.options.mode != GraphMode::kTrain || graph.find(kLearningRateInput) != kNoValue)
    return false;
  Trained trained = trained_parameters(graph);
  if (trained.parameters.empty()) return false;
  check_groups(graph, trained, context.options.optimizer);
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  if (!context.options.keep_outputs) {
    release_model_outputs(graph);
  }
  if (context.options.optimizer.in_backward) {
    update_in_backward(rewriter, trained, context);
  } else {
    Builder& b = rewriter.at_end(Phase::kUpdate);
    b.set_prefix("update/");
    const StepInputs common = add_step_inputs(b, trained, context.options);
    append_update(b, trained, common, context.options);
  }
  if (!context.options.keep_gradients) release_gradients(graph);
  context.count("parameters", static_cast<std::int64_t>(trained.parameters.size()));
  return true;
}

}  // namespace

Pass optimizer_step_pass() {
  return {
      .name = "optimizer_step",
      .doc = "Append clipping and one fused update of all parameters, or one of each in backward.",
      .run = append_optimizer_step};
}

}  // namespace trainscope
