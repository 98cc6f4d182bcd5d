// What the rows of optimizer steps share: their scalars, their parameters, their attributes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/ops/rules/shape_rules.h"
#include "kernels/api/params.h"

namespace trainscope {

// The last inputs of a step: learning_rate, gradient_scale, step.
inline constexpr int kStepScalars = 3;
void require_step_scalars(const OpArgs& args);
void require_all_present(const OpArgs& args);

// Inputs come in groups of as many tensors: parameters, gradients, then what the optimizer keeps.
int parameter_count(const OpArgs& args, int groups);
// Types of all groups but the gradients, which are the outputs.
Types step_shape(const OpArgs& args, int groups);
// Each output may take the place of the input that it is the next state of.
std::vector<InPlace> step_in_place(const OpArgs& args, int groups);
Cost step_cost(const OpArgs& args, int groups, std::int64_t flops_per_element);
// The attributes of every step and these.
std::vector<AttributeSpec> with_common(const std::vector<AttributeSpec>& more);
// Weight decay and scale of the rate, of each parameter.
OptimizerParams common_params(const OpArgs& args, int count);
// An attribute in [0, end).
double number_within(const OpArgs& args, std::string_view name, double absent, double end);

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
