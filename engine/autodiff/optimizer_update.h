// What a step appends to a graph for an optimizer: an update of parameters by their gradients.
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/graph.h"
#include "engine/passes/training_options.h"

namespace trainscope {

struct Trained {
  std::vector<ValueId> parameters;
  std::vector<ValueId> gradients;
};

// Those that graph.gradients lists.
Trained trained_parameters(const Graph& graph);
// Throws kUsage for a group of the optimizer that none of these belongs to.
void check_groups(const Graph& graph, const Trained& trained, const OptimizerOptions& options);

// What all updates of a step read besides parameters, gradients and states.
struct StepInputs {
  ValueId learning_rate;
  ValueId gradient_scale;
  ValueId step;
};

// New inputs for the rate and the number of the step; clipping, and the scale of the loss.
StepInputs add_step_inputs(Builder& b, const Trained& trained, const TrainingOptions& options);
// One node that updates all these parameters and the states of their optimizer, with the averages
// that follow them.
void append_update(Builder& b, const Trained& trained, const StepInputs& common,
                   const TrainingOptions& options);
// Takes the model's outputs off the list of graph outputs, but for the terms of the loss, which are
// read after a step.
void release_model_outputs(Graph& graph);
// From here on gradients of parameters are ordinary values, free once their update has read them.
void release_gradients(Graph& graph);

}  // namespace trainscope
