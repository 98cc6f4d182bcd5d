// Rows of two profiles by name, what their ratios have in common, and which of them stand out.
#include "profiler/analysis/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
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

// The median of the averages of any two values, each with itself among them. Not of none.
double middle_of(const std::vector<double>& values) {
  std::vector<double> averages;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i; j < values.size(); ++j)
      averages.push_back((values[i] + values[j]) / 2.0);
  }
  return median(std::move(averages));
}

// Of the logarithms of pairs. Deviations of few values are too small on average, by about this
// factor (Croux and Rousseeuw 1992).
double deviation_of_pairs(const std::vector<double>& pairs) {
  const auto count = static_cast<double>(pairs.size());
  return count / (count - 0.8) * kMedianDeviations * median_deviation(pairs, middle_of(pairs));
}

}  // namespace

double ComparedRow::ratio() const {
  if (!is_in_both()) return 1.0;
  if (!pairs.empty()) return std::exp(middle_of(pairs));
  const std::vector<double> blocks = block_ratios(a, b);
  return blocks.empty() ? b.low / a.low : std::exp(median(blocks));
}

double ComparedRow::error(double between) const {
  if (!pairs.empty()) {
    const auto count = static_cast<double>(pairs.size());
    const double own = deviation_of_pairs(pairs);
    const double squares = kPairsBefore * between * between + count * own * own;
    return kAveragesError * std::sqrt(squares / (kPairsBefore + count) / count);
  }
  std::vector<double> blocks = block_ratios(a, b);
  if (blocks.empty()) {
    const auto runs = static_cast<double>(std::max<std::size_t>(1, std::min(a.runs, b.runs)));
    return std::hypot(a.drift, b.drift, between / std::sqrt(runs));
  }
  const double middle = median(blocks);
  const double root = std::sqrt(static_cast<double>(blocks.size()));
  const double deviation = kMedianDeviations * median_deviation(std::move(blocks), middle);
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
  const double spread = kMedianDeviations * median_deviation(std::move(logarithms), common);
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

namespace {

// What all steps, or a row of them, take: of a side or a run of it.
using SpreadOf = Spread (*)(const std::vector<double>& step_ns, const Breakdown& of);

// Of a side as a whole, with the steps of all its runs.
Spread spread_of_side(const std::vector<double>& step_ns, const Breakdown& of) {
  return spread_of(step_ns, of.run_steps);
}
// Of one run of a pair, whose other run has each step next to its own.
Spread spread_of_turns(const std::vector<double>& step_ns, const Breakdown& /*of*/) {
  return spread_of(step_ns, std::size_t{1});
}

Comparison compare_sides(const Breakdown& a, const Breakdown& b, SpreadOf spread) {
  Comparison both{.step = {.name = "step",
                           .is_call = false,
                           .a = spread(a.step_ns, a),
                           .b = spread(b.step_ns, b)},
                  .rows = {},
                  .machine = machine_difference(a.machines, b.machines)};
  std::unordered_map<std::string, std::size_t> known;
  for (const BreakdownRow& row : a.rows) {
    known.emplace(row.name, both.rows.size());
    both.rows.push_back(
        {.name = row.name, .is_call = row.is_call, .a = spread(row.step_ns, a), .b = {}});
  }
  for (const BreakdownRow& row : b.rows) {
    const auto found = known.find(row.name);
    if (found != known.end()) {
      both.rows[found->second].b = spread(row.step_ns, b);
    } else {
      both.rows.push_back(
          {.name = row.name, .is_call = row.is_call, .a = {}, .b = spread(row.step_ns, b)});
    }
  }
  find_common(both);
  return both;
}

// One of several runs of a side, whose steps begin behind those of the runs before it.
Breakdown run_of(const Breakdown& side, std::size_t run) {
  const auto first = side.run_steps.begin();
  const std::size_t begin =
      std::accumulate(first, first + static_cast<std::ptrdiff_t>(run), std::size_t{0});
  const auto steps_of = [&](const std::vector<double>& all) {
    const std::span<const double> own = std::span(all).subspan(begin, side.run_steps[run]);
    return std::vector<double>(own.begin(), own.end());
  };
  Breakdown one{.steps = static_cast<std::int64_t>(side.run_steps[run]),
                .step_ns = steps_of(side.step_ns)};
  if (!side.machines.empty()) one.machines = {side.machines[run]};
  for (const BreakdownRow& row : side.rows) {
    one.rows.push_back(
        {.name = row.name, .is_call = row.is_call, .step_ns = steps_of(row.step_ns)});
  }
  return one;
}

// What most of the pairs measured of the machine.
MachineDifference machine_of_most(const std::vector<Comparison>& pairs) {
  MachineDifference most{.is_measured = true};
  for (double MachineDifference::*factor : {&MachineDifference::clock, &MachineDifference::exchange,
                                            &MachineDifference::usual_exchange}) {
    std::vector<double> factors;
    for (const Comparison& pair : pairs) factors.push_back(pair.machine.*factor);
    most.*factor = median(std::move(factors));
  }
  for (const Comparison& pair : pairs) most.is_measured &= pair.machine.is_measured;
  return most;
}

// What the pairs say, in place of what the sides do as a whole.
void compare_pairs(Comparison& both, const Breakdown& a, const Breakdown& b) {
  std::vector<Comparison> pairs;
  std::vector<double> common;
  for (std::size_t i = 0; i < a.run_steps.size(); ++i) {
    pairs.push_back(compare_sides(run_of(a, i), run_of(b, i), spread_of_turns));
    common.push_back(std::log(pairs.back().common_ratio));
    both.step.pairs.push_back(std::log(pairs.back().step.ratio()));
  }
  both.pairs = pairs.size();
  both.machine = machine_of_most(pairs);
  both.common_ratio = std::exp(middle_of(common));
  std::vector<double> deviations;
  for (std::size_t r = 0; r < both.rows.size(); ++r) {
    ComparedRow& row = both.rows[r];
    const auto has_it = [r](const Comparison& pair) { return pair.rows[r].is_in_both(); };
    if (!std::ranges::all_of(pairs, has_it)) continue;
    for (const Comparison& pair : pairs) {
      row.pairs.push_back(std::log(pair.rows[r].ratio() / pair.common_ratio * both.common_ratio));
    }
    if (!is_large(row, both.step)) continue;
    deviations.push_back(deviation_of_pairs(row.pairs));
  }
  both.between = std::max(kBetweenRuns, median(std::move(deviations)));
}

}  // namespace

Comparison compare_profiles(const Breakdown& a, const Breakdown& b) {
  Comparison both = compare_sides(a, b, spread_of_side);
  if (a.run_steps.size() >= kLeastPairs && a.run_steps.size() == b.run_steps.size()) {
    compare_pairs(both, a, b);
  }
  return both;
}

}  // namespace trainscope::profiler
