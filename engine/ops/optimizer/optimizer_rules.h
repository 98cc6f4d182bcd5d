// What the rows of optimizer steps share: their scalars, their parameters, their attributes.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"
#include "kernels/api/params.h"

namespace trainscope {

// The last inputs of a step: learning_rate, gradient_scale, step.
inline constexpr int kStepScalars = 3;
void require_step_scalars(const OpArgs& args);
void require_all_present(const OpArgs& args);

// SGD keeps momentum buffers only with a momentum.
double momentum_of(const OpArgs& args);
OptimizerParams sgd_params_of(const OpArgs& args, int parameters);
// Of steps that keep m and v.
OptimizerParams moment_params_of(const OpArgs& args, int parameters);
OptimizerParams adamw_params_of(const OpArgs& args, int parameters);

std::vector<AttributeSpec> sgd_attributes();
std::vector<AttributeSpec> moment_attributes();
std::vector<AttributeSpec> adamw_attributes();

}  // namespace trainscope
