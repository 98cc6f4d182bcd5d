// The call that a kernel with a mistake computes is named; the kernels as they are are silent.
#include "engine/bisect/kernel_bisect.h"

#include <doctest/doctest.h>

#include "engine/ir/op_def.h"
#include "engine/ir/well_known.h"
#include "tests/support/graph_text.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

// Relu that lets -0.1 x through.
void run_leaky(const RunArgs& args) {
  const float* x = args.inputs[0].as<float>();
  float* y = args.outputs[0].as<float>();
  for (std::int64_t i = 0; i < args.outputs[0].elements(); ++i)
    y[i] = x[i] > 0 ? x[i] : 0.1F * x[i];
}

std::map<std::string, Tensor> inputs_of_step(const ReferenceModel& reference) {
  std::map<std::string, Tensor> inputs;
  for (const auto& [name, tensor] : reference.batches[0].tensors) inputs.emplace(name, tensor);
  inputs.emplace(kStepInput, Tensor::scalar<std::int64_t>(1));
  inputs.emplace(kRandomStepInput, Tensor::scalar<std::int64_t>(1));
  inputs.emplace(kLearningRateInput, Tensor::scalar(1e-3));
  return inputs;
}

}  // namespace

TEST_CASE("kernels: those of all models agree with the reference kernels") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const Stages stages = build_stages(reference.model, reference.options(GraphMode::kTrain));
    const KernelBisect found = bisect_kernels(stages.back().graph, inputs_of_step(reference),
                                              cpu_kernels(), KernelChoice::kFastest, 2);
    for (const KernelFault& fault : found.faults) {
      FAIL_CHECK(fault.op << " " << fault.node << " by " << fault.kernel << ": " << fault.error
                          << ", limit " << fault.limit);
    }
    CHECK(found.calls >= 20);
    MESSAGE(name, ": ", found.calls, " calls, ", found.inexact, " without f64, nearest ",
            found.most_of, " at ", found.most);
  }
}

TEST_CASE("kernels: one with a mistake is named with its call") {
  KernelTable kernels = cpu_kernels();
  kernels.add("Relu", DType::kF32, {.name = "relu.leaky", .run = run_leaky});
  const ReferenceModel reference("mlp");
  const Stages stages = build_stages(reference.model, reference.options(GraphMode::kTrain));
  const KernelBisect found = bisect_kernels(stages.back().graph, inputs_of_step(reference), kernels,
                                            KernelChoice::kFastest, 1);
  REQUIRE_FALSE(found.faults.empty());
  CHECK(found.faults.front().op == "Relu");
  CHECK(found.faults.front().kernel == "relu.leaky");
  CHECK(found.faults.front().error > found.faults.front().limit);
}

}  // namespace trainscope::test
