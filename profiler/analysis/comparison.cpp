// Medians and median absolute deviations by row.
#include "profiler/analysis/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "engine/core/numbers.h"

namespace trainscope::profiler {

double Spread::standard_error() const {
  if (count == 0) return 0.0;
  return 1.253 * 1.4826 * deviation / std::sqrt(static_cast<double>(count));
}

Spread spread_of(std::span<const double> values) {
  std::vector<double> all(values.begin(), values.end());
  const double middle = median(all);
  for (double& value : all) value = std::abs(value - middle);
  return {.median = middle, .deviation = median(std::move(all)), .count = values.size()};
}

double ComparedRow::significance() const {
  const double difference = difference_ns();
  if (difference == 0.0) return 0.0;
  const double error = std::hypot(a.standard_error(), b.standard_error());
  if (error == 0.0) return std::copysign(std::numeric_limits<double>::max(), difference);
  return difference / error;
}

double ComparedRow::ratio_error() const {
  if (a.median <= 0.0 || b.median <= 0.0) return 0.0;
  return ratio() * std::hypot(a.standard_error() / a.median, b.standard_error() / b.median);
}

namespace {

bool is_large(const ComparedRow& row, const ComparedRow& step) {
  return row.is_call && std::max(row.a.median, row.b.median) >= kLeastShare * step.a.median;
}

double common_ratio_of(const Comparison& both) {
  std::vector<double> ratios;
  for (const ComparedRow& row : both.rows) {
    const bool is_in_both = row.a.median > 0.0 && row.b.median > 0.0;
    if (is_in_both && is_large(row, both.step)) ratios.push_back(row.ratio());
  }
  return ratios.empty() ? 1.0 : median(std::move(ratios));
}

}  // namespace

bool Comparison::is_changed(const ComparedRow& row) const {
  if (!is_large(row, step)) return false;
  if (row.a.median <= 0.0 || row.b.median <= 0.0) return true;  // in one of them alone
  const double by = std::abs(change(row));
  return by >= kLeastChange && by * common_ratio > kSignificant * row.ratio_error();
}

Comparison compare_profiles(const Breakdown& a, const Breakdown& b) {
  Comparison both{.step = {.name = "step",
                           .is_call = false,
                           .a = spread_of(a.step_ns),
                           .b = spread_of(b.step_ns)},
                  .rows = {}};
  std::unordered_map<std::string, std::size_t> known;
  for (const BreakdownRow& row : a.rows) {
    known.emplace(row.name, both.rows.size());
    both.rows.push_back(
        {.name = row.name, .is_call = row.is_call, .a = spread_of(row.step_ns), .b = {}});
  }
  for (const BreakdownRow& row : b.rows) {
    const auto found = known.find(row.name);
    if (found != known.end()) {
      both.rows[found->second].b = spread_of(row.step_ns);
    } else {
      both.rows.push_back(
          {.name = row.name, .is_call = row.is_call, .a = {}, .b = spread_of(row.step_ns)});
    }
  }
  both.common_ratio = common_ratio_of(both);
  return both;
}

}  // namespace trainscope::profiler
