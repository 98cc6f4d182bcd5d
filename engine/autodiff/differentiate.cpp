// differentiate: appends the backward graph, made of the gradient rules of the op table.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/autodiff/alternate.h"
#include "engine/autodiff/differentiator.h"
#include "engine/autodiff/late_nodes.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/ir/well_known.h"
#include "engine/ops/rules/straight_through.h"
#include "engine/passes/bodies.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

std::vector<ValueId> targets_of(const Graph& graph, const TrainingOptions& options) {
  std::vector<ValueId> targets = graph.values_of(ValueKind::kParameter);
  for (const std::string& name : options.gradient_of) {
    ValueId v = graph.find(name);
    require(v != kNoValue, ErrorCode::kUsage, "the model has no value '{}'", printable(name));
    if (graph.value(v).kind != ValueKind::kParameter) targets.push_back(v);
  }
  return targets;
}

// Results that were called aside for a UserGradient have their own names again.
void take_back_name(Graph& graph, ValueId result, const std::string& name) {
  const bool aside = result != kNoValue && graph.value(result).name.ends_with(kForwardEnding);
  if (aside) graph.rename(result, graph.unique_name(name));
}

// Tells nodes with bodies, also of bodies, that steps in these pass gradients on. Whether there are
// any.
bool pass_straight_in_bodies(Graph& graph) {
  bool changed = false;
  for (const NodeId id : graph.order()) {
    if (!std::as_const(graph).node(id).op->body) continue;
    graph.node(id).attributes.set(kStraightThrough, std::int64_t{1});
    changed = true;
  }
  return change_bodies(graph, pass_straight_in_bodies) || changed;
}

// They have said what they are there for, in bodies too. Whether there were any.
bool release_user_gradients(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  for (NodeId id : graph.order()) {
    if (!graph.node(id).op->replaces_gradient) continue;
    const Node node = graph.node(id);  // a copy: the graph's storage grows
    std::vector<ValueId> results;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      names.push_back(output == kNoValue ? "" : graph.value(output).name);
      const bool replaced = output == kNoValue || rewriter.can_replace(output, node.inputs[i]);
      results.push_back(replaced ? node.inputs[i]
                                 : rewriter.before(id)("Identity", {node.inputs[i]}));
    }
    rewriter.replace_node(id, results);
    for (std::size_t i = 0; i < results.size(); ++i) take_back_name(graph, results[i], names[i]);
    context.count("gradients of the user");
  }
  const bool in_bodies = change_bodies(
      graph, [&context](Graph& body) { return release_user_gradients(body, context); });
  return rewriter.changed() || in_bodies;
}

bool run_differentiate(Graph& graph, PassContext& context) {
  if (graph.loss == kNoValue || !context.awaits_gradients(graph)) return false;
  if (context.options.straight_through) pass_straight_in_bodies(graph);
  const bool trains = context.options.mode == GraphMode::kTrain;
  if (trains && !context.options.alternation.empty()) {
    append_alternation(graph, context);
    release_user_gradients(graph, context);
    return true;
  }
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const std::vector<NodeId> model = graph.order();
  const std::size_t without = append_gradients(
      rewriter, {.loss = graph.loss, .targets = targets_of(graph, context.options), .nodes = model},
      context.options);
  context.count("gradients", static_cast<std::int64_t>(graph.gradients.size()));
  context.count("without gradient", static_cast<std::int64_t>(without));
  require(!graph.gradients.empty(), ErrorCode::kUsage,
          "nothing to train: no trainable parameter influences the loss");
  graph = graph.reordered(with_late_nodes(graph, model));
  release_user_gradients(graph, context);
  return true;
}

}  // namespace

Pass differentiate_pass() {
  return {.name = "differentiate",
          .doc =
              "Append the gradients of the loss by every parameter, as a graph of ops; with "
              "--alternate those of each loss by its own parameters, and their update.",
          .run = run_differentiate};
}

}  // namespace trainscope
