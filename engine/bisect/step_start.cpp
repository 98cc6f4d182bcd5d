// Inputs of the step, parameters and states of the step before.
#include "engine/bisect/step_start.h"

#include <algorithm>
#include <utility>

#include "engine/ir/well_known.h"

namespace trainscope {

using profiler::TraceKind;
using profiler::TraceRow;

std::optional<StepStart> recorded_start(const profiler::IndexedTrace& trace, std::int64_t step) {
  StepStart start;
  const std::int64_t micro_batches =
      std::max<std::int64_t>(1, trace.trace().header().micro_batches);
  start.batches.resize(static_cast<std::size_t>(micro_batches));
  bool has_input = false;
  for (const TraceRow& row : trace.trace().rows()) {
    const bool is_input = row.kind == TraceKind::kInput && row.step == step;
    const bool is_kept = (row.kind == TraceKind::kParameter || row.kind == TraceKind::kState) &&
                         row.step == step - 1;
    if (!is_input && !is_kept) continue;
    std::optional<Tensor> elements = trace.full(row);
    if (is_kept) {
      if (elements) start.kept.insert_or_assign(row.value, std::move(*elements));
      continue;
    }
    if (!elements || row.micro_batch < 0 || row.micro_batch >= micro_batches) return std::nullopt;
    auto& batch = start.batches[static_cast<std::size_t>(row.micro_batch)];
    batch.insert_or_assign(row.value, std::move(*elements));
    has_input = true;
  }
  return has_input ? std::optional(std::move(start)) : std::nullopt;
}

std::map<std::string, Tensor> inputs_of(const StepStart& start, std::int64_t step,
                                        std::int64_t micro_batch, double learning_rate) {
  std::map<std::string, Tensor> inputs = start.kept;
  const auto micro_batches = static_cast<std::int64_t>(start.batches.size());
  for (const auto& [name, tensor] : start.batches[static_cast<std::size_t>(micro_batch)]) {
    inputs.insert_or_assign(name, tensor);
  }
  inputs.insert_or_assign(kStepInput, Tensor::scalar(step));
  inputs.insert_or_assign(kMicroStepInput, Tensor::scalar(micro_batch));
  inputs.insert_or_assign(kRandomStepInput, Tensor::scalar(step * micro_batches + micro_batch));
  inputs.insert_or_assign(kLearningRateInput, Tensor::scalar(learning_rate));
  return inputs;
}

}  // namespace trainscope
