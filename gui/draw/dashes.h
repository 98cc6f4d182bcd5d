// Dashed lines and curves as straight pieces, for canvases that draw no others.
#pragma once

#include <span>
#include <vector>

#include "gui/draw/geometry.h"

namespace trainscope::gui {

inline constexpr float kDashOn = 5.0F;  // logical pixels
inline constexpr float kDashOff = 3.0F;

struct Dash {
  Point from;
  Point to;
};

// What of the line through the points is drawn; at most kMostDashes.
inline constexpr std::size_t kMostDashes = 2000;
std::vector<Dash> dashes(std::span<const Point> points);

// A cubic curve as a line through points of it.
std::vector<Point> flattened(std::span<const Point, 4> points);

}  // namespace trainscope::gui
