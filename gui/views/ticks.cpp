// The smallest round step that gives no more ticks than asked for.
#include "gui/views/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trainscope::gui {
namespace {

std::vector<double> multiples(double low, double high, double step) {
  std::vector<double> ticks;
  if (!(step > 0.0) || !(high > low)) return ticks;
  for (double i = std::ceil(low / step); i * step <= high; i += 1.0) ticks.push_back(i * step);
  return ticks;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int most) {
  const double least = (high - low) / std::max(1, most);
  if (!(least > 0.0)) return {};
  const double decade = std::pow(10.0, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * decade >= least) return multiples(low, high, step * decade);
  }
  return multiples(low, high, 10.0 * decade);
}

std::vector<double> byte_ticks(double low, double high, int most) {
  const double least = (high - low) / std::max(1, most);
  if (!(least > 0.0)) return {};
  return multiples(low, high, std::exp2(std::ceil(std::log2(least))));
}

std::string tick_time(double ns, double step) {
  struct Scale {
    double ns;
    const char* unit;
  };
  constexpr Scale kScales[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1.0, "ns"}};
  const double size = std::max(std::abs(ns), step);
  const Scale* scale = std::find_if(std::begin(kScales), std::end(kScales) - 1,
                                    [size](const Scale& each) { return size >= each.ns; });
  const double digits = std::ceil(-std::log10(step / scale->ns) - 1e-9);
  return fmt::format("{:.{}f} {}", ns / scale->ns, std::clamp(static_cast<int>(digits), 0, 9),
                     scale->unit);
}

}  // namespace trainscope::gui
