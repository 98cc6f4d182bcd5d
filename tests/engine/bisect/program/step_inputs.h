// What the first step of a reference model is given, by name.
#pragma once

#include <map>
#include <string>

#include "engine/ir/well_known.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {

inline std::map<std::string, Tensor> first_step_of(const ReferenceModel& reference) {
  std::map<std::string, Tensor> inputs;
  for (const auto& [name, tensor] : reference.batches[0].tensors) inputs.emplace(name, tensor);
  inputs.emplace(kStepInput, Tensor::scalar<std::int64_t>(1));
  inputs.emplace(kMicroStepInput, Tensor::scalar<std::int64_t>(0));
  inputs.emplace(kRandomStepInput, Tensor::scalar<std::int64_t>(1));
  inputs.emplace(kLearningRateInput, Tensor::scalar(1e-3));
  return inputs;
}

}  // namespace trainscope::test
