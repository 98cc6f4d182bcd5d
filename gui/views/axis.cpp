// Ticks and places on linear and logarithmic axes.
#include "gui/views/axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/numbers.h"

namespace trainscope::gui {
namespace {

double power_of(double value) { return std::log10(std::max(value, 1e-300)); }

}  // namespace

double PlotAxis::share_of(double value) const {
  if (scale == AxisScale::kLinear) return (value - low) / (high - low);
  return (power_of(value) - power_of(low)) / (power_of(high) - power_of(low));
}

double PlotAxis::value_at(double share) const {
  if (scale == AxisScale::kLinear) return low + share * (high - low);
  return std::pow(10.0, power_of(low) + share * (power_of(high) - power_of(low)));
}

PlotAxis axis_around(const std::vector<double>& values, AxisScale scale) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (scale == AxisScale::kLogarithmic && value <= 0.0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!std::isfinite(low)) return {.low = scale == AxisScale::kLinear ? 0.0 : 0.1, .scale = scale};
  if (scale == AxisScale::kLogarithmic) {
    low = std::pow(10.0, std::floor(std::log10(low)));
    high = std::pow(10.0, std::ceil(std::log10(high)));
    return {.low = low, .high = high > low ? high : low * 10.0, .scale = scale};
  }
  const double room = high > low ? 0.05 * (high - low) : std::max(std::abs(low) * 0.1, 1e-9);
  return {.low = low - room, .high = high + room, .scale = scale};
}

std::vector<double> ticks_of(const PlotAxis& axis, int count) {
  return axis.scale == AxisScale::kLogarithmic ? powers_of_ten(axis.low, axis.high, count)
                                               : round_numbers(axis.low, axis.high, count);
}

}  // namespace trainscope::gui
