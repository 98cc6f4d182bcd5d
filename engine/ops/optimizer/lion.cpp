// LionStep: steps of one size, in the direction of the sign of a moment.
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/ops/optimizer/optimizer_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

constexpr int kGroups = 3;  // parameters, gradients, m

Params params_of(const OpArgs& args) {
  OptimizerParams params = common_params(args, parameter_count(args, kGroups));
  params.beta1 = number_within(args, "beta1", 0.9, 1.0);
  params.beta2 = number_within(args, "beta2", 0.99, 1.0);
  return params;
}

}  // namespace

std::vector<OpDef> lion_ops() {
  return {
      {.name = "LionStep",
       .doc = "parameters, gradients, m, learning_rate, gradient_scale, step -> parameters, m: g = "
              "gradient * scale; p *= 1 - learning_rate * weight_decay; p -= learning_rate * "
              "sign(beta1 * m + (1 - beta1) * g), sign(0) = 0; m = beta2 * m + (1 - beta2) * g",
       .domain = kTrainscopeDomain,
       .min_inputs = kGroups + kStepScalars,
       .max_inputs = kVariadic,
       .max_outputs = kVariadic,
       .attributes =
           with_common({{"beta1", "in [0, 1), default 0.9"}, {"beta2", "in [0, 1), default 0.99"}}),
       .params = params_of,
       .shape = [](const OpArgs& args) { return step_shape(args, kGroups); },
       .cost = [](const OpArgs& args) { return step_cost(args, kGroups, 12); },
       .in_place = [](const OpArgs& args) { return step_in_place(args, kGroups); },
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kOptimizer,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3], [2,3]~, [2,3]~, []>0, []>0, i64[]={1}; outputs=2 weight_decay={0.1}",
                    "[2,3], [4], [2,3]~, [4]~, [2,3]~, [4]~, f64[]>0, f32[]>0, i64[]={7}; "
                    "outputs=4 beta1=0.8 beta2=0.95 weight_decay={0.1,0.0} "
                    "learning_rate_scale={1.0,0.5}",
                    "[3], [3]={1.0,0.0,-1.0}, [3]={0.0,0.0,0.0}, []>0, []>0, i64[]={2}; outputs=2",
                    "[0,2], [0,2], [0,2], []>0, []>0, i64[]={1}; outputs=2",
                    "[90001], [3,7], [90001]~, [3,7]~, [90001]~, [3,7]~, []>0, []>0, i64[]={9}; "
                    "outputs=4"}},
  };
}

}  // namespace trainscope
