// The update phase: optimizer steps over all parameters at once, clipping, gradient accumulation.
//
// How they compose for micro_batches summed gradients: sum_i = Accumulate(sum_i, grad_i, k), then
// norm = GlobalNorm(sum...; divisor=micro_batches) is the norm of the averaged gradient, and
// GradientScale(norm; max_norm, divisor=micro_batches) is what the steps multiply the sums by.
// Without clipping the scale is the constant 1 / micro_batches. A step of number 0 changes nothing.
#include <algorithm>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/optimizer/optimizer_rules.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- SgdStep: the momentum buffers exist only with a momentum ------------------------------------
int sgd_groups(const OpArgs& args) { return momentum_of(args) > 0.0 ? 3 : 2; }

Params sgd_params(const OpArgs& args) {
  return sgd_params_of(args, parameter_count(args, sgd_groups(args)));
}

// --- AdamWStep, LambStep: parameters, gradients, m, v --------------------------------------------
constexpr int kAdamGroups = 4;

Params adamw_params(const OpArgs& args) {
  return adamw_params_of(args, parameter_count(args, kAdamGroups));
}

Params lamb_params(const OpArgs& args) {
  OptimizerParams params = moment_params_of(args, parameter_count(args, kAdamGroups));
  params.ratio_min = args.attributes.number("ratio_min", params.ratio_min);
  params.ratio_max = args.attributes.number("ratio_max", params.ratio_max);
  require(params.ratio_min >= 0.0 && params.ratio_min <= params.ratio_max, ErrorCode::kBadInput,
          "attributes 'ratio_min' {} and 'ratio_max' {}: expected 0 <= ratio_min <= ratio_max",
          params.ratio_min, params.ratio_max);
  return params;
}

// --- Norm, scale, accumulation -------------------------------------------------------------------
Params clip_params(const OpArgs& args) {
  const double divisor = args.attributes.number("divisor", 1.0);
  require(divisor > 0.0, ErrorCode::kBadInput,
          "attribute 'divisor' is {}, expected a positive number", divisor);
  return ClipParams{.max_norm = args.attributes.number("max_norm", 0.0), .divisor = divisor};
}

Types global_norm_shape(const OpArgs& args) {
  require_all_present(args);
  require_float(args, 0);
  require_same_dtypes(args);
  clip_params(args);  // checks the divisor
  return {{.dtype = args.type(0).dtype, .shape = {}}};
}

Types accumulate_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_types(args, 0, 1);
  require_dtype(args, 2, DType::kI64);
  require_rank(args, 2, 0);
  return {args.type(0)};
}

std::vector<AttributeSpec> lamb_attributes() {
  std::vector<AttributeSpec> all = moment_attributes();
  all.push_back({"ratio_min", "default 0"});
  all.push_back({"ratio_max", "default: no limit"});
  return all;
}

OpDef sgd_row() {
  return {
      .name = "SgdStep",
      .doc =
          "parameters, gradients, momentum buffers (with momentum > 0 only), learning_rate, "
          "gradient_scale, step (from 1) -> parameters, buffers: g = gradient * scale + "
          "weight_decay * p; b = g at step 1, else momentum * b + g; p -= learning_rate * b, with "
          "`nesterov` p -= learning_rate * (g + momentum * b)",
      .domain = kTrainscopeDomain,
      .min_inputs = 2 + kStepScalars,
      .max_inputs = kVariadic,
      .max_outputs = kVariadic,
      .attributes = sgd_attributes(),
      .params = sgd_params,
      .shape = [](const OpArgs& args) { return step_shape(args, sgd_groups(args)); },
      .cost = [](const OpArgs& args) { return step_cost(args, sgd_groups(args), 7); },
      .in_place = [](const OpArgs& args) { return step_in_place(args, sgd_groups(args)); },
      .differentiable = Differentiable::kNo,
      .rows_form = "SgdRowsStep",
      .op_class = OpClass::kOptimizer,
      .traits = kWholeValuesOnce,
      .examples = {"[2,3], [2,3], []>0, []>0, i64[]={2}; weight_decay={0.1}",
                   "[2,3], [4], [2,3], [4], [2,3], [4], []>0, []>0, i64[]={1}; momentum=0.9 "
                   "weight_decay={0.1,0.0} learning_rate_scale={1.0,0.5} outputs=4",
                   "[2,3], [4], [2,3], [4], [2,3], [4], f64[]>0, f32[]>0, i64[]={2}; "
                   "momentum=0.9 weight_decay={0.1,0.0} outputs=4",
                   "[0], [], [0], [], []>0, []>0, i64[]={1}; outputs=2",
                   "[2,3], [4], [2,3], [4], [2,3], [4], []>0, []>0, i64[]={1}; momentum=0.9 "
                   "nesterov=1 weight_decay={0.1,0.0} outputs=4",
                   "[90001], [90001], [90001], []>0, []>0, i64[]={9}; momentum=0.8 nesterov=1 "
                   "outputs=2",
                   "[90001], [3,7], [90001], [3,7], [90001], [3,7], []>0, []>0, i64[]={9}; "
                   "momentum=0.9 outputs=4"}};
}

