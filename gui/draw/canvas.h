// What panels draw on: shapes and text in logical pixels, one call an item. The window, pictures
// and SVG files are canvases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gui/draw/color.h"
#include "gui/draw/geometry.h"

namespace trainscope::gui {

// The fonts in use: kText, kBold, kSmall and kTitle are proportional, the others of fixed width.
enum class Face : std::uint8_t { kText, kBold, kSmall, kTitle, kNumber, kSmallNumber };
inline constexpr std::size_t kFaces = 6;

struct FaceMetrics {
  float line_height = 0.0F;  // from the top of a line to its bottom
  float ascent = 0.0F;       // from its top to the baseline
};

struct Stroke {
  Color color = {};
  float width = 1.0F;
  bool dashed = false;
};

class Canvas {
 public:
  virtual ~Canvas() = default;

  virtual void fill(const Rect& rect, Color color, float radius = 0.0F) = 0;
  // Inside of the rectangle's edge.
  virtual void outline(const Rect& rect, const Stroke& stroke, float radius = 0.0F) = 0;
  virtual void line(Point from, Point to, const Stroke& stroke) = 0;
  virtual void polyline(std::span<const Point> points, const Stroke& stroke) = 0;
  // A cubic curve from the first to the last of four points.
  virtual void bezier(std::span<const Point, 4> points, const Stroke& stroke) = 0;
  // A convex polygon.
  virtual void polygon(std::span<const Point> points, Color color) = 0;
  virtual void circle(Point center, float radius, Color color) = 0;
  virtual void ring(Point center, float radius, const Stroke& stroke) = 0;
  // `at` is the top left of the line. The text is UTF-8.
  virtual void text(Point at, std::string_view text, Face face, Color color) = 0;
  // Clips are within each other; as many pops as pushes.
  void push_clip(const Rect& rect);
  void pop_clip();
  Rect clip() const { return clips_.back(); }
  bool visible(const Rect& rect) const { return !clip().intersected(rect).empty(); }

  virtual float text_width(std::string_view text, Face face) const = 0;
  virtual FaceMetrics metrics(Face face) const = 0;

 protected:
  explicit Canvas(const Rect& whole) : clips_{whole} {}
  virtual void begin_clip(const Rect& clip) = 0;
  virtual void end_clip() = 0;

 private:
  std::vector<Rect> clips_;  // the innermost last
};

}  // namespace trainscope::gui
