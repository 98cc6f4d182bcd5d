// Compiles each lever's step, prices its calls, and puts the levers in order.
#include "engine/advise/advice.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "engine/core/error.h"
#include "engine/machine/this_machine.h"

namespace trainscope {
namespace {

LeverFacts lever_facts(const AdviceRequest& request, const StepFacts& base) {
  return {.batch = base.batch,
          .micro_batches = base.micro_batches,
          .arena_bytes = base.arena_bytes(),
          .persistent_bytes = base.compiled->program.persistent_bytes,
          .memory_bytes = request.memory_bytes,
          .labels_that_count = base.labels_that_count,
          .threads = request.train.compile.lower.threads,
          .cores = usable_cores()};
}

struct PlannedLever {
  TrainRequest step;
  std::unique_ptr<Compiled> compiled;

  std::int64_t micro_batches() const { return step.compile.training.micro_batches; }
  std::int64_t examples() const { return step.batch * micro_batches(); }
};

// Rows that labels count of, of all of a batch's; -1: not known.
std::int64_t compacted_rows(const TrainRequest& step, const StepFacts& base) {
  if (!base.labels_that_count) return -1;
  const Program& program = base.compiled->program;
  const ValueId labels = program.graph.find(step.compile.training.loss.labels);
  if (labels == kNoValue) return -1;
  const double rows = static_cast<double>(program.graph.value(labels).type.elements()) *
                      static_cast<double>(step.batch) /
                      static_cast<double>(std::max<std::int64_t>(1, base.batch));
  return std::llround(rows * *base.labels_that_count);
}

double gain_of(const LeverAdvice& lever, const StepFacts& base) {
  const double bytes =
      static_cast<double>(base.arena_bytes()) / static_cast<double>(lever.arena_bytes);
  const double an_example = base.seconds() / static_cast<double>(base.examples());
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

// Errors that say of a lever that it makes no step.
bool is_no_plan(const Error& error) {
  return error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kBadInput ||
         error.code() == ErrorCode::kOutOfMemory;
}

class Adviser {
 public:
  explicit Adviser(AdviceRequest request)
      : request_(std::move(request)),
        advice_{.base = step_facts(request_), .memory_bytes = request_.memory_bytes} {
    const StepFacts& base = advice_.base;
    if (base.times_from == TimesFrom::kMachine) return;
    prices_.emplace(base.compiled, view_of(base.record), base.times, base.micro_batches);
  }

  Advice advise() {
    for (Lever& each : levers(request_.train.compile, lever_facts(request_, advice_.base))) {
      add(std::move(each));
    }
    put_in_order(advice_);
    return std::move(advice_);
  }

 private:
  void add(Lever lever) {
    if (!lever.why_not.empty()) return advice_.left_out.push_back(std::move(lever));
    try {
      const PlannedLever plan = planned_at_last(lever);
      add_planned(std::move(lever), plan);
    } catch (const Error& error) {
      if (!is_no_plan(error)) throw;
      lever.why_not = error.message();
      advice_.left_out.push_back(std::move(lever));
    }
  }

  PlannedLever planned(const StepChange& change) const {
    TrainRequest step = changed(request_.train, request_.sizes, change);
    step.compile.passes.keep = KeepGraphs::kLast;
    std::unique_ptr<Compiled> compiled = compile(step.model, step.compile);
    return {.step = std::move(step), .compiled = std::move(compiled)};
  }

  // A budget that no plan fits becomes the least one that a plan fits.
  PlannedLever planned_at_last(Lever& lever) const {
    try {
      return planned(lever.change);
    } catch (const NoPlanFits& refusal) {
      if (refusal.least_bytes <= 0) throw;
      lever.change.budget_bytes = refusal.least_bytes;
    }
    return planned(lever.change);
  }

  void add_planned(Lever lever, const PlannedLever& plan) {
    const Program& program = plan.compiled->program;
    LeverAdvice row{.arena_bytes = program.arena().bytes,
                    .host_bytes = program.space(Space::kHost).bytes,
                    .examples = plan.examples()};
    row.lever = std::move(lever);
    row.forecast = forecast(plan);
    row.gain = gain_of(row, advice_.base);
    row.fits = !advice_.memory_bytes || row.arena_bytes <= *advice_.memory_bytes;
    const bool is_same = row.arena_bytes == advice_.base.arena_bytes() &&
                         row.examples == advice_.base.examples() && row.gain == 1.0;
    if (!is_same) return advice_.levers.push_back(std::move(row));
    row.lever.why_not = "it changes nothing in this step";
    advice_.left_out.push_back(std::move(row.lever));
  }

  StepForecast forecast(const PlannedLever& plan) {
    const CompileOptions& options = plan.step.compile;
    if (!prices_) return modelled_step(plan.compiled->program, options, plan.micro_batches());
    return prices_->forecast(*plan.compiled, options, plan.micro_batches(),
                             compacted_rows(plan.step, advice_.base));
  }

  AdviceRequest request_;
  Advice advice_;
  std::optional<CallPrices> prices_;  // none where nothing was run
};

}  // namespace

Advice advise(AdviceRequest request, const std::stop_token& stop) {
  request.train.compile.watch.stop = stop;
  return Adviser(std::move(request)).advise();
}

}  // namespace trainscope
