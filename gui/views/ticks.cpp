// Units of time and digits behind the point.
#include "gui/views/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace trainscope::gui {

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
