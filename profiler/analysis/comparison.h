// Two profiles beside each other: what each row takes in a step, and whether the difference is more
// than runs of one program differ by anyway (docs/profiling.md#compare).
#pragma once

#include <string>
#include <vector>

#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/machine_difference.h"
#include "profiler/analysis/spread.h"

namespace trainscope::profiler {

struct ComparedRow {
  std::string name;
  bool is_call = true;
  Spread a;  // nanoseconds of a step; of a row that a profile lacks all is 0
  Spread b;
  // Of several runs a side, made in turn: the logarithms of what the i-th run of B takes for the
  // i-th of A; of rows without what the rows of that pair have in common, but with what all pairs
  // have. Empty where the sides are not in pairs.
  std::vector<double> pairs = {};

  double difference_ns() const { return b.median - a.median; }
  bool is_in_both() const { return a.low > 0.0 && b.low > 0.0; }
  // Of undisturbed steps; 1 where one of them has none. Where both sides are one run with blocks of
  // steps, the median of the blocks' ratios: steps that take longer and longer, as numbers grow or
  // become denormal, do so in both. Of pairs of runs the median of the averages of any two of them
  // (Hodges and Lehmann 1963), which a few wild ones do not move. Runs of a pair were made in turn:
  // their steps tell of the same moments one by one, so that blocks of them may be as short.
  double ratio() const;
  // How far apart runs of one program are expected, in the natural logarithm of the ratio, one
  // standard deviation: `between` of any two runs, and how far apart the blocks' ratios are, or how
  // much either moved in its course. Of several runs a side `between` is over the root of their
  // number. Of pairs it is the standard error of their middle, with 1.4826 median absolute
  // deviations as the pairs' own, of which `between` has told kPairsBefore times before.
  double error(double between) const;
  // The ratio's logarithm in errors of kBetweenRuns: beyond kSignificant it is not chance. Of a row
  // that one of them lacks without bounds.
  double significance() const;
};

struct Comparison {
  ComparedRow step;
  std::vector<ComparedRow> rows;  // by name as the first profile has them, then those of b alone
  // What the rows of calls have in common: another clock rate, other load. The median of their
  // ratios and of 1, which stands for "nothing changed" and decides where rows are few; of rows
  // that take kLeastShare of the step at least. Where the machine was measured and alike, what its
  // clock says stands for "nothing changed", kClockRows times.
  double common_ratio = 1.0;
  // How far rows are from what they have in common, in the logarithm of their ratios: a standard
  // deviation. Most rows of two runs are not changed by anybody, so this is what the two tell of
  // themselves (1.4826 median absolute deviations); but few rows tell it badly, so kBetweenRuns
  // counts as if kRowsBefore more had told it, and is the least. Where the machine was measured and
  // alike it is kBetweenRuns: what moves rows apart is known not to have happened.
  double between = 0.0;
  MachineDifference machine = {};  // where sides are in pairs, the median of the pairs'
  std::size_t pairs = 0;           // of runs; 0: the sides are not in pairs
  // Of a row, how much its ratio is beyond what all have in common: 0.1 is 10 % slower than they.
  double change(const ComparedRow& row) const { return row.ratio() / common_ratio - 1.0; }
  // Whether the row's calls changed by themselves: beyond what rows have in common by kSignificant
  // errors, on machines that are alike.
  bool is_changed(const ComparedRow& row) const;
  // Whether B's steps take longer by more than this share of them, beyond what the machine
  // explains and what runs of one program differ by.
  bool is_slower(double share) const;
};

// Rows of both are by the same, and of the same filter. Sides of as many runs each, at least
// kLeastPairs, are compared pair by pair: a machine that changes between them does so for both.
Comparison compare_profiles(const Breakdown& a, const Breakdown& b);

inline constexpr double kSignificant = 4.0;
// What a row of two runs of one program differs by for reasons that no step of either shows: which
// pages it was given, where code and buffers begin. One standard deviation.
inline constexpr double kBetweenRuns = 0.0125;
inline constexpr double kRowsBefore = 15.0;
inline constexpr std::size_t kClockRows = 3;
inline constexpr std::size_t kLeastPairs = 6;
inline constexpr double kPairsBefore = 8.0;
// In the standard error of a mean, that of the median of averages, of a normal distribution.
inline constexpr double kAveragesError = 1.023;
// In the standard error of the blocks' median ratio, were they independent: a machine changes in
// the course of seconds, so that neighbours tell much the same.
inline constexpr double kBlocksAlike = 2.0;
// Rows of the step that are compared. Calls of a few microseconds differ by a third from process
// to process.
inline constexpr double kLeastShare = 0.01;
inline constexpr double kLeastNs = 10e3;

}  // namespace trainscope::profiler