OpDef adamw_row() {
  return {
      .name = "AdamWStep",
      .doc =
          "parameters, gradients, m, v, learning_rate, gradient_scale, step t (from 1) -> "
          "parameters, m, v: g = gradient * scale; p *= 1 - learning_rate * weight_decay; m = "
          "beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2; p -= learning_rate "
          "* (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon). Mode 1 (Hugging Face): p "
          "-= learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon), then "
          "the decay. Mode 2 (Adam): the decay is g += weight_decay * p",
      .domain = kTrainscopeDomain,
      .min_inputs = kAdamGroups + kStepScalars,
      .max_inputs = kVariadic,
      .max_outputs = kVariadic,
      .attributes = adamw_attributes(),
      .params = adamw_params,
      .shape = [](const OpArgs& args) { return step_shape(args, kAdamGroups); },
      .cost = [](const OpArgs& args) { return step_cost(args, kAdamGroups, 20); },
      .in_place = [](const OpArgs& args) { return step_in_place(args, kAdamGroups); },
      .differentiable = Differentiable::kNo,
      .rows_form = "AdamWRowsStep",
      .op_class = OpClass::kOptimizer,
      .traits = kWholeValuesOnce,
      .examples = {"[2,3], [2,3], [2,3], [2,3]>0, []>0, []>0, i64[]={1}; outputs=3 "
                   "weight_decay={0.1}",
                   "[2,3], [], [2,3], [], [2,3], [], [2,3]>0, []>0, f64[]>0, f32[]>0, i64[]={7}; "
                   "outputs=6 beta1=0.8 beta2=0.95 epsilon=1e-6 weight_decay={0.1,0.0} "
                   "learning_rate_scale={1.0,0.5}",
                   "[0,2], [0,2], [0,2], [0,2], []>0, []>0, i64[]={1}; outputs=3",
                   "[2,3], [2,3], [2,3], [2,3]>0, []>0, []>0, i64[]={4}; outputs=3 mode=1 "
                   "weight_decay={0.1}",
                   "[2,3], [2,3], [2,3], [2,3]>0, []>0, []>0, i64[]={4}; outputs=3 mode=2 "
                   "weight_decay={0.1} bias_correction=0",
                   "[90001], [90001], [90001], [90001]>0, []>0, []>0, i64[]={3}; outputs=3 mode=1 "
                   "weight_decay={0.01}",
                   "[90001], [90001], [90001], [90001]>0, []>0, []>0, i64[]={3}; outputs=3 mode=2 "
                   "weight_decay={0.01}",
                   "[5], [90001], [5], [90001], [5], [90001], [5]>0, [90001]>0, []>0, []>0, "
                   "i64[]={3}; outputs=6"}};
}

