// Asks every kernel of the call's op and dtype.
#include "engine/advise/kernel_alternatives.h"

#include "engine/plan/call_costs.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {
namespace {

Cost done_by(const Program& program, const Call& call, const Kernel& kernel) {
  const std::vector<TensorView> inputs = operand_views(program.graph, call.inputs);
  const std::vector<TensorView> outputs = operand_views(program.graph, call.outputs);
  return cost_of(kernel,
                 {.params = call.params,
                  .inputs = inputs,
                  .outputs = outputs,
                  .threads = call.tile < 0 ? program.threads : 1},
                 definition_of(program, call));
}

}  // namespace

std::vector<KernelAlternative> time_alternatives(const Program& program, const Call& call,
                                                 const TimingEffort& effort) {
  std::vector<KernelAlternative> all;
  if (call.kernel == nullptr || call.kind == CallKind::kAddPartials || !program.device) return all;
  const std::string_view op = program.graph.node(call.node).op->name;
  for (const Kernel* kernel : program.device->kernels().find(op, dtype_of(call))) {
    KernelAlternative each{.kernel = kernel, .is_chosen = kernel->name == call.kernel->name};
    each.why_not = supports_call(program, call, *kernel).why_not;
    if (each.why_not.empty()) {
      each.timing = time_alone(program, call, *kernel, effort);
      each.done = done_by(program, call, *kernel);
    }
    all.push_back(each);
  }
  return all;
}

}  // namespace trainscope
