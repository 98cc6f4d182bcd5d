// Curve, slider, pins and measured times of the Budget panel.
#include "gui/budget/budget_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/byte_count.h"
#include "engine/core/error.h"
#include "engine/core/numbers.h"
#include "engine/core/text.h"

namespace trainscope::gui {

std::int64_t BudgetRange::clamp(std::int64_t bytes) const {
  return empty() ? most_bytes : std::clamp(bytes, least_bytes, most_bytes);
}

double BudgetRange::share_of(std::int64_t bytes) const {
  if (empty()) return 1.0;
  return static_cast<double>(clamp(bytes) - least_bytes) /
         static_cast<double>(most_bytes - least_bytes);
}

std::int64_t BudgetRange::at(double share) const {
  const auto width = static_cast<double>(most_bytes - least_bytes);
  return clamp(least_bytes + std::llround(std::clamp(share, 0.0, 1.0) * width));
}

BudgetRange range_of(std::span<const TradePoint> front) {
  if (front.empty()) return {};
  return {.least_bytes = front.back().arena_bytes, .most_bytes = front.front().arena_bytes};
}

std::optional<std::int64_t> budget_named(std::string_view text, std::int64_t most_bytes) {
  text = trim(text);
  if (!text.ends_with('%')) return find_bytes(text);
  const std::optional<double> percent = parse_number(trim(text.substr(0, text.size() - 1)));
  if (!percent || !(*percent > 0.0) || *percent > 1000.0) return std::nullopt;
  return std::llround(*percent / 100.0 * static_cast<double>(most_bytes));
}

const TradePoint* quickest_within(std::span<const TradePoint> front, std::int64_t budget_bytes) {
  const auto found = std::ranges::partition_point(
      front, [&](const TradePoint& point) { return point.arena_bytes > budget_bytes; });
  return found == front.end() ? nullptr : &*found;
}

std::int64_t neighbour_budget(std::span<const TradePoint> front, std::int64_t budget_bytes,
                              int direction) {
  if (direction < 0) {
    const auto below = std::ranges::partition_point(
        front, [&](const TradePoint& point) { return point.arena_bytes >= budget_bytes; });
    return below == front.end() ? budget_bytes : below->arena_bytes;
  }
  const auto above = std::ranges::partition_point(
      front, [&](const TradePoint& point) { return point.arena_bytes > budget_bytes; });
  return above == front.begin() ? budget_bytes : std::prev(above)->arena_bytes;
}

double overhead_of(double seconds, double plain_seconds) {
  return plain_seconds > 0.0 ? std::max(0.0, seconds / plain_seconds - 1.0) : 0.0;
}

std::vector<CurveCorner> curve_of(std::span<const TradePoint> front, double plain_seconds) {
  std::vector<CurveCorner> corners;
  for (const TradePoint& point : front) {
    const CurveCorner corner{.bytes = static_cast<double>(point.arena_bytes),
                             .overhead = overhead_of(point.seconds, plain_seconds)};
    if (!corners.empty()) {
      corners.push_back({.bytes = corners.back().bytes, .overhead = corner.overhead});
    }
    corners.push_back(corner);
  }
  return corners;
}

std::string_view name_of(Pin pin) {
  switch (pin) {
    case Pin::kFree:
      return "free";
    case Pin::kKeep:
      return "keep";
    case Pin::kRecompute:
      return "recompute";
  }
  CHECK_INVARIANT(false);
}

Pin pin_of(const PlanRequest& request, std::string_view value) {
  if (std::ranges::find(request.keep, value) != request.keep.end()) return Pin::kKeep;
  const bool again = std::ranges::find(request.recompute, value) != request.recompute.end();
  return again ? Pin::kRecompute : Pin::kFree;
}

void set_pin(PlanRequest& request, std::string_view value, Pin pin) {
  std::erase(request.keep, value);
  std::erase(request.recompute, value);
  if (pin == Pin::kKeep) request.keep.emplace_back(value);
  if (pin == Pin::kRecompute) request.recompute.emplace_back(value);
}

Pin next_pin(Pin pin) {
  if (pin == Pin::kFree) return Pin::kKeep;
  return pin == Pin::kKeep ? Pin::kRecompute : Pin::kFree;
}

PinnableValues::PinnableValues(const PlanView& plain) {
  for (const PlanValue& value : plain.values) {
    if (value.kind != PlanValueKind::kNode || value.producer == kNoRow) continue;
    const bool forward = plain.nodes[value.producer].phase == PlanPhase::kForward;
    const std::string_view name = plain.text(value.name);
    // A line of a file of pins has to hold it.
    const bool fits = !name.empty() && trim(name) == name && name.find('\n') == name.npos;
    if (forward && fits && value.view_of == kNoRow) names_.emplace(name);
  }
}

std::string_view PinnableValues::value_of(const PlanView& plan,
                                          std::span<const std::uint32_t> originals,
                                          std::uint32_t buffer) const {
  for (const std::uint32_t member : rows_of(plan.members, plan.buffers[buffer].values)) {
    const std::string_view name = plan.text(plan.values[originals[member]].name);
    if (contains(name)) return name;
  }
  return {};
}

double median_milliseconds(std::span<const WorkerStep> steps) {
  if (steps.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> times;
  for (const WorkerStep& step : steps.subspan(1)) times.push_back(step.milliseconds);
  return median(std::move(times));
}

}  // namespace trainscope::gui
