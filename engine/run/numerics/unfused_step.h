// A step node by node, as the model has its nodes: for all its values, of which a compiled step has
// few.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/compile.h"
#include "engine/core/tensor.h"
#include "engine/exec/reference.h"
#include "engine/run/numerics/traced_values.h"

namespace trainscope {

// Where an unfused step ends: behind the gradients of one micro-batch, or with the optimizer's
// update by these gradients.
enum class UnfusedEnd : std::uint8_t { kGradients, kUpdate };

class UnfusedStep {
 public:
  // `options` as for training. Of the passes those are left out that only make a step faster or
  // smaller; there is no plan. Throws what build_stages() throws.
  UnfusedStep(const OnnxModel& model, const CompileOptions& options,
              UnfusedEnd end = UnfusedEnd::kGradients);

  const Graph& graph() const { return graph_; }
  const Evaluate& evaluate() const { return evaluate_; }
  const TracedValues& values() const { return values_; }
  // What a gradient that run() shows is to be divided by: the loss scale that the step starts from.
  double divisor_of(const TracedAs& as) const { return is_gradient(as) ? loss_scale_ : 1.0; }
  // `inputs` as of reference_run. Parameters and states that are not in it have the elements that
  // they start from. Fails as reference_run.
  void run(const std::map<std::string, Tensor>& inputs, const SeeValue& see) const {
    reference_run(graph_, inputs, evaluate_, see);
  }

 private:
  UnfusedStep(Stages stages, const CompileOptions& options);

  Graph graph_;
  TracedValues values_;
  double loss_scale_ = 1.0;
  Evaluate evaluate_;
};

}  // namespace trainscope
