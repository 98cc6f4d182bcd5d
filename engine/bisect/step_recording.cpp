// Rows as numerics recorders have them, of values that a graph makes node by node.
#include "engine/bisect/step_recording.h"

#include <fmt/format.h>

#include <utility>

#include "engine/bisect/typed_inputs.h"
#include "engine/core/safetensors.h"
#include "engine/ir/well_known.h"
#include "engine/run/numerics/trace_rows.h"

namespace trainscope {
namespace {

using profiler::TraceKind;
using profiler::TracePhase;

class StepRecording {
 public:
  StepRecording(const GraphRun& run, const profiler::TraceHeader& header, Folder folder)
      : run_(run), folder_(std::move(folder)), writer_(folder_, header), step_(run.first - 1) {
    NamedTensors given = typed_for(run_.graph, run_.kept);
    std::erase_if(given, [](const auto& kept) { return kept.first.starts_with(kLossScaleState); });
    for (const ValueId id : run_.graph.live_values()) {
      const Value& value = run_.graph.value(id);
      const bool is_kept = value.kind == ValueKind::kParameter || value.kind == ValueKind::kState;
      if (!is_kept) continue;
      const auto found = given.find(value.name);
      if (found != given.end()) {
        kept_.emplace(value.name, found->second);
      } else {
        kept_.emplace(value.name, value.data ? *value.data : Tensor(value.type));
      }
    }
    writer_.write_names(run_.step.values().names());
  }

  void run(const std::vector<NamedTensors>& batches) {
    add_kept();
    end_step();
    for (const NamedTensors& batch : batches) {
      ++step_;
      order_ = 0;
      run_step(batch);
      end_step();
    }
    writer_.sync();
  }

 private:
  void run_step(const NamedTensors& batch) {
    const Graph& graph = step_ < run_.from ? run_.step.graph() : run_.graph;
    const double scale = loss_scale();
    NamedTensors inputs = kept_;
    for (const auto& [name, tensor] : batch) {
      inputs.insert_or_assign(name, tensor);
      profiler::TraceRow row{.phase = TracePhase::kInput, .kind = TraceKind::kInput, .value = name};
      row.dtype = std::string(name_of(tensor.dtype()));
      add(std::move(row), tensor);
    }
    inputs.insert_or_assign(kStepInput, Tensor::scalar(step_));
    inputs.insert_or_assign(kRandomStepInput, Tensor::scalar(step_));
    inputs.insert_or_assign(kLearningRateInput,
                            Tensor::scalar(learning_rate_at(run_.schedule, step_)));
    std::map<ValueId, std::vector<std::string>> next;
    for (const Update& update : graph.updates) {
      next[update.value].push_back(graph.value(update.state).name);
    }
    reference_run(graph, inputs, run_.evaluate, [&](ValueId id, const Tensor& tensor) {
      const ValueId named = run_.step.graph().find(graph.value(id).name);
      if (named != kNoValue) {
        const TracedAs& as = run_.step.values().of(named);
        if (as.kind != TraceKind::kOwn) {
          add(trace_row(graph, id, as), tensor, is_gradient(as) ? scale : 1.0);
        }
      }
      const auto states = next.find(id);
      if (states == next.end()) return;
      for (const std::string& name : states->second) kept_.insert_or_assign(name, tensor);
    });
    add_kept();
  }

  // As the step begins.
  double loss_scale() const {
    const auto found = kept_.find(kLossScaleState);
    return found == kept_.end() ? 1.0 : convert(found->second, DType::kF64).values<double>()[0];
  }

  void add_kept() {
    for (const auto& [name, tensor] : kept_) {
      const ValueId id = run_.graph.find(name);
      const bool is_parameter = run_.graph.value(id).kind == ValueKind::kParameter;
      profiler::TraceRow row{.phase = TracePhase::kUpdate,
                             .kind = is_parameter ? TraceKind::kParameter : TraceKind::kState,
                             .value = name};
      row.dtype = std::string(name_of(tensor.dtype()));
      add(std::move(row), tensor);
    }
  }

  // Gradients are kept without the loss scale.
  void add(profiler::TraceRow row, const Tensor& tensor, double divisor = 1.0) {
    row.step = step_;
    row.order = order_++;
    row.shape = shape_cell(tensor.shape());
    profiler::TensorSummary summary =
        profiler::summary_of(tensor.dtype(), {tensor.data(), tensor.bytes()});
    summary.divide(divisor);
    row.statistics = summary.statistics;
    row.hash = summary.hash;
    writer_.add(row, summary.sketch);
    if (!run_.with_elements) return;
    Tensor& kept = elements_.emplace(row.key(), tensor).first->second;
    if (divisor == 1.0) return;
    kept = convert(tensor, DType::kF32);  // f16 has no room for small gradients
    for (float& element : kept.values<float>()) {
      element = static_cast<float>(static_cast<double>(element) / divisor);
    }
  }

  void end_step() {
    writer_.flush();
    if (elements_.empty()) return;
    std::vector<NamedTensor> tensors;
    for (const auto& [key, tensor] : elements_) {
      tensors.push_back({.name = key, .tensor = tensor.view()});
    }
    const Folder full = folder_.make(profiler::kTraceFullFolder);
    write_safetensors(full / fmt::format("{}.safetensors", step_), tensors);
    elements_.clear();
  }

  const GraphRun& run_;
  Folder folder_;
  profiler::TraceWriter writer_;
  NamedTensors kept_;      // parameters and states as they are
  NamedTensors elements_;  // of the step, by key
  std::int64_t step_;      // the last that was run
  std::int64_t order_ = 0;
};

}  // namespace

void record_steps(const GraphRun& run, const std::vector<NamedTensors>& batches,
                  const profiler::TraceHeader& header, const Folder& folder) {
  StepRecording(run, header, folder).run(batches);
}

}  // namespace trainscope
