// From step to step: what each begins with, and how far that is the run's.
#include "engine/bisect/run_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "engine/ir/well_known.h"

namespace trainscope {
namespace {

using profiler::TraceKind;

constexpr double kSameStart = 1e-6;  // relative, of parameters that both begin with

// The type of two bytes that these are rounded to in what the run has; empty: none.
std::string_view rounded_to(const Tensor& expected, const Observed& seen, double tolerance) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const Coordinates rounded = seen.coordinates_of(convert(expected, dtype));
    if (distance(rounded, seen.coordinates()) <= tolerance) return name_of(dtype);
  }
  return {};
}

// `before`: the step that left the elements; 0: the run begins with them. `rounded`: rounded_to().
std::string start_text(bool of_model, std::int64_t before, std::string_view rounded) {
  if (of_model && !rounded.empty()) {
    return fmt::format("the run begins with the model's elements rounded to {}", rounded);
  }
  if (of_model) return "the run begins with other elements than the model has";
  if (before == 0) return "the run begins with other elements than the other one";
  return "the step begins with other elements than the step before left in the other run";
}

class Replayer {
 public:
  explicit Replayer(const ReplayedRun& run)
      : run_(run),
        graph_(run.step.truth().graph()),
        replay_(run.step, run.trace, run.limit_of, run.rounding) {}

  RunReplay run() {
    for (const std::int64_t step : run_.steps) {
      std::optional<StepStart> start = recorded_start(run_.trace, step);
      const std::optional<StepStart> given = run_.start ? run_.start(step) : std::nullopt;
      if (!start) start = given;
      if (!start) {
        result_.skipped.push_back(step);
        last_ = 0;
        continue;
      }
      if (!run_step(step, *start, given ? &given->kept : nullptr)) break;
      result_.steps.push_back(step);
      if (!replay_.faults().empty()) break;
      last_ = step;
    }
    result_.judged = replay_.judged();
    for (const LocalFault& fault : replay_.faults()) result_.faults.push_back(fault);
    return std::move(result_);
  }

 private:
  // False, and nothing is run, where it begins with other elements than it must.
  bool run_step(std::int64_t step, const StepStart& start,
                const std::map<std::string, Tensor>* other) {
    ReplayInputs inputs = kept(step, start, other);
    if (!result_.faults.empty()) return false;
    const double rate = learning_rate_at(run_.schedule, step);
    for (std::int64_t micro = 0; micro < std::ssize(start.batches); ++micro) {
      const StepStart batches{.batches = start.batches, .kept = {}};
      for (auto& [name, tensor] : inputs_of(batches, step, micro, rate)) {
        inputs.tensors.insert_or_assign(name, tensor);
      }
      replay_.run_micro_step(step, micro, inputs);
      carry_statistics(inputs);
    }
    if (has_own_gradients()) replay_.run_update(step, inputs);
    return true;
  }

  // A trace of all values is of a step that our engine computed once more: its update read others.
  bool has_own_gradients() const {
    const profiler::TraceHeader& header = run_.trace.trace().header();
    return header.producer != "trainscope" || header.mode != "all";
  }

  // What the forward phase made of running statistics is what the next micro-batch reads.
  void carry_statistics(ReplayInputs& inputs) const {
    for (const Update& update : graph_.updates) {
      const NodeId maker = graph_.value(update.value).producer;
      if (maker == kNoNode || graph_.node(maker).phase == Phase::kUpdate) continue;
      const std::string& name = graph_.value(update.state).name;
      const Tensor* next = replay_.next_of(name);
      if (next == nullptr) continue;
      inputs.tensors.insert_or_assign(name, *next);
      inputs.trust.insert_or_assign(name, replay_.trust_of_next(name));
    }
  }

  ReplayInputs kept(std::int64_t step, const StepStart& start,
                    const std::map<std::string, Tensor>* other) {
    ReplayInputs inputs;
    for (const ValueId id : graph_.live_values()) {
      const Value& value = graph_.value(id);
      const bool is_parameter = value.kind == ValueKind::kParameter;
      if (!is_parameter && value.kind != ValueKind::kState) continue;
      settle(value, step, start, other, inputs);
    }
    return inputs;
  }

