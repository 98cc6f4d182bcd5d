// RmsPropStep: gradients divided by the root of the running mean of their squares.
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/ops/optimizer/optimizer_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

bool is_centered(const OpArgs& args) { return args.attributes.integer("centered", 0) != 0; }

// Parameters, gradients, means of squares, then means and momentum buffers where there are any.
int groups_of(const OpArgs& args) {
  return 3 + (is_centered(args) ? 1 : 0) + (momentum_of(args) > 0.0 ? 1 : 0);
}

// `alpha` is where the kernel looks for the decay of a second moment. Whether it is centered shows
// in the number of what it keeps.
Params params_of(const OpArgs& args) {
  OptimizerParams params = common_params(args, parameter_count(args, groups_of(args)));
  params.beta2 = number_within(args, "alpha", 0.99, 1.0);
  params.epsilon = number_within(args, "epsilon", 1e-8, 1e30);
  params.momentum = momentum_of(args);
  return params;
}

}  // namespace

std::vector<OpDef> rmsprop_ops() {
  return {
      {.name = "RmsPropStep",
       .doc =
           "parameters, gradients, mean squares s, means a (centered only), momentum buffers (with "
           "momentum > 0 only), learning_rate, gradient_scale, step -> parameters, s, a, buffers: "
           "g = gradient * scale + weight_decay * p; s = alpha * s + (1 - alpha) * g^2; a = alpha "
           "* a + (1 - alpha) * g; u = g / (sqrt(s) + epsilon), centered g / (sqrt(s - a^2) + "
           "epsilon); b = momentum * b + u; p -= learning_rate * b, without momentum * u",
       .domain = kTrainscopeDomain,
       .min_inputs = 3 + kStepScalars,
       .max_inputs = kVariadic,
       .max_outputs = kVariadic,
       .attributes = with_common({{"alpha", "in [0, 1), default 0.99"},
                                  {"epsilon", "default 1e-8"},
                                  {"momentum", "in [0, 1), default 0"},
                                  {"centered", "1: by the variance (default 0)"}}),
       .params = params_of,
       .shape = [](const OpArgs& args) { return step_shape(args, groups_of(args)); },
       .cost = [](const OpArgs& args) { return step_cost(args, groups_of(args), 18); },
       .in_place = [](const OpArgs& args) { return step_in_place(args, groups_of(args)); },
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kOptimizer,
       .traits = kWholeValuesOnce,
       .examples = {"[2,3], [2,3], [2,3]>0, []>0, []>0, i64[]={2}; outputs=2 weight_decay={0.1}",
                    "[2,3], [4], [2,3], [4], [2,3]>0, [4]>0, [2,3], [4], []>0, []>0, i64[]={1}; "
                    "outputs=6 momentum=0.9 alpha=0.9 weight_decay={0.1,0.0} "
                    "learning_rate_scale={1.0,0.5}",
                    "[2], [2], [2]={2.0,3.0}, [2]={1.0,-1.5}, f64[]>0, f32[]>0, i64[]={3}; "
                    "outputs=3 centered=1 epsilon=1e-3",
                    "[2], [2], [2]={2.0,3.0}, [2]={1.0,-1.5}, [2], []>0, []>0, i64[]={3}; "
                    "outputs=4 centered=1 momentum=0.5",
                    "[0,2], [0,2], [0,2], []>0, []>0, i64[]={1}; outputs=2",
                    "[90001], [3,7], [90001], [3,7], [90001]>0, [3,7]>0, []>0, []>0, i64[]={9}; "
                    "outputs=4"}},
  };
}

}  // namespace trainscope
