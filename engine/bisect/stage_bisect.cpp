// Two stages at a time: what comes out at their ends, and where they part.
#include "engine/bisect/stage_bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/bisect/defined_step.h"
#include "engine/bisect/limits.h"
#include "engine/bisect/observed.h"
#include "engine/bisect/typed_inputs.h"
#include "engine/core/error.h"

namespace trainscope {
namespace {

struct StageRun {
  const Stage* stage = nullptr;
  ReferenceValues values;
  std::map<std::string, ValueId> ends;
  double gradients = 0.0;  // the norm of all
};

std::map<std::string, ValueId> ends_of(const Graph& graph) {
  std::map<std::string, ValueId> ends;
  for (const ValueId id : graph.outputs) ends.emplace("output " + graph.value(id).name, id);
  if (graph.loss != kNoValue) ends.emplace("loss", graph.loss);
  for (const GradientOf& gradient : graph.gradients) {
    ends.emplace("gradient " + graph.value(gradient.of).name, gradient.gradient);
  }
  for (const Update& update : graph.updates) {
    ends.emplace("next " + graph.value(update.state).name, update.value);
  }
  return ends;
}

struct Difference {
  double error = 0.0;
  double limit = 0.0;
  bool comparable = false;
  bool is_fault() const { return comparable && error > limit; }
};

class StageBisecter {
 public:
  StageBisecter(const std::map<std::string, Tensor>& inputs, const Evaluate& evaluate)
      : inputs_(inputs), evaluate_(evaluate) {}

  StageBisect run(const Stages& stages) {
    std::optional<StageRun> before;
    for (const Stage& stage : stages) {
      const bool has_graph = stage.graph.node_count() > 0;
      if (!has_graph || (before && !stage.changed)) continue;
      std::optional<StageRun> now = run_stage(stage, before ? before->stage : nullptr);
      if (result_.fault) break;
      if (!now) continue;
      ++result_.stages;
      if (before && compare_ends(*before, *now)) break;
      before = std::move(now);
    }
    return std::move(result_);
  }

 private:
  // None for a stage that does not run: a fault where the one before it did; before that, ops may
  // wait for passes that give them a meaning.
  std::optional<StageRun> run_stage(const Stage& stage, const Stage* before) {
    try {
      return values_of(stage);
    } catch (const Error& error) {
      if (before == nullptr) return std::nullopt;
      result_.fault = StageFault{.stage = stage.name,
                                 .label = stage.label,
                                 .before = before->label,
                                 .end = "the step, which fails: " + error.message(),
                                 .error = 1.0,
                                 .limit = kStageLimit};
      return std::nullopt;
    }
  }

  StageRun values_of(const Stage& stage) const {
    StageRun run{.stage = &stage,
                 .values = reference_run(stage.graph, typed_for(stage.graph, inputs_), evaluate_),
                 .ends = ends_of(stage.graph)};
    double squares = 0.0;
    for (const GradientOf& gradient : stage.graph.gradients) {
      const double norm = norm_of(finite_elements(run.values.at(gradient.gradient)));
      squares += norm * norm;
    }
    run.gradients = std::sqrt(squares);
    return run;
  }

  static Difference difference(const StageRun& a, ValueId in_a, const StageRun& b, ValueId in_b,
                               bool is_gradient) {
    const Tensor& x = a.values.at(in_a);
    const Tensor& y = b.values.at(in_b);
    if (x.elements() != y.elements() || !is_float(x.dtype()) || !is_float(y.dtype())) return {};
    const Coordinates p = finite_elements(x);
    const Coordinates q = finite_elements(y);
    const double norm = std::max(norm_of(p), norm_of(q));
    if (norm == 0.0) return {.comparable = true};
    double limit = kStageLimit;
    if (is_gradient) limit = std::max(limit, kOfTheGradients * a.gradients / norm);
    return {.error = distance(p, q) / norm, .limit = limit, .comparable = true};
  }

  bool compare_ends(const StageRun& before, const StageRun& now) {
    std::optional<StageFault> worst;
    for (const auto& [end, id] : before.ends) {
      const auto found = now.ends.find(end);
      if (found == now.ends.end()) continue;
      const Difference apart =
          difference(before, id, now, found->second, end.starts_with("gradient "));
      result_.ends += apart.comparable ? 1 : 0;
      if (!apart.is_fault()) continue;
      if (worst && apart.error / apart.limit <= worst->error / worst->limit) continue;
      worst = StageFault{.stage = now.stage->name,
                         .label = now.stage->label,
                         .before = before.stage->label,
                         .end = end,
                         .value = {},
                         .op = {},
                         .node = {},
                         .error = apart.error,
                         .limit = apart.limit};
    }
    if (!worst) return false;
    name_value(before, now, *worst);
    result_.fault = std::move(worst);
    return true;
  }

  // Of the values that both have under one serial the first, in the later stage's order.
  static void name_value(const StageRun& before, const StageRun& now, StageFault& fault) {
    std::unordered_map<Serial, ValueId> by_serial;
    for (const ValueId id : before.stage->graph.values_of(ValueKind::kNode)) {
      by_serial.emplace(before.stage->graph.value(id).serial, id);
    }
    const Graph& graph = now.stage->graph;
    for (const NodeId node : graph.order()) {
      for (const ValueId out : graph.node(node).outputs) {
        if (out == kNoValue) continue;
        const auto same = by_serial.find(graph.value(out).serial);
        if (same == by_serial.end()) continue;
        const bool is_gradient = graph.node(node).phase != Phase::kForward;
        if (!difference(before, same->second, now, out, is_gradient).is_fault()) continue;
        const NamedNode named = model_node(graph, graph.node(node));
        fault.value = graph.value(out).name;
        fault.op = named.op;
        fault.node = named.name;
        return;
      }
    }
    const ValueId end = now.ends.at(fault.end);
    const NodeId producer = graph.value(end).producer;
    if (producer == kNoNode) return;
    const NamedNode named = model_node(graph, graph.node(producer));
    fault.value = graph.value(end).name;
    fault.op = named.op;
    fault.node = named.name;
  }

  const std::map<std::string, Tensor>& inputs_;
  const Evaluate& evaluate_;
  StageBisect result_;
};

}  // namespace

StageBisect bisect_stages(const Stages& stages, const std::map<std::string, Tensor>& inputs,
                          const Evaluate& evaluate) {
  return StageBisecter(inputs, evaluate).run(stages);
}

}  // namespace trainscope
