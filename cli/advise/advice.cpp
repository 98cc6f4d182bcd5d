// Compiles each lever's step, prices its calls, and puts the levers in order.
#include "cli/advise/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/advise/command_line.h"
#include "cli/advise/step_facts.h"
#include "cli/flags/training_flags.h"
#include "engine/advise/step_sample.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/machine/this_machine.h"

namespace trainscope {
namespace {

constexpr int kTrialWarmUp = 2;
constexpr int kTrialSteps = 10;

LeverFacts lever_facts(const StepFacts& base, const Invocation& settled) {
  const Settings& settings = settled.settings();
  LeverFacts facts{.batch = base.step.sizes.batch,
                   .micro_batches = base.step.micro_batches(),
                   .arena_bytes = base.arena_bytes(),
                   .persistent_bytes = base.compiled->program.persistent_bytes,
                   .labels_that_count = base.labels_that_count,
                   .threads = settled.threads(),
                   .cores = usable_cores()};
  if (settings.has("memory")) facts.memory_bytes = parse_bytes("memory", settings.text("memory"));
  return facts;
}

// A budget that no plan fits becomes the least one that a plan fits.
void raise_budget(Lever& lever, std::int64_t bytes) {
  const auto budget = std::ranges::find(lever.flags, "memory-budget", &GivenFlag::name);
  CHECK_INVARIANT(budget != lever.flags.end());
  budget->texts = {std::to_string(bytes)};
}

struct Planned {
  AdvisedStep step;
  std::unique_ptr<Compiled> compiled;
};

Planned planned(const Source& source, const Invocation& settled, const Lever& lever) {
  AdvisedStep step = advised_step(source, settled.with_flags(lever.flags));
  step.options.passes.keep = KeepGraphs::kLast;
  std::unique_ptr<Compiled> compiled = compile(step.model, step.options);
  return {.step = std::move(step), .compiled = std::move(compiled)};
}

Planned planned_at_last(const Source& source, const Invocation& settled, Lever& lever) {
  try {
    return planned(source, settled, lever);
  } catch (const NoPlanFits& refusal) {
    if (refusal.least_bytes <= 0) throw;
    raise_budget(lever, refusal.least_bytes);
  }
  return planned(source, settled, lever);
}

// Rows whose labels count, of all of a batch's.
std::int64_t counted_rows(const AdvisedStep& step, const StepFacts& base) {
  if (!base.labels_that_count) return -1;
  const Program& program = base.compiled->program;
  const ValueId labels = program.graph.find(step.options.training.loss.labels);
  if (labels == kNoValue) return -1;
  const double rows = static_cast<double>(program.graph.value(labels).type.elements()) *
                      static_cast<double>(step.sizes.batch) /
                      static_cast<double>(std::max<std::int64_t>(1, base.step.sizes.batch));
  return std::llround(rows * *base.labels_that_count);
}

double gain_of(const LeverAdvice& lever, const StepFacts& base) {
  const double bytes =
      static_cast<double>(base.arena_bytes()) / static_cast<double>(lever.arena_bytes);
  const double an_example = base.seconds() / static_cast<double>(base.step.examples());
  return bytes * an_example / lever.seconds_an_example();
}

// The greatest gain first; with memory to fit in those that do, the quickest first, and then the
// smallest.
void put_in_order(Advice& advice) {
  const bool must_fit = advice.memory_bytes.has_value();
  std::ranges::stable_sort(advice.levers, [&](const LeverAdvice& a, const LeverAdvice& b) {
    if (!must_fit) return a.gain > b.gain;
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.seconds_an_example() < b.seconds_an_example() : a.arena_bytes < b.arena_bytes;
  });
}

class Adviser {
 public:
  Adviser(Advice& advice, const Source& source, const Invocation& settled)
      : advice_(advice), source_(source), settled_(settled) {
    const StepFacts& base = advice.base;
    if (base.times_from == TimesFrom::kMachine) return;
    prices_.emplace(base.compiled, view_of(base.record), base.times, base.step.micro_batches());
  }

  void add(Lever lever) {
    if (!lever.why_not.empty()) return advice_.left_out.push_back(std::move(lever));
    try {
      const Planned plan = planned_at_last(source_, settled_, lever);
      add_planned(std::move(lever), plan);
    } catch (const Error& error) {
      const bool is_no_plan = error.code() == ErrorCode::kUsage ||
                              error.code() == ErrorCode::kBadInput ||
                              error.code() == ErrorCode::kOutOfMemory;
      if (!is_no_plan) throw;
      lever.why_not = error.message();
      advice_.left_out.push_back(std::move(lever));
    }
  }

