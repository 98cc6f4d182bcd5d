// Quantiles of a run's measurements, and ratios of runs'.
#include "profiler/analysis/machine_difference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/core/numbers.h"
#include "profiler/analysis/spread.h"

namespace trainscope::profiler {
namespace {

double best_of(std::vector<double> speeds) {
  if (speeds.empty()) return 0.0;
  std::ranges::sort(speeds, std::ranges::greater());
  const auto last = static_cast<double>(speeds.size() - 1);
  return speeds[static_cast<std::size_t>(low_share(speeds.size()) * last)];
}

double mean_of(std::span<const RunMachine> runs, double RunMachine::*speed) {
  double logarithms = 0.0;
  for (const RunMachine& run : runs) {
    if (!(run.*speed > 0.0)) return 0.0;
    logarithms += std::log(run.*speed);
  }
  return runs.empty() ? 0.0 : std::exp(logarithms / static_cast<double>(runs.size()));
}

}  // namespace

RunMachine machine_of(const EventView& events) {
  std::vector<double> clock;
  std::vector<double> exchange;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk.kind[i] == EventKind::kClockSpeed) clock.push_back(chunk.event(i).number());
      if (chunk.kind[i] == EventKind::kExchangeSpeed) exchange.push_back(chunk.event(i).number());
    }
  }
  const double usual = median(exchange);
  return {.clock = best_of(std::move(clock)),
          .exchange = best_of(std::move(exchange)),
          .usual_exchange = usual};
}

MachineDifference machine_difference(std::span<const RunMachine> a, std::span<const RunMachine> b) {
  MachineDifference both{.is_measured = true};
  const auto slower = [&](double RunMachine::*speed) {
    const double first = mean_of(a, speed);
    const double second = mean_of(b, speed);
    if (first > 0.0 && second > 0.0) return first / second;
    both.is_measured = false;
    return 1.0;
  };
  both.clock = slower(&RunMachine::clock);
  both.exchange = slower(&RunMachine::exchange);
  both.usual_exchange = slower(&RunMachine::usual_exchange);
  return both;
}

bool MachineDifference::is_alike() const {
  return std::max({clock, exchange, usual_exchange}) <= kAlikeMachines &&
         std::min({clock, exchange, usual_exchange}) >= 1.0 / kAlikeMachines;
}

double MachineDifference::most() const {
  return is_alike() ? 1.0 : std::max({1.0, clock, exchange, usual_exchange});
}

}  // namespace trainscope::profiler
