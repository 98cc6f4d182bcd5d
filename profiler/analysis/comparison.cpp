// Medians and median absolute deviations by row.
#include "profiler/analysis/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

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
  return both;
}

}  // namespace trainscope::profiler
