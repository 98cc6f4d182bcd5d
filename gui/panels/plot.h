// A plot's frame: grid, ticks, labels, and where values are in it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gui/ui/ui.h"
#include "gui/views/axis.h"

namespace trainscope::gui {

struct PlotLook {
  PlotAxis x = {};
  PlotAxis y = {};
  std::string_view title = {};
  std::string_view x_label = {};
  std::string_view y_label = {};
};

class Plot {
 public:
  // Draws the frame.
  Plot(Ui& ui, const Rect& rect, const PlotLook& look);

  const Rect& inside() const { return inside_; }
  Point at(double x, double y) const;
  const PlotLook& look() const { return look_; }

  // By x; what is not finite is a gap. Of more points than pixels each pixel keeps its least and
  // greatest.
  void line(std::span<const std::pair<double, double>> points, const Stroke& stroke) const;

 private:
  Ui& ui_;
  PlotLook look_;
  Rect inside_;
};

// The numbers beside an axis's ticks, which are in order. On a linear axis each is its tick, with
// as many decimals as the others ("4.0" beside "4.5"), as plain decimals or with exponents,
// whichever is short; ticks that eight decimals do not tell apart are distances from the first.
std::vector<std::string> tick_texts(std::span<const double> ticks, AxisScale scale);
// Of bytes, with a unit each ("512.0 KiB" below "1.0 MiB"); where one decimal does not name each
// tick all have the largest unit that their distances are at least one of ("1 180 KiB", "1 200
// KiB"), or, where these are long, are distances from the first ("5.0 GiB", "+20.0 KiB").
std::vector<std::string> byte_tick_texts(std::span<const double> ticks);

// The names of the phases of a step and their colours along a time axis, which is `axis` in pixels:
// phase i from ends[i] to ends[i + 1]. Where there is no room for a name both are left out.
void draw_phase_names(Ui& ui, const Rect& axis, const std::array<float, 4>& ends);

}  // namespace trainscope::gui
