// Optimizer steps of the rows of one parameter that a batch names: of embeddings.
//
// Inputs: the parameter, the rows of its gradient, what the optimizer keeps, ids and count as
// SumRowsById gives them, the scalars. The attributes are those of the step of all elements.
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/ops/optimizer/optimizer_rules.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

constexpr int kRowInputs = 4;  // parameter, rows, ids, count

Types rows_step_shape(const OpArgs& args, int states) {
  require_all_present(args);
  require(args.input_count() == kRowInputs + states + kStepScalars, ErrorCode::kBadInput,
          "{} inputs are not a parameter, rows, {} states, ids, count and {} scalars",
          args.input_count(), states, kStepScalars);
  require_float(args, 0);
  require_dtype(args, 1, args.type(0).dtype);
  require(args.rank(0) > 0 && args.rank(1) > 0, ErrorCode::kBadInput,
          "inputs 0 and 1 must have rows, are numbers");
  Shape rows = args.shape(0);
  rows[0] = args.shape(1)[0];
  require_shape(args, 1, rows);
  for (int i = 0; i < states; ++i) require_same_types(args, 0, 2 + i);
  require_dtype(args, 2 + states, DType::kI64);
  require_shape(args, 2 + states, {rows[0]});
  require_dtype(args, 3 + states, DType::kI64);
  require_rank(args, 3 + states, 0);
  require_step_scalars(args);
  require(args.output_count == 1 + states, ErrorCode::kBadInput,
          "{} outputs asked for, the step has {}", args.output_count, 1 + states);
  return Types(static_cast<std::size_t>(1 + states), args.type(0));
}

std::vector<InPlace> rows_step_in_place(int states) {
  std::vector<InPlace> pairs = {{.output = 0, .input = 0}};
  for (int i = 0; i < states; ++i) pairs.push_back({.output = 1 + i, .input = 2 + i});
  return pairs;
}

// In place, where rows that no id names are neither read nor written.
Cost rows_step_cost(const OpArgs& args, int states, std::int64_t flops_per_element) {
  const TensorType& rows = args.type(1);
  const auto bytes = static_cast<std::int64_t>(rows.bytes());
  return {.flops = flops_per_element * rows.elements(),
          .bytes_read = (2 + states) * bytes +
                        static_cast<std::int64_t>(sizeof(std::int64_t)) * rows.shape[0],
          .bytes_written = (1 + states) * bytes};
}

int sgd_states(const OpArgs& args) { return momentum_of(args) > 0.0 ? 1 : 0; }
constexpr int kAdamStates = 2;

OpDef sgd_rows_row() {
  return {
      .name = "SgdRowsStep",
      .doc =
          "parameter, rows, momentum buffer (with momentum > 0 only), ids, count, learning_rate, "
          "gradient_scale, step -> parameter, buffer: row n of the first `count` is the gradient "
          "of row ids[n], which changes as by SgdStep; the other rows stay. Ids are different; "
          "one that names no row is ignored",
      .domain = kTrainscopeDomain,
      .min_inputs = kRowInputs + kStepScalars,
      .max_inputs = kRowInputs + 1 + kStepScalars,
      .max_outputs = kVariadic,
      .attributes = sgd_attributes(),
      .params = [](const OpArgs& args) -> Params { return sgd_params_of(args, 1); },
      .shape = [](const OpArgs& args) { return rows_step_shape(args, sgd_states(args)); },
      .cost = [](const OpArgs& args) { return rows_step_cost(args, sgd_states(args), 7); },
      .in_place = [](const OpArgs& args) { return rows_step_in_place(sgd_states(args)); },
      .differentiable = Differentiable::kNo,
      .dense_form = "SgdStep",
      .op_class = OpClass::kOptimizer,
      .traits = kWholeValuesOnce,
      .examples = {"[5,3], [4,3], i64[4]={0,2,3,0}, i64[]={3}, []>0, []>0, i64[]={2}; "
                   "weight_decay={0.1}",
                   "[5,3], [4,3], [5,3], i64[4]={4,2,3,1}, i64[]={4}, []>0, []>0, i64[]={1}; "
                   "momentum=0.9 learning_rate_scale={0.5} outputs=2",
                   "[5,3], [2,3], [5,3], i64[2]={7,-1}, i64[]={2}, f64[]>0, f32[]>0, i64[]={3}; "
                   "momentum=0.9 nesterov=1 outputs=2",
                   "[5], [2], i64[2]={1,4}, i64[]={0}, []>0, []>0, i64[]={2}",
                   "[5,2,2], [3,2,2], i64[3]={1,4,0}, i64[]={9}, []>0, []>0, i64[]={2}",
                   "[0,3], [0,3], i64[0]<1, i64[]={0}, []>0, []>0, i64[]={1}",
                   "[900,300], [3,300], i64[3]={1,899,0}, i64[]={2}, []>0, []>0, i64[]={2}"}};
}

OpDef adamw_rows_row() {
  return {
      .name = "AdamWRowsStep",
      .doc =
          "parameter, rows, m, v, ids, count, learning_rate, gradient_scale, step t -> parameter, "
          "m, v: as SgdRowsStep, by the formulas of AdamWStep. Rows that stay keep their moments "
          "and do not decay (torch.optim.SparseAdam's way)",
      .domain = kTrainscopeDomain,
      .min_inputs = kRowInputs + kAdamStates + kStepScalars,
      .max_inputs = kRowInputs + kAdamStates + kStepScalars,
      .max_outputs = kVariadic,
      .attributes = adamw_attributes(),
      .params = [](const OpArgs& args) -> Params { return adamw_params_of(args, 1); },
      .shape = [](const OpArgs& args) { return rows_step_shape(args, kAdamStates); },
      .cost = [](const OpArgs& args) { return rows_step_cost(args, kAdamStates, 20); },
      .in_place = [](const OpArgs&) { return rows_step_in_place(kAdamStates); },
      .differentiable = Differentiable::kNo,
      .dense_form = "AdamWStep",
      .op_class = OpClass::kOptimizer,
      .traits = kWholeValuesOnce,
      .examples = {"[5,3], [4,3], [5,3], [5,3]>0, i64[4]={0,2,3,0}, i64[]={3}, []>0, []>0, "
                   "i64[]={2}; weight_decay={0.1} outputs=3",
                   "[5,3], [4,3], [5,3], [5,3]>0, i64[4]={4,2,3,1}, i64[]={4}, f64[]>0, f32[]>0, "
                   "i64[]={7}; mode=1 weight_decay={0.1} beta1=0.8 beta2=0.95 epsilon=1e-6 "
                   "outputs=3",
                   "[5,3], [2,3], [5,3], [5,3]>0, i64[2]={7,-1}, i64[]={2}, []>0, []>0, "
                   "i64[]={3}; mode=2 weight_decay={0.1} bias_correction=0 outputs=3",
                   "[5], [2], [5], [5]>0, i64[2]={1,4}, i64[]={1}, []>0, []>0, i64[]={2}; "
                   "outputs=3",
                   "[0,3], [0,3], [0,3], [0,3], i64[0]<1, i64[]={0}, []>0, []>0, i64[]={1}; "
                   "outputs=3",
                   "[900,300], [3,300], [900,300], [900,300]>0, i64[3]={1,899,0}, i64[]={2}, "
                   "[]>0, []>0, i64[]={2}; outputs=3"}};
}

}  // namespace

std::vector<OpDef> optimizer_rows_ops() { return {sgd_rows_row(), adamw_rows_row()}; }

}  // namespace trainscope
