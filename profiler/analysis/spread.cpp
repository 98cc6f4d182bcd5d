// Medians, low quantiles, and how these move from block to block.
#include "profiler/analysis/spread.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/core/numbers.h"

namespace trainscope::profiler {
namespace {

// Between the two values that the quantile lies between, in proportion. `values` is not empty.
double low_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double place = low_share(sorted.size()) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

std::vector<double> lows_of(std::span<const double> values, std::size_t blocks) {
  std::vector<double> lows;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t begin = i * values.size() / blocks;
    const std::size_t end = (i + 1) * values.size() / blocks;
    lows.push_back(low_of(values.subspan(begin, end - begin)));
  }
  return lows;
}

double drift_of(const std::vector<double>& lows) {
  const double middle = median(lows);
  return middle > 0.0 ? kMedianDeviations * median_deviation(lows, middle) / middle : 0.0;
}

}  // namespace

double low_share(std::size_t steps) {
  return std::clamp(kLowSteps / static_cast<double>(steps), kLeastLowShare, kLowShare);
}

Spread spread_of(std::span<const double> step_ns, std::size_t least_block_steps) {
  if (step_ns.empty()) return {};
  const std::vector<double> all(step_ns.begin(), step_ns.end());
  Spread spread{.median = median(all), .count = all.size(), .low = low_of(all), .runs = 1};
  spread.deviation = median_deviation(all, spread.median);
  const std::size_t blocks = std::min(kBlocks, all.size() / least_block_steps);
  if (blocks >= kLeastBlocks) {
    std::vector<double> lows = lows_of(all, blocks);
    spread.drift = drift_of(lows);
    if (*std::ranges::min_element(lows) > 0.0) {
      spread.block_lows = std::move(lows);
    }
  } else if (spread.median > 0.0) {
    spread.drift = kMedianError * kMedianDeviations * spread.deviation / spread.median /
                   std::sqrt(static_cast<double>(all.size()));
  }
  return spread;
}

Spread spread_of(std::span<const double> step_ns, std::span<const std::size_t> run_steps) {
  Spread spread = spread_of(step_ns);
  if (run_steps.size() < 2) return spread;
  spread.block_lows.clear();  // they would be of several runs
  if (spread.low <= 0.0) return spread;
  std::vector<double> logarithms;
  double squares = 0.0;  // of the runs' drifts
  std::size_t begin = 0;
  for (const std::size_t steps : run_steps) {
    const Spread run = spread_of(step_ns.subspan(begin, steps));
    begin += steps;
    if (run.low <= 0.0) return spread;  // not a row of every step
    logarithms.push_back(std::log(run.low));
    squares += run.drift * run.drift;
  }
  const auto runs = static_cast<double>(logarithms.size());
  const double mean = std::accumulate(logarithms.begin(), logarithms.end(), 0.0) / runs;
  double apart = 0.0;
  for (const double value : logarithms) apart += (value - mean) * (value - mean);
  spread.low = std::exp(mean);
  spread.drift = std::sqrt((squares / runs + apart / (runs - 1.0)) / runs);
  spread.runs = logarithms.size();
  return spread;
}

}  // namespace trainscope::profiler
