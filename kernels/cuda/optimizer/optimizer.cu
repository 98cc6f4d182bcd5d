// SgdStep and AdamWStep: one pass over the elements of all parameters, in one launch for as many of
// them as a table holds.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/cuda/optimizer/optimizer.h"
#include "kernels/cuda/optimizer/optimizer_rules.h"

namespace trainscope::cuda {
namespace {

template <typename T>
void adam_step(const RunArgs& args) {
  with_adam_rule(std::get<OptimizerParams>(args.params),
                 [&args](const auto& rule) { run_update<T>(args, rule); });
}

template <typename T>
void sgd_step(const RunArgs& args) {
  with_sgd_rule(std::get<OptimizerParams>(args.params),
                [&args](const auto& rule) { run_update<T>(args, rule); });
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("SgdStep", kDTypeOf<T>,
            {.name = "sgd_step.cuda", .supports = all_outputs_present, .run = sgd_step<T>});
  table.add("AdamWStep", kDTypeOf<T>,
            {.name = "adamw_step.cuda", .supports = all_outputs_present, .run = adam_step<T>});
}

}  // namespace

Support all_outputs_present(const PrepareArgs& args) {
  return supported_if(std::all_of(args.outputs.begin(), args.outputs.end(),
                                  [](const TensorView& output) { return output.present; }),
                      "an output is left out");
}

void add_optimizer(KernelTable& table) {
  add_for<float>(table);
  add_lamb(table);
  add_gradient_norm(table);
}

}  // namespace trainscope::cuda
