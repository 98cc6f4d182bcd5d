// Walks along lines.
#include "gui/draw/dashes.h"

#include <cmath>

namespace trainscope::gui {

std::vector<Dash> dashes(std::span<const Point> points) {
  std::vector<Dash> result;
  bool on = true;
  float left = kDashOn;  // of the dash or the gap that the line is in
  for (std::size_t i = 1; i < points.size(); ++i) {
    Point at = points[i - 1];
    const Point end = points[i];
    float length = std::hypot(end.x - at.x, end.y - at.y);
    while (length > 0.0F && result.size() < kMostDashes) {
      const float piece = std::min(left, length);
      const float share = piece / length;
      const Point next{at.x + (end.x - at.x) * share, at.y + (end.y - at.y) * share};
      if (on) result.push_back({at, next});
      at = next;
      length -= piece;
      left -= piece;
      if (left > 0.0F) continue;
      on = !on;
      left = on ? kDashOn : kDashOff;
    }
  }
  return result;
}

std::vector<Point> flattened(std::span<const Point, 4> points) {
  constexpr int kPieces = 24;
  std::vector<Point> line;
  line.reserve(kPieces + 1);
  for (int i = 0; i <= kPieces; ++i) {
    const float t = static_cast<float>(i) / kPieces;
    const float s = 1.0F - t;
    const float weights[] = {s * s * s, 3.0F * s * s * t, 3.0F * s * t * t, t * t * t};
    Point sum;
    for (std::size_t k = 0; k < 4; ++k) {
      sum.x += weights[k] * points[k].x;
      sum.y += weights[k] * points[k].y;
    }
    line.push_back(sum);
  }
  return line;
}

}  // namespace trainscope::gui