  void settle(const Value& value, std::int64_t step, const StepStart& start,
              const std::map<std::string, Tensor>* other, ReplayInputs& inputs) {
    const TraceKind kind =
        value.kind == ValueKind::kParameter ? TraceKind::kParameter : TraceKind::kState;
    const std::string key = fmt::format("{}:{}", name_of(kind), value.name);
    const auto row = run_.trace.find(step - 1, 0, key);
    const std::optional<Tensor> own = row ? run_.trace.full(run_.trace.row(*row)) : std::nullopt;
    if (own && own->elements() == value.type.elements()) {
      inputs.tensors.insert_or_assign(value.name, *own);
      if (step == 1) check_start(value, key, *row, inputs);
      return;
    }
    Trust trust = Trust::kAgrees;
    bool is_judged = false;
    if (last_ == step - 1 && last_ > 0 && replay_.next_of(value.name) != nullptr) {
      inputs.tensors.insert_or_assign(value.name, *replay_.next_of(value.name));
      trust = replay_.trust_of_next(value.name);
      is_judged = true;
    } else if (const Tensor* found = found_in(value.name, start, other)) {
      inputs.tensors.insert_or_assign(value.name, *found);
      if (!row) trust = Trust::kUnknown;
    } else if (step > 1) {
      trust = Trust::kUnknown;
    } else if (!row && value.name.starts_with(kOwnPrefix)) {
      trust = Trust::kElements;  // an optimizer's moments begin as its definition says
    }
    inputs.trust.insert_or_assign(value.name, trust);
    if (row && is_judged) note_distance(value, *row, inputs);
    if (trust != Trust::kUnknown && row && !is_judged) check_start(value, key, *row, inputs);
  }

  void note_distance(const Value& value, std::size_t row, ReplayInputs& inputs) const {
    const Observed seen(run_.trace, row);
    const Tensor& ours = inputs.tensors.at(value.name);
    if (!seen.fits(ours) || ours.elements() == 0) return;
    const double count = std::sqrt(static_cast<double>(ours.elements()));
    inputs.apart.insert_or_assign(value.name,
                                  distance(seen.coordinates_of(ours), seen.coordinates()) / count);
  }

  static const Tensor* found_in(const std::string& name, const StepStart& start,
                                const std::map<std::string, Tensor>* other) {
    for (const auto* kept : {&start.kept, other}) {
      if (kept == nullptr) continue;
      const auto found = kept->find(name);
      if (found != kept->end()) return &found->second;
    }
    return nullptr;
  }

  // Whether the step begins with what we take it to: of step 1 the model's own elements, else what
  // the other run has. That is what the step before left: its last.
  void check_start(const Value& value, const std::string& key, std::size_t row,
                   ReplayInputs& inputs) {
    const Observed seen(run_.trace, row);
    const auto given = inputs.tensors.find(value.name);
    const bool of_model = seen.elements().has_value() || given == inputs.tensors.end();
    const Tensor zeros(value.type);
    const Tensor* ours = of_model ? (value.data ? value.data.get() : &zeros) : &given->second;
    if (!seen.fits(*ours)) return;
    const Coordinates expected = seen.coordinates_of(*ours);
    const double norm = std::max(norm_of(expected), norm_of(seen.coordinates()));
    const double error = distance(expected, seen.coordinates());
    const double limit = std::max(kSameStart, of_model ? 0.0 : run_.limit_of(row)) * norm;
    if (error <= limit) return;
    if (!seen.elements()) inputs.trust.insert_or_assign(value.name, Trust::kUnknown);
    // Running statistics may have seen other batches before; they change no gradient.
    if (value.kind == ValueKind::kState) return;
    result_.faults.push_back(
        {.kind = FaultKind::kStart,
         .step = seen.row().step,
         .phase = profiler::TracePhase::kUpdate,
         .key = key,
         .op = {},
         .node = {},
         .cause = start_text(of_model, seen.row().step, rounded_to(*ours, seen, kSameStart * norm)),
         .error = error / norm,
         .limit = limit / norm,
         .by_elements = seen.elements().has_value(),
         .among = {},
         .order = std::numeric_limits<std::int64_t>::max()});
  }

  const ReplayedRun& run_;
  const Graph& graph_;
  StepReplay replay_;
  RunReplay result_;
  std::int64_t last_ = 0;  // step that was replayed just before
};

}  // namespace

RunReplay replay_run(const ReplayedRun& run) { return Replayer(run).run(); }

}  // namespace trainscope
