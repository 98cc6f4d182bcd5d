// The update of one parameter by the op of a plugin.
#pragma once

#include "engine/autodiff/optimizer_update.h"
#include "engine/ir/builder.h"
#include "engine/passes/training_options.h"

namespace trainscope {

struct UpdatedParameter {
  ValueId parameter = kNoValue;
  ValueId gradient = kNoValue;
  double weight_decay = 0.0;
  double learning_rate_scale = 1.0;
};

// The parameter's next value; it and the next states are updates of the graph. Throws kUsage where
// no loaded plugin has the op.
ValueId append_plugin_step(Builder& b, const OptimizerOptions& optimizer, const StepInputs& common,
                           const UpdatedParameter& updated);

}  // namespace trainscope
