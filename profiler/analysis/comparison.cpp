// Rows of two profiles by name, what their ratios have in common, and which of them stand out.
#include "profiler/analysis/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "engine/core/numbers.h"

namespace trainscope::profiler {

namespace {

// The logarithms of the blocks' ratios; empty where either side has no blocks.
std::vector<double> block_ratios(const Spread& a, const Spread& b) {
  std::vector<double> ratios;
  if (a.block_lows.size() != b.block_lows.size()) return ratios;
  for (std::size_t i = 0; i < a.block_lows.size(); ++i) {
    ratios.push_back(std::log(b.block_lows[i] / a.block_lows[i]));
  }
  return ratios;
}

}  // namespace

double ComparedRow::ratio() const {
  if (!is_in_both()) return 1.0;
  const std::vector<double> blocks = block_ratios(a, b);
  return blocks.empty() ? b.low / a.low : std::exp(median(blocks));
}

double ComparedRow::error(double between) const {
  std::vector<double> blocks = block_ratios(a, b);
  if (blocks.empty()) {
    const auto runs = static_cast<double>(std::max<std::size_t>(1, std::min(a.runs, b.runs)));
    return std::hypot(a.drift, b.drift, between / std::sqrt(runs));
  }
  const double middle = median(blocks);
  const double root = std::sqrt(static_cast<double>(blocks.size()));
  for (double& ratio : blocks) ratio = std::abs(ratio - middle);
  const double deviation = kMedianDeviations * median(std::move(blocks));
  return std::hypot(kBlocksAlike * kMedianError * deviation / root, between);
}

double ComparedRow::significance() const {
  if (a.low == b.low) return 0.0;
  if (!is_in_both()) return std::copysign(std::numeric_limits<double>::max(), b.low - a.low);
  return std::log(ratio()) / error(kBetweenRuns);
}

namespace {

bool is_large(const ComparedRow& row, const ComparedRow& step) {
  const double low = std::max(row.a.low, row.b.low);
  return row.is_call && low >= kLeastShare * step.a.low && low >= kLeastNs;
}

void find_common(Comparison& both) {
  std::vector<double> logarithms;
  for (const ComparedRow& row : both.rows) {
    if (row.is_in_both() && is_large(row, both.step)) logarithms.push_back(std::log(row.ratio()));
  }
  const bool is_told = both.machine.is_measured && both.machine.is_alike();
  std::vector<double> with_unchanged = logarithms;
  with_unchanged.insert(with_unchanged.end(), is_told ? kClockRows : 1,
                        is_told ? std::log(both.machine.clock) : 0.0);
  const double common = median(std::move(with_unchanged));
  both.common_ratio = std::exp(common);
  both.between = kBetweenRuns;
  if (is_told) return;
  const auto rows = static_cast<double>(logarithms.size());
  for (double& value : logarithms) value = std::abs(value - common);
  const double spread = kMedianDeviations * median(std::move(logarithms));
  const double squares = kRowsBefore * kBetweenRuns * kBetweenRuns + rows * spread * spread;
  both.between = std::max(kBetweenRuns, std::sqrt(squares / (kRowsBefore + rows)));
}

}  // namespace

bool Comparison::is_changed(const ComparedRow& row) const {
  if (!is_large(row, step)) return false;
  if (!machine.is_alike()) return false;
  if (!row.is_in_both()) return true;
  return std::abs(std::log(row.ratio() / common_ratio)) > kSignificant * row.error(between);
}

bool Comparison::is_slower(double share) const {
  const double explained = machine.most();
  return step.ratio() > explained * (1.0 + share) &&
         std::log(step.ratio() / explained) > kSignificant * step.error(kBetweenRuns);
}

Comparison compare_profiles(const Breakdown& a, const Breakdown& b) {
  Comparison both{.step = {.name = "step",
                           .is_call = false,
                           .a = spread_of(a.step_ns, a.run_steps),
                           .b = spread_of(b.step_ns, b.run_steps)},
                  .rows = {},
                  .machine = machine_difference(a.machines, b.machines)};
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
