// LossScaleStep: what dynamic loss scaling (Micikevicius et al., "Mixed precision training", 2018)
// does at the end of a step. The loss's gradient begins with a power of two instead of 1, so that
// small gradients do not vanish in f16; a step whose gradients overflow is left out.
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

double scale_attribute(const OpArgs& args, std::string_view name, double absent) {
  const double value = args.attributes.number(name, absent);
  require(value > 0.0, ErrorCode::kBadInput, "attribute '{}' is {}, expected a positive number",
          name, value);
  return value;
}

Params params_of(const OpArgs& args) {
  LossScaleParams params;
  params.interval = args.attributes.integer("interval", params.interval);
  require(params.interval > 0, ErrorCode::kBadInput,
          "attribute 'interval' is {}, expected a positive number", params.interval);
  params.least = scale_attribute(args, "least", params.least);
  params.most = scale_attribute(args, "most", params.most);
  return params;
}

Types loss_scale_shape(const OpArgs& args) {
  for (int i = 0; i < args.input_count(); ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is left out", i);
    require_rank(args, i, 0);
  }
  require_float(args, 0);
  require_dtype(args, 1, args.type(0).dtype);
  require_dtype(args, 2, DType::kI64);
  require_dtype(args, 3, DType::kI64);
  params_of(args);  // checks the attributes
  return {args.type(2), args.type(1), args.type(2), args.type(3)};
}

}  // namespace

std::vector<OpDef> loss_scale_ops() {
  return {
      {.name = "LossScaleStep",
       .doc =
           "norm of the scaled gradients, scale, good, taken -> step, scale, good, taken. Where "
           "the "
           "norm is finite the step is taken + 1 and good counts on; after `interval` good steps "
           "the scale doubles. Else the step is 0, which optimizer steps leave out, the scale is "
           "halved and good begins at 0",
       .domain = kTrainscopeDomain,
       .min_inputs = 4,
       .max_inputs = 4,
       .max_outputs = 4,
       .attributes = {{"interval", "good steps until the scale doubles, default 2000"},
                      {"least", "the scale never falls below it, default 1"},
                      {"most", "nor rises above it, default 2^24"}},
       .params = params_of,
       .shape = loss_scale_shape,
       .cost = per_output_element<1>,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kOptimizer,
       .traits = kWholeValuesOnce,
       .examples = {"[]={3.5}, []={1024}, i64[]={0}, i64[]={7}; outputs=4",
                    "[]={3.5}, []={1024}, i64[]={2}, i64[]={7}; interval=3 outputs=4",
                    "[]={3.5}, []={1024}, i64[]={2}, i64[]={7}; interval=3 most=1024.0 outputs=4",
                    "[]={1}, []={2}, i64[]={0}, i64[]={0}; least=2.0 outputs=4"}}};
}

}  // namespace trainscope
