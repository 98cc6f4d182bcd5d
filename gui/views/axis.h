// Axes of plots: where ticks are, and where a value lies between two ends.
#pragma once

#include <vector>

namespace trainscope::gui {

enum class AxisScale { kLinear, kLogarithmic };

struct PlotAxis {
  double low = 0.0;
  double high = 1.0;
  AxisScale scale = AxisScale::kLinear;

  // 0 at the low end, 1 at the high one.
  double share_of(double value) const;
  double value_at(double share) const;  // and back
};

// Around finite values with some room: [low, high] of them, never empty. Logarithmic ones are of
// those above 0, and end at powers of ten.
PlotAxis axis_around(const std::vector<double>& values, AxisScale scale = AxisScale::kLinear);

// Linear: round numbers, about `count`; logarithmic: powers of ten, at most so many.
std::vector<double> ticks_of(const PlotAxis& axis, int count);

}  // namespace trainscope::gui