OpDef lamb_row() {
  return {
      .name = "LambStep",
      .doc =
          "parameters, gradients, m, v, learning_rate, gradient_scale, step t (from 1) -> "
          "parameters, m, v: m and v as AdamWStep; u = (m / (1 - beta1^t)) / (sqrt(v / (1 - "
          "beta2^t)) + epsilon) + weight_decay * p; p -= learning_rate * r * u, r = ||p|| / "
          "||u|| of the parameter within [ratio_min, ratio_max], 1 when one norm is 0",
      .domain = kTrainscopeDomain,
      .min_inputs = kAdamGroups + kStepScalars,
      .max_inputs = kVariadic,
      .max_outputs = kVariadic,
      .attributes = lamb_attributes(),
      .params = lamb_params,
      .shape = [](const OpArgs& args) { return step_shape(args, kAdamGroups); },
      .cost = [](const OpArgs& args) { return step_cost(args, kAdamGroups, 44); },
      .in_place = [](const OpArgs& args) { return step_in_place(args, kAdamGroups); },
      .differentiable = Differentiable::kNo,
      .scales_by_norm = true,
      .op_class = OpClass::kOptimizer,
      .traits = kWholeValuesOnce,
      .examples = {"[2,3], [2,3], [2,3], [2,3]>0, []>0, []>0, i64[]={1}; outputs=3 "
                   "weight_decay={0.1}",
                   "[2,3], [], [2,3], [], [2,3], [], [2,3]>0, []>0, f64[]>0, f32[]>0, i64[]={7}; "
                   "outputs=6 beta1=0.8 beta2=0.95 epsilon=1e-6 weight_decay={0.1,0.0} "
                   "learning_rate_scale={1.0,0.5} ratio_min=0.5 ratio_max=0.6",
                   "[0,2], [3], [0,2], [3], [0,2], [3], [0,2], [3]>0, []>0, []>0, i64[]={2}; "
                   "outputs=6 bias_correction=0",
                   "[5], [90001], [5], [90001], [5], [90001], [5]>0, [90001]>0, []>0, []>0, "
                   "i64[]={3}; outputs=6 weight_decay={0.1,0.2}"}};
}

// Gradients in any shards: the sums of squares are added up, a few bytes.
std::optional<Shards> shard_norm_of_all(const ShardingArgs& a) { return every_output(a, {}); }

// The sum is a state, which is cut as the gradient is.
std::optional<Shards> shard_accumulate(const ShardingArgs& a) {
  if (input_shard(a, 1).is_open()) return std::nullopt;
  choose_shard(a, 0, input_shard(a, 1));
  return every_output(a, input_shard(a, 1));
}

std::vector<OpDef> gradient_rows() {
  return {
      {.name = "GlobalNorm",
       .doc = "gradients -> sqrt of the sum of all squares, divided by `divisor`",
       .domain = kTrainscopeDomain,
       .max_inputs = kVariadic,
       .attributes = {{"divisor", "micro-batches whose gradients were added up (default 1)"}},
       .params = clip_params,
       .shape = global_norm_shape,
       .cost =
           [](const OpArgs& args) {
             std::int64_t elements = 0;
             for (const TensorType& type : args.inputs) add_saturating(elements, type.elements());
             return with_flops(args, saturating_multiply(2, elements));
           },
       .sums_squares = true,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kOptimizer,
       .traits = sharded_once({.rule = shard_norm_of_all, .exchanges = true}),
       .examples = {"[2,3]", "[2,3], [], [0], [5]; divisor=4.0", "[0]", "[3], [3,30001], [70001]"}},
      {.name = "GradientScale",
       .doc = "norm of the averaged gradients -> the factor for the sums of gradients: min(1, "
              "max_norm / (norm + 1e-6)) / divisor; 1 / divisor when max_norm <= 0",
       .domain = kTrainscopeDomain,
       .attributes = {{"max_norm", "limit of the norm; 0 (default) means none"},
                      {"divisor", "micro-batches whose gradients were added up (default 1)"}},
       .params = clip_params,
       .shape =
           [](const OpArgs& args) {
             require_rank(args, 0, 0);
             return float_same_as_first(args);
           },
       .cost = per_output_element<6>,
       .in_place = first_in_place,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kOptimizer,
       .traits = kWholeValuesOnce,
       .examples = {"[]>0; max_norm=0.1", "[]>0; max_norm=1000.0 divisor=4.0",
                    "[]>0; divisor=2.0"}},
      {.name = "Accumulate",
       .doc = "sum, gradient, micro_step -> gradient when micro_step is 0, else sum + gradient",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = accumulate_shape,
       .cost = per_output_element<1>,
       .in_place = first_in_place,
       .accumulates = true,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = sharded_once({.rule = shard_accumulate}),
       .examples = {"[2,3], [2,3], i64[]={0}", "[2,3], [2,3], i64[]={2}", "[], [], i64[]={1}",
                    "[0,3], [0,3], i64[]={1}", "[7,9001], [7,9001], i64[]={1}",
                    "[7,9001], [7,9001], i64[]={0}"}},
  };
}

}  // namespace

std::vector<OpDef> optimizer_ops() {
  std::vector<OpDef> rows = gradient_rows();
  rows.push_back(sgd_row());
  rows.push_back(adamw_row());
  rows.push_back(lamb_row());
  return rows;
}

}  // namespace trainscope
