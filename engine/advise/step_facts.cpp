// Profiles, sampled steps, or the machine's model: in this order.
#include "engine/advise/step_facts.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/advise/step_sample.h"
#include "engine/core/numbers.h"
#include "engine/machine/this_machine.h"
#include "engine/record_plan.h"
#include "profiler/analysis/profile.h"

namespace trainscope {
namespace {

// Small enough that no loss leaves the numbers while a batch is trained on again and again.
constexpr double kLearningRate = 1e-5;

bool same_calls(const PlanView& a, const PlanView& b) {
  if (a.calls.size() != b.calls.size()) return false;
  for (std::size_t i = 0; i < a.calls.size(); ++i) {
    if (signature_of(a, a.calls[i]) != signature_of(b, b.calls[i])) return false;
  }
  return true;
}

// Takes the times of the run's newest session; false, with a note, where there are none of this
// plan.
bool take_profile(const std::optional<RunReader>& run, StepFacts& facts) {
  if (!run) return false;
  if (!run->events()) {
    facts.note = "the run has no profile";
    return false;
  }
  const auto profile = profiler::Profile::open(*run);
  if (!same_calls(profile.plan(), view_of(facts.record))) {
    facts.note = "the profile is of another plan than this program makes of the run's options";
    return false;
  }
  facts.times = profiler::step_times(profile.events(), profile.plan());
  if (facts.times.steps.empty()) facts.note = "the profile has no whole step";
  facts.times_from = TimesFrom::kProfile;
  return !facts.times.steps.empty();
}

void count_labels(const Batch& batch, const LossOptions& loss, StepFacts& facts) {
  const auto labels =
      std::ranges::find(batch.tensors, loss.labels, &std::pair<std::string, Tensor>::first);
  if (!is_by_class(loss.kind) || labels == batch.tensors.end()) return;
  const std::int64_t all = labels->second.elements();
  if (all > 0) {
    facts.labels_that_count = static_cast<double>(batch.loss_terms) / static_cast<double>(all);
  }
}

// A step of the model's times, so that all that reads times can read these.
void take_modelled(const CompileOptions& options, StepFacts& facts) {
  const Program& program = facts.compiled->program;
  const std::vector<double> seconds = step_seconds(program, options.costs, options.machine);
  facts.times_from = TimesFrom::kMachine;
  facts.times.calls.resize(program.calls.size());
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    const Call& call = program.calls[i];
    profiler::CallTime& time = facts.times.calls[i];
    const bool counts = call.kind != CallKind::kStateCopy && call.tile <= 0;
    const std::int64_t runs = call.phase == Phase::kUpdate ? 1 : facts.micro_batches;
    const double of_call = counts ? seconds[static_cast<std::size_t>(call.node)] : 0.0;
    time.ns = {std::llround(1e9 * of_call * static_cast<double>(runs))};
    time.busy_ns = time.sum();
    time.runs = runs;
    facts.times.total_ns += time.sum();
  }
  facts.times.steps = {{.step = 1, .begin_ns = 0, .end_ns = facts.times.total_ns}};
}

// The first batch of the data for the step's program, whose stages tell what its integers may be.
Batch first_batch(const TrainRequest& step, const Compiled& compiled) {
  const std::shared_ptr<const Dataset> data = step.open_data(compiled);
  const BatchOrder order =
      BatchOrder::training(data->examples(Split::kTrain), step.batch, step.seed);
  return *direct_batches(data, order, {.first = 0, .count = 1})->next();
}

}  // namespace

bool fits_in_memory(std::int64_t bytes) {
  constexpr double kShare = 0.9;  // of what is there: others need some
  const MachineMemory memory = machine_memory();
  const std::uint64_t there =
      std::min(memory.available_bytes, memory.limit_bytes.value_or(memory.available_bytes));
  return static_cast<double>(bytes) <= kShare * static_cast<double>(there);
}

StepForecast modelled_step(const Program& program, const CompileOptions& options,
                           std::int64_t micro_batches) {
  const std::vector<double> seconds = step_seconds(program, options.costs, options.machine);
  StepForecast forecast;
  for (const NodeId id : program.graph.order()) {
    const bool once = program.graph.node(id).phase == Phase::kUpdate;
    forecast.modelled_seconds +=
        seconds[static_cast<std::size_t>(id)] * static_cast<double>(once ? 1 : micro_batches);
  }
  forecast.seconds = forecast.modelled_seconds;
  return forecast;
}

TimedSteps timed_steps(const TrainRequest& step) {
  return TimedSteps(
      step.model, step.compile,
      [&step](const Compiled& compiled) { return first_batch(step, compiled); }, kLearningRate);
}

double StepFacts::seconds() const {
  std::vector<double> all;
  for (const profiler::StepTime& each : times.steps) {
    all.push_back(1e-9 * static_cast<double>(each.ns()));
  }
  return median(std::move(all));
}

StepFacts step_facts(const AdviceRequest& request) {
  const TrainRequest& step = request.train;
  StepFacts facts{.compiled = compile(step.model, step.compile),
                  .batch = step.batch,
                  .micro_batches = step.compile.training.micro_batches};
  facts.record = plan_record(*facts.compiled);
  const Program& program = facts.compiled->program;
  const std::int64_t bytes = program.arena().bytes + program.space(Space::kHost).bytes;
  if (request.shapes_only || !fits_in_memory(bytes)) {
    facts.note = request.shapes_only
                     ? "a builder's model without a file has no elements to run with"
                     : "its arena is more than the memory that is free";
    take_modelled(step.compile, facts);
    return facts;
  }
  count_labels(first_batch(step, *facts.compiled), step.compile.training.loss, facts);
  if (take_profile(request.run, facts)) return facts;
  TimedSteps steps = timed_steps(step);
  facts.times = sample_steps(steps, {}, step.compile.watch);
  facts.times_from = TimesFrom::kSteps;
  return facts;
}

}  // namespace trainscope
