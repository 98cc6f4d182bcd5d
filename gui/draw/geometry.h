// Points and rectangles in logical pixels: y grows downwards.
#pragma once

#include <algorithm>

namespace trainscope::gui {

struct Point {
  float x = 0.0F;
  float y = 0.0F;

  Point operator+(Point other) const { return {x + other.x, y + other.y}; }
  Point operator-(Point other) const { return {x - other.x, y - other.y}; }
  bool operator==(const Point&) const = default;
};

struct Extent {
  float width = 0.0F;
  float height = 0.0F;
  bool operator==(const Extent&) const = default;
};

struct Rect {
  float x = 0.0F;
  float y = 0.0F;
  float width = 0.0F;
  float height = 0.0F;

  float right() const { return x + width; }
  float bottom() const { return y + height; }
  Point origin() const { return {x, y}; }
  Point center() const { return {x + width / 2.0F, y + height / 2.0F}; }
  bool empty() const { return width <= 0.0F || height <= 0.0F; }
  bool contains(Point p) const { return p.x >= x && p.x < right() && p.y >= y && p.y < bottom(); }

  // Smaller on every side; never less than nothing.
  Rect inset(float horizontal, float vertical) const {
    return {x + horizontal, y + vertical, std::max(0.0F, width - 2.0F * horizontal),
            std::max(0.0F, height - 2.0F * vertical)};
  }
  Rect inset(float all) const { return inset(all, all); }
  Rect intersected(const Rect& other) const {
    const float left = std::max(x, other.x);
    const float top = std::max(y, other.y);
    return {left, top, std::max(0.0F, std::min(right(), other.right()) - left),
            std::max(0.0F, std::min(bottom(), other.bottom()) - top)};
  }
  bool operator==(const Rect&) const = default;
};

// Each cuts a piece off one side of what is left, and never more than there is.
inline Rect take_top(Rect& rest, float height) {
  const float taken = std::clamp(height, 0.0F, std::max(0.0F, rest.height));
  const Rect piece{rest.x, rest.y, rest.width, taken};
  rest = {rest.x, rest.y + taken, rest.width, rest.height - taken};
  return piece;
}
inline Rect take_bottom(Rect& rest, float height) {
  const float taken = std::clamp(height, 0.0F, std::max(0.0F, rest.height));
  rest.height -= taken;
  return {rest.x, rest.y + rest.height, rest.width, taken};
}
inline Rect take_left(Rect& rest, float width) {
  const float taken = std::clamp(width, 0.0F, std::max(0.0F, rest.width));
  const Rect piece{rest.x, rest.y, taken, rest.height};
  rest = {rest.x + taken, rest.y, rest.width - taken, rest.height};
  return piece;
}
inline Rect take_right(Rect& rest, float width) {
  const float taken = std::clamp(width, 0.0F, std::max(0.0F, rest.width));
  rest.width -= taken;
  return {rest.x + rest.width, rest.y, taken, rest.height};
}

}  // namespace trainscope::gui
