// Logical pixels become the draw list's; what is outside of the clip is not drawn.
#include "gui/draw/imgui_canvas.h"

#include <imgui.h>

#include <cmath>
#include <vector>

#include "gui/draw/dashes.h"

namespace trainscope::gui {
namespace {

ImU32 packed(Color c) { return IM_COL32(c.red, c.green, c.blue, c.alpha); }

// Edges of filled rectangles are on whole pixels, so that they are sharp at any scale.
float snapped(float pixels) { return std::round(pixels); }

std::vector<ImVec2> scaled(std::span<const Point> points, float scale) {
  std::vector<ImVec2> result;
  result.reserve(points.size());
  for (const Point& p : points) result.emplace_back(p.x * scale, p.y * scale);
  return result;
}

}  // namespace

ImGuiCanvas::ImGuiCanvas(ImDrawList& list, const Fonts& fonts, const Rect& whole)
    : Canvas(whole), list_(list), fonts_(fonts), scale_(fonts.sizes().scale) {}

void ImGuiCanvas::fill(const Rect& rect, Color color, float radius) {
  if (color.alpha == 0 || !visible(rect)) return;
  const ImVec2 from(snapped(rect.x * scale_), snapped(rect.y * scale_));
  // What has any width is seen.
  const ImVec2 to(std::max(from.x + 1.0F, snapped(rect.right() * scale_)),
                  std::max(from.y + 1.0F, snapped(rect.bottom() * scale_)));
  list_.AddRectFilled(from, to, packed(color), radius * scale_);
}

void ImGuiCanvas::outline(const Rect& rect, const Stroke& stroke, float radius) {
  if (!visible(rect)) return;
  if (stroke.dashed) {
    const Point corners[] = {{rect.x, rect.y},
                             {rect.right(), rect.y},
                             {rect.right(), rect.bottom()},
                             {rect.x, rect.bottom()},
                             {rect.x, rect.y}};
    polyline(corners, stroke);
    return;
  }
  const float width = std::max(1.0F, std::round(stroke.width * scale_));
  const float half = width / 2.0F;
  list_.AddRect(
      ImVec2(snapped(rect.x * scale_) + half - 0.5F, snapped(rect.y * scale_) + half - 0.5F),
      ImVec2(snapped(rect.right() * scale_) - half + 0.5F,
             snapped(rect.bottom() * scale_) - half + 0.5F),
      packed(stroke.color), radius * scale_, 0, width);
}

void ImGuiCanvas::line(Point from, Point to, const Stroke& stroke) {
  const Point points[] = {from, to};
  if (stroke.dashed) return polyline(points, stroke);
  const float width = stroke.width * scale_;
  const bool upright = from.x == to.x || from.y == to.y;
  if (upright) {  // a rectangle is sharper
    const float left = std::min(from.x, to.x) * scale_;
    const float top = std::min(from.y, to.y) * scale_;
    const float thick = std::max(1.0F, std::round(width));
    const bool across = from.y == to.y;
    const float length = (across ? std::abs(to.x - from.x) : std::abs(to.y - from.y)) * scale_;
    const ImVec2 corner(snapped(left), snapped(top));
    list_.AddRectFilled(corner,
                        across ? ImVec2(snapped(left + length), corner.y + thick)
                               : ImVec2(corner.x + thick, snapped(top + length)),
                        packed(stroke.color));
    return;
  }
  list_.AddLine(ImVec2(from.x * scale_, from.y * scale_), ImVec2(to.x * scale_, to.y * scale_),
                packed(stroke.color), width);
}

void ImGuiCanvas::polyline(std::span<const Point> points, const Stroke& stroke) {
  if (points.size() < 2) return;
  if (stroke.dashed) {
    for (const Dash& dash : dashes(points)) {
      list_.AddLine(ImVec2(dash.from.x * scale_, dash.from.y * scale_),
                    ImVec2(dash.to.x * scale_, dash.to.y * scale_), packed(stroke.color),
                    stroke.width * scale_);
    }
    return;
  }
  const std::vector<ImVec2> line = scaled(points, scale_);
  list_.AddPolyline(line.data(), static_cast<int>(line.size()), packed(stroke.color), 0,
                    stroke.width * scale_);
}

void ImGuiCanvas::bezier(std::span<const Point, 4> points, const Stroke& stroke) {
  if (stroke.dashed) return polyline(flattened(points), stroke);
  const auto at = [&](std::size_t i) { return ImVec2(points[i].x * scale_, points[i].y * scale_); };
  list_.AddBezierCubic(at(0), at(1), at(2), at(3), packed(stroke.color), stroke.width * scale_);
}

void ImGuiCanvas::polygon(std::span<const Point> points, Color color) {
  const std::vector<ImVec2> corners = scaled(points, scale_);
  list_.AddConvexPolyFilled(corners.data(), static_cast<int>(corners.size()), packed(color));
}

void ImGuiCanvas::circle(Point center, float radius, Color color) {
  if (!visible({center.x - radius, center.y - radius, 2.0F * radius, 2.0F * radius})) return;
  list_.AddCircleFilled(ImVec2(center.x * scale_, center.y * scale_), radius * scale_,
                        packed(color));
}

void ImGuiCanvas::ring(Point center, float radius, const Stroke& stroke) {
  if (!visible({center.x - radius, center.y - radius, 2.0F * radius, 2.0F * radius})) return;
  list_.AddCircle(ImVec2(center.x * scale_, center.y * scale_), radius * scale_,
                  packed(stroke.color), 0, stroke.width * scale_);
}

void ImGuiCanvas::text(Point at, std::string_view text, Face face, Color color) {
  const FaceMetrics height = metrics(face);
  if (at.y + height.line_height <= clip().y || at.y >= clip().bottom()) return;
  if (text.empty() || at.x >= clip().right()) return;
  const std::string_view drawn = fonts_.shown(text, face, storage_);
  ImFont* font = fonts_.font(face);
  list_.AddText(font, font->FontSize, ImVec2(snapped(at.x * scale_), snapped(at.y * scale_)),
                packed(color), drawn.data(), drawn.data() + drawn.size());
}

float ImGuiCanvas::text_width(std::string_view text, Face face) const {
  return fonts_.width(text, face);
}

FaceMetrics ImGuiCanvas::metrics(Face face) const { return fonts_.metrics(face); }

void ImGuiCanvas::begin_clip(const Rect& clip) {
  list_.PushClipRect(ImVec2(snapped(clip.x * scale_), snapped(clip.y * scale_)),
                     ImVec2(snapped(clip.right() * scale_), snapped(clip.bottom() * scale_)));
}

void ImGuiCanvas::end_clip() { list_.PopClipRect(); }

}  // namespace trainscope::gui
