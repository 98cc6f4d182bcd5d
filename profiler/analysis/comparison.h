// Two profiles beside each other: what each row takes in a step, and whether the difference is more
// than steps differ anyway.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profiler/analysis/breakdown.h"

namespace trainscope::profiler {

// What steps have in the middle, and how far from it: half of them are nearer than the median
// absolute deviation.
struct Spread {
  double median = 0.0;
  double deviation = 0.0;
  std::size_t count = 0;

  // Of the median, were the steps normal: 1.253 standard deviations, each 1.4826 median absolute
  // ones, by the square root of their number.
  double standard_error() const;
};
Spread spread_of(std::span<const double> values);

struct ComparedRow {
  std::string name;
  bool is_call = true;
  Spread a;  // nanoseconds of a step; of a row that a profile lacks all is 0
  Spread b;

  double difference_ns() const { return b.median - a.median; }
  // In standard errors of the difference: beyond 4 it is no chance of these steps.
  double significance() const;
  double ratio() const { return a.median > 0.0 ? b.median / a.median : 1.0; }
  double ratio_error() const;  // standard error of the ratio
};

struct Comparison {
  ComparedRow step;
  std::vector<ComparedRow> rows;  // by name as the first profile has them, then those of b alone
  // What the rows of calls have in common, the median of their ratios: another clock rate, other
  // load. Of rows that take a hundredth of the step at least.
  double common_ratio = 1.0;

  // Of a row, how much its ratio is beyond what all have in common: 0.1 is 10 % slower than they.
  double change(const ComparedRow& row) const { return row.ratio() / common_ratio - 1.0; }
  // Whether the row's calls changed by themselves: by a twentieth at least, and by more than its
  // steps differ anyway. Runs differ from each other by less than that, row by row.
  bool is_changed(const ComparedRow& row) const;
};

// Rows of both are by the same, and of the same filter.
Comparison compare_profiles(const Breakdown& a, const Breakdown& b);

inline constexpr double kSignificant = 4.0;
inline constexpr double kLeastChange = 0.05;
inline constexpr double kLeastShare = 0.01;  // of the step

}  // namespace trainscope::profiler
