// Ticks and places on linear and logarithmic axes.
#include "gui/views/axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainscope::gui {
namespace {

double power_of(double value) { return std::log10(std::max(value, 1e-300)); }

}  // namespace

double PlotAxis::share_of(double value) const {
  if (scale == AxisScale::kLinear) return (value - low) / (high - low);
  return (power_of(value) - power_of(low)) / (power_of(high) - power_of(low));
}

double PlotAxis::value_at(double share) const {
  if (scale == AxisScale::kLinear) return low + (high - low) * share;
  return std::pow(10.0, power_of(low) + (power_of(high) - power_of(low)) * share);
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
  std::vector<double> ticks;
  if (!(axis.high > axis.low) || count < 1) return ticks;
  if (axis.scale == AxisScale::kLogarithmic) {
    const double first = std::ceil(power_of(axis.low) - 1e-9);
    const double last = std::floor(power_of(axis.high) + 1e-9);
    const double step = std::max(1.0, std::ceil((last - first + 1.0) / count));
    for (double p = first; p <= last; p += step) ticks.push_back(std::pow(10.0, p));
    return ticks;
  }
  const double rough = (axis.high - axis.low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = (lead <= 1.0 ? 1.0 : lead <= 2.0 ? 2.0 : lead <= 5.0 ? 5.0 : 10.0) * power;
  for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + step * 1e-9;
       i += 1.0) {
    ticks.push_back(i * step);
  }
  return ticks;
}

}  // namespace trainscope::gui
