// Rows of two profiles by name, what their ratios have in common, and which of them stand out.
#include "profiler/analysis/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "engine/core/numbers.h"

namespace trainscope::profiler {

double ComparedRow::error(double between) const {
  const auto runs = static_cast<double>(std::max<std::size_t>(1, std::min(a.runs, b.runs)));
  return std::hypot(a.drift, b.drift, between / std::sqrt(runs));
}

double ComparedRow::significance() const {
  if (a.low == b.low) return 0.0;
  if (!is_in_both()) return std::copysign(std::numeric_limits<double>::max(), b.low - a.low);
  return std::log(ratio()) / error(kBetweenRuns);
}

namespace {

bool is_large(const ComparedRow& row, const ComparedRow& step) {
  return row.is_call && std::max(row.a.low, row.b.low) >= kLeastShare * step.a.low;
}

void find_common(Comparison& both) {
  std::vector<double> logarithms;
  for (const ComparedRow& row : both.rows) {
    if (row.is_in_both() && is_large(row, both.step)) logarithms.push_back(std::log(row.ratio()));
  }
  std::vector<double> with_unchanged = logarithms;
  with_unchanged.push_back(0.0);
  const double common = median(std::move(with_unchanged));
  both.common_ratio = std::exp(common);
  both.between = kBetweenRuns;
  const auto rows = static_cast<double>(logarithms.size());
  for (double& value : logarithms) value = std::abs(value - common);
  const double spread = kMedianDeviations * median(std::move(logarithms));
  const double squares = kRowsBefore * kBetweenRuns * kBetweenRuns + rows * spread * spread;
  both.between = std::max(kBetweenRuns, std::sqrt(squares / (kRowsBefore + rows)));
}

}  // namespace

bool Comparison::is_changed(const ComparedRow& row) const {
  if (!is_large(row, step)) return false;
  if (!row.is_in_both()) return true;
  const double by = std::log(row.ratio() / common_ratio);
  return std::abs(by) > kSignificant * row.error(between) &&
         std::abs(row.b.low - common_ratio * row.a.low) > kLeastChangeNs;
}

Comparison compare_profiles(const Breakdown& a, const Breakdown& b) {
  Comparison both{.step = {.name = "step",
                           .is_call = false,
                           .a = spread_of(a.step_ns, a.run_steps),
                           .b = spread_of(b.step_ns, b.run_steps)},
                  .rows = {}};
  std::unordered_map<std::string, std::size_t> known;
  for (const BreakdownRow& row : a.rows) {
    known.emplace(row.name, both.rows.size());
    both.rows.push_back({.name = row.name,
                         .is_call = row.is_call,
                         .a = spread_of(row.step_ns, a.run_steps),
                         .b = {}});
  }
  for (const BreakdownRow& row : b.rows) {
    const auto found = known.find(row.name);
    if (found != known.end()) {
      both.rows[found->second].b = spread_of(row.step_ns, b.run_steps);
    } else {
      both.rows.push_back({.name = row.name,
                           .is_call = row.is_call,
                           .a = {},
                           .b = spread_of(row.step_ns, b.run_steps)});
    }
  }
  find_common(both);
  return both;
}

}  // namespace trainscope::profiler
