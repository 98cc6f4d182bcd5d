// SgdRowsStep, AdamWRowsStep: the rows of one parameter that a sparse gradient names, in place.
#include <cstdint>
#include <variant>

#include "kernels/cuda/optimizer/optimizer_rules.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

// Inputs: the parameter [size, ...], rows [most, ...], states like the parameter, ids [most],
// count [], scalars. Rows from `count` on, and those whose id is outside, are left alone.
template <typename T, class Rule>
struct GradientRows {
  UpdatedTensor<T, Rule> tensor;  // the parameter and its states
  const std::int64_t* ids;
  const std::int64_t* count;
  std::int64_t size;   // rows of the parameter
  std::int64_t width;  // elements of a row
  std::int64_t most;   // rows of the gradient
};

// A block a row of the gradient, a thread four elements at a time. Bytes: 8 kKept + 4 an element of
// these rows: the gradient read, what is kept read and written once. FLOPs: the rule's.
template <class Rule, typename T>
__global__ void __launch_bounds__(kTensorThreads)
    update_rows(const GradientRows<T, Rule> rows, const StepScalars scalars, const Rule rule) {
  using Factors = typename Rule::template Factors<T>;
  TRAINSCOPE_SHARED(Factors, factors, 1);
  const std::int64_t n = blockIdx.x;
  if (*scalars.step == 0 || n >= *rows.count) return;
  const std::int64_t id = rows.ids[n];
  if (id < 0 || id >= rows.size) return;
  if (threadIdx.x == 0) {
    factors[0] = rule.template factors<T>(scalars, rows.tensor.decay, rows.tensor.rate_scale);
  }
  __syncthreads();
  const Factors f = factors[0];
  UpdatedTensor<T, Rule> own = rows.tensor;  // the row
  own.gradient += n * rows.width;
#pragma unroll
  for (int group = 0; group < Rule::kKept; ++group) {
    own.kept[group] += id * rows.width;
  }
  update_range(rule, f, own, 0, rows.width);
}

template <typename T, class Rule>
void run_rows(const RunArgs& args, const Rule& rule) {
  keep_in_place(args);
  const std::size_t kept = args.outputs.size();
  const Shape& shape = args.inputs[0].shape();
  const GradientRows<T, Rule> rows{
      .tensor = updated_tensor<T, Rule>(args, 0),
      .ids = args.inputs[1 + kept].as<const std::int64_t>(),
      .count = args.inputs[2 + kept].as<const std::int64_t>(),
      .size = shape[0],
      .width = shape[0] == 0 ? 0 : args.inputs[0].elements() / shape[0],
      .most = args.inputs[1].shape()[0]};
  launch(args.call, {.blocks = team_blocks(rows.most, 1), .threads = dim3(kTensorThreads)},
         update_rows<Rule, T>, rows, step_scalars(args.inputs), rule);
}

template <typename T>
void sgd_rows_step(const RunArgs& args) {
  with_sgd_rule(std::get<OptimizerParams>(args.params),
                [&args](const auto& rule) { run_rows<T>(args, rule); });
}

template <typename T>
void adam_rows_step(const RunArgs& args) {
  with_adam_rule(std::get<OptimizerParams>(args.params),
                 [&args](const auto& rule) { run_rows<T>(args, rule); });
}

}  // namespace

void add_optimizer_rows(KernelTable& table) {
  table.add(
      "SgdRowsStep", DType::kF32,
      {.name = "sgd_rows_step.cuda", .supports = all_outputs_present, .run = sgd_rows_step<float>});
  table.add("AdamWRowsStep", DType::kF32,
            {.name = "adamw_rows_step.cuda",
             .supports = all_outputs_present,
             .run = adam_rows_step<float>});
}

}  // namespace trainscope::cuda
