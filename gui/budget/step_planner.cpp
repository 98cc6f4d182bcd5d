// Requests as options of the engine, and its plans as records.
#include "gui/budget/step_planner.h"

#include <utility>

#include "engine/core/error.h"
#include "engine/plan/lower.h"
#include "engine/recompute/recompute.h"
#include "engine/record_plan.h"

namespace trainscope::gui {
namespace {

RecomputeMode mode_of(const PlanRequest& request) {
  switch (request.level) {
    case PlanLevel::kNone:  // pins alone are plans too
      return request.recompute.empty() ? RecomputeMode::kNone : RecomputeMode::kClusters;
    case PlanLevel::kLevel1:
      return RecomputeMode::kLevel1;
    case PlanLevel::kLevel2:
      return RecomputeMode::kLevel2;
    case PlanLevel::kAuto:
      return RecomputeMode::kAuto;
  }
  CHECK_INVARIANT(false);
}

RecomputeOptions wishes_of(const PlanRequest& request) {
  RecomputeOptions wishes{
      .mode = mode_of(request), .keep = request.keep, .recompute = request.recompute};
  if (request.level == PlanLevel::kAuto) wishes.budget_bytes = request.budget_bytes;
  return wishes;
}

// Nobody runs the plans that are shown: a worker makes its own.
CompileOptions of_plans(CompileOptions options) {
  options.lower.runs = false;
  return options;
}

PlainStep compiled_plain(const OnnxModel& model, CompileOptions options, const Watch& watch) {
  options.batch_tiles = {};
  options.watch = watch;
  PlainStep plain = plain_step(model, options);
  plain.lower.watch = {.stop = watch.stop, .progress = nullptr};
  return plain;
}

PlanOutcome fault_of(const PlanRequest& request, const Error& error) {
  PlanOutcome outcome{.request = request, .fault = error.message(), .hint = error.hint()};
  const auto* none_fits = dynamic_cast<const NoPlanFits*>(&error);
  if (none_fits != nullptr) outcome.least_bytes = none_fits->least_bytes;
  return outcome;
}

}  // namespace

std::string_view name_of(PlanLevel level) {
  switch (level) {
    case PlanLevel::kNone:
      return "none";
    case PlanLevel::kLevel1:
      return "1";
    case PlanLevel::kLevel2:
      return "2";
    case PlanLevel::kAuto:
      return "auto";
  }
  CHECK_INVARIANT(false);
}

StepPlanner::StepPlanner(PlannedStep step, const Watch& watch)
    : options_(of_plans(std::move(step.options))),
      plain_(compiled_plain(step.model, options_, watch)) {}

PlanOutcome StepPlanner::outcome_of(const PlanRequest& request, const Compiled& compiled) const {
  PlanOutcome outcome{.request = request,
                      .record = std::make_shared<const PlanRecord>(plan_record(compiled)),
                      .plain_seconds = plain_.seconds,
                      .seconds = plain_.seconds};
  if (compiled.recompute) {
    outcome.plain_seconds = compiled.recompute->plain_seconds;
    outcome.seconds = compiled.recompute->seconds;
    outcome.repeats = compiled.recompute->repeats;
    outcome.bound_seconds = compiled.recompute->bound_seconds;
    outcome.bound_bytes = compiled.recompute->bound_bytes;
  }
  return outcome;
}

PlanOutcome StepPlanner::plain() const { return outcome_of({}, *plain_.compiled); }

PlanOutcome StepPlanner::plan(const PlanRequest& request, const std::stop_token& stop) const {
  CompileOptions options = options_;
  options.recompute = wishes_of(request);
  options.watch = {.stop = stop, .progress = nullptr};
  try {
    return outcome_of(request, *replan(*plain_.compiled, options));
  } catch (const Error& error) {
    return fault_of(request, error);
  }
}

RecomputeSlider& StepPlanner::slider(const PlanRequest& request) {
  PlanRequest pins{.keep = request.keep, .recompute = request.recompute};
  if (!slider_ || slider_pins_ != pins) {
    slider_pins_.reset();
    slider_ = std::make_unique<RecomputeSlider>(plain_.program(), plain_.node_seconds, op_table(),
                                                plain_.lower, wishes_of(pins));
    slider_pins_ = std::move(pins);
  }
  return *slider_;
}

std::vector<TradePoint> StepPlanner::front(const PlanRequest& pins) { return slider(pins).front(); }

std::optional<TradePoint> StepPlanner::point(const PlanRequest& request) {
  constexpr double kSearchSeconds = 2e-3;  // and as long to place it: a point is there within 10 ms
  return slider(request).point_within(request.budget_bytes, kSearchSeconds);
}

std::optional<PlanOutcome> StepPlanner::draft(const PlanRequest& request) {
  constexpr double kSearchSeconds = 0.05;  // of some 0.4 that rectangles may take
  std::optional<RecomputePlan> plan =
      slider(request).plan_within(request.budget_bytes, kSearchSeconds);
  if (!plan) return std::nullopt;
  const Program program =
      lower(std::move(plan->graph.graph), plain_.program().device, plain_.lower);
  return PlanOutcome{.request = request,
                     .draft = true,
                     .record = std::make_shared<const PlanRecord>(plan_record(program)),
                     .plain_seconds = plan->plain_seconds,
                     .seconds = plan->seconds,
                     .repeats = plan->rematerialized_nodes()};
}

}  // namespace trainscope::gui