 private:
  void add_planned(Lever lever, const Planned& plan) {
    const Program& program = plan.compiled->program;
    LeverAdvice row{.command = train_command_line(source_, settled_, lever.flags),
                    .arena_bytes = program.arena().bytes,
                    .host_bytes = program.space(Space::kHost).bytes,
                    .examples = plan.step.examples()};
    row.lever = std::move(lever);
    row.forecast = forecast(plan);
    row.gain = gain_of(row, advice_.base);
    row.fits = !advice_.memory_bytes || row.arena_bytes <= *advice_.memory_bytes;
    const bool is_same = row.arena_bytes == advice_.base.arena_bytes() &&
                         row.examples == advice_.base.step.examples() && row.gain == 1.0;
    if (!is_same) return advice_.levers.push_back(std::move(row));
    row.lever.why_not = "it changes nothing in this step";
    advice_.left_out.push_back(std::move(row.lever));
  }

  StepForecast forecast(const Planned& plan) {
    const std::int64_t micro_batches = plan.step.micro_batches();
    if (prices_) {
      return prices_->forecast(*plan.compiled, plan.step.options, micro_batches,
                               counted_rows(plan.step, advice_.base));
    }
    return modelled_step(plan.compiled->program, plan.step.options, micro_batches);
  }

  Advice& advice_;
  const Source& source_;
  const Invocation& settled_;
  std::optional<CallPrices> prices_;
};

// Both steps, in turn, so that what else runs on the machine is in both.
LeverTrial trial_of(const AdvisedStep& base, const AdvisedStep& lever, const Invocation& base_call,
                    const Invocation& lever_call, bool with_base) {
  TimedSteps steps = timed_steps(lever, lever_call);
  std::optional<TimedSteps> as_it_is;
  if (with_base) as_it_is.emplace(timed_steps(base, base_call));
  std::vector<double> seconds;
  std::vector<double> base_seconds;
  for (int i = 0; i < kTrialWarmUp + kTrialSteps; ++i) {
    const double of_base = as_it_is ? as_it_is->run().milliseconds / 1e3 : 0.0;
    const double of_lever = steps.run().milliseconds / 1e3;
    if (i < kTrialWarmUp) continue;
    seconds.push_back(of_lever);
    base_seconds.push_back(of_base);
  }
  return {.used_bytes = steps.executor().used_bytes(),
          .seconds = profiler::median(seconds),
          .base_seconds = profiler::median(base_seconds)};
}

}  // namespace

double StepFacts::seconds() const {
  std::vector<double> all;
  for (const profiler::StepTime& each : times.steps) {
    all.push_back(1e-9 * static_cast<double>(each.ns()));
  }
  return profiler::median(std::move(all));
}

Advice advise(const Source& source, const Invocation& settled) {
  Advice advice{.base = step_facts(source, settled)};
  const LeverFacts facts = lever_facts(advice.base, settled);
  advice.memory_bytes = facts.memory_bytes;
  Adviser adviser(advice, source, settled);
  for (Lever& each : levers(settled.settings(), facts)) adviser.add(std::move(each));
  put_in_order(advice);
  return advice;
}

void try_levers(Advice& advice, const Source& source, const Invocation& settled,
                std::int64_t count) {
  require(advice.base.times_from != TimesFrom::kMachine, ErrorCode::kUsage,
          "--try runs steps, and this one cannot be run here: {}", advice.base.note);
  for (std::int64_t i = 0; i < std::min(count, std::ssize(advice.levers)); ++i) {
    LeverAdvice& each = advice.levers[static_cast<std::size_t>(i)];
    const Invocation call = settled.with_flags(each.lever.flags);
    const AdvisedStep step = advised_step(source, call);
    const std::int64_t both = each.arena_bytes + each.host_bytes + advice.base.arena_bytes();
    each.trial = trial_of(advice.base.step, step, settled, call, fits_in_memory(both));
  }
}

double time_error(const Advice& advice, const LeverAdvice& lever) {
  const LeverTrial& trial = *lever.trial;
  const double drift = trial.base_seconds > 0.0 ? trial.base_seconds / advice.base.seconds() : 1.0;
  return lever.forecast.seconds * drift / trial.seconds - 1.0;
}

}  // namespace trainscope
