// The plans of one step: the step compiled once, its recomputation planned for each request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/plain_step.h"
#include "engine/run/planned_step.h"

namespace trainscope::gui {

enum class PlanLevel : std::uint8_t { kNone, kLevel1, kLevel2, kAuto };
std::string_view name_of(PlanLevel level);  // "none", "1", "2", "auto": words of --recompute

// What to plan for. Patterns over the names of values are pins: what matches `keep` is never
// recomputed, what matches `recompute` always.
struct PlanRequest {
  PlanLevel level = PlanLevel::kNone;
  std::int64_t budget_bytes = 0;  // of kAuto
  std::vector<std::string> keep = {};
  std::vector<std::string> recompute = {};

  bool operator==(const PlanRequest&) const = default;
};

// A planned step. A draft is the quickest plan that is known at once; it is not the one that
// `train` makes of the same request, which is as quick or quicker.
struct PlanOutcome {
  PlanRequest request = {};
  bool draft = false;
  // The plan's record: the same rows that a run gets. Null where no plan fits; then `fault` and
  // `hint` say why.
  std::shared_ptr<const PlanRecord> record = {};
  double plain_seconds = 0.0;  // of a step without recomputation, as predicted
  double seconds = 0.0;        // of this plan's
  std::int64_t repeats = 0;    // nodes that run a second time
  // No step within `bound_bytes` is quicker than `bound_seconds`; 0: not known.
  double bound_seconds = 0.0;
  std::int64_t bound_bytes = 0;
  std::int64_t least_bytes = 0;  // the least budget with a plan, where no plan fits
  std::string fault = {};
  std::string hint = {};
};

// For one thread. Every call throws Stopped when its stop token, or that of the constructor, asks.
class StepPlanner {
 public:
  // Compiles the step as far as plans of it have the same: some seconds for a large one.
  StepPlanner(PlannedStep step, const Watch& watch);

  PlanOutcome plain() const;
  // The plans that no other beats with these pins, by falling arena; made once for the same pins.
  std::vector<TradePoint> front(const PlanRequest& pins);
  // Of kAuto, from all that was tried before: some milliseconds. Empty: nothing known fits.
  std::optional<TradePoint> point(const PlanRequest& request);
  // ... with its record.
  std::optional<PlanOutcome> draft(const PlanRequest& request);
  // What compile() makes of the request. Pins that name nothing and budgets that no plan fits are a
  // fault of the outcome.
  PlanOutcome plan(const PlanRequest& request, const std::stop_token& stop) const;

 private:
  RecomputeSlider& slider(const PlanRequest& pins);
  PlanOutcome outcome_of(const PlanRequest& request, const Compiled& compiled) const;

  CompileOptions options_;
  PlainStep plain_;
  std::optional<PlanRequest> slider_pins_;
  std::unique_ptr<RecomputeSlider> slider_;
};

}  // namespace trainscope::gui
