// What the Budget panel shows and lets change, as plain numbers: the curve of memory for time, the
// slider's budgets, pins, and what a worker measured.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/recompute/recompute.h"
#include "engine/run/worker_protocol.h"
#include "gui/budget/step_planner.h"

namespace trainscope::gui {

// Budgets that a slider goes through, from the least arena that a plan is known for to that of the
// step without recomputation.
struct BudgetRange {
  std::int64_t least_bytes = 0;
  std::int64_t most_bytes = 0;

  bool empty() const { return most_bytes <= least_bytes; }
  std::int64_t clamp(std::int64_t bytes) const;
  // From 0 to 1, and back; the ends are met to the byte.
  double share_of(std::int64_t bytes) const;
  std::int64_t at(double share) const;
};
// `front` is by falling arena, the first without recomputation. Empty for an empty one.
BudgetRange range_of(std::span<const TradePoint> front);

// A budget as people write it: "60%" of the most, "300MB", "1.5GiB". None for what is none.
std::optional<std::int64_t> budget_named(std::string_view text, std::int64_t most_bytes);

// The quickest plan of the front within the budget; null where none fits.
const TradePoint* quickest_within(std::span<const TradePoint> front, std::int64_t budget_bytes);
// The next arena of the front above the budget (direction 1), or below it (-1); the budget where
// there is none.
std::int64_t neighbour_budget(std::span<const TradePoint> front, std::int64_t budget_bytes,
                              int direction);

// The share of a step's time that a plan adds: 0.1 is 10 %.
double overhead_of(double seconds, double plain_seconds);

// A corner of the curve that says how much more time a step takes within so many bytes.
struct CurveCorner {
  double bytes = 0.0;
  double overhead = 0.0;

  bool operator==(const CurveCorner&) const = default;
};
// A staircase by falling bytes: between two plans the budget is that of the smaller one.
std::vector<CurveCorner> curve_of(std::span<const TradePoint> front, double plain_seconds);

enum class Pin : std::uint8_t { kFree, kKeep, kRecompute };
std::string_view name_of(Pin pin);  // "free", "keep", "recompute"
Pin pin_of(const PlanRequest& request, std::string_view value);
void set_pin(PlanRequest& request, std::string_view value, Pin pin);
// What a click makes of it: free, keep, recompute, free.
Pin next_pin(Pin pin);

// The values that may be pinned: made by the forward phase, none of them a view alone.
class PinnableValues {
 public:
  explicit PinnableValues(const PlanView& plain);

  bool contains(std::string_view value) const { return names_.contains(value); }
  std::size_t size() const { return names_.size(); }
  // Of a buffer of any plan of this step, whose original_values() these are, the first value that
  // may be pinned, under the name that it has in the step without recomputation; empty: none. The
  // name is the plan's.
  std::string_view value_of(const PlanView& plan, std::span<const std::uint32_t> originals,
                            std::uint32_t buffer) const;

 private:
  std::set<std::string, std::less<>> names_;
};

// Of a worker's steps but the first one, which warms up; NaN before there are others.
double median_milliseconds(std::span<const WorkerStep> steps);

}  // namespace trainscope::gui
