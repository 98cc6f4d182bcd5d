// Writes elements as they are drawn.
#include "gui/draw/svg_writer.h"

#include <fmt/format.h>

#include <iterator>

#include "engine/core/markup.h"

namespace trainscope::gui {
namespace {

// At most two digits behind the point.
std::string number(float value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string fill_of(Color color) {
  std::string text = fmt::format(R"( fill="{}")", hex_of(color));
  if (color.alpha != 255) text += fmt::format(R"( fill-opacity="{:.3f}")", color.alpha / 255.0);
  return text;
}

std::string stroke_of(const Stroke& stroke) {
  std::string text = fmt::format(R"( fill="none" stroke="{}" stroke-width="{}")",
                                 hex_of(stroke.color), number(stroke.width));
  if (stroke.color.alpha != 255) {
    text += fmt::format(R"( stroke-opacity="{:.3f}")", stroke.color.alpha / 255.0);
  }
  if (stroke.dashed) text += R"( stroke-dasharray="5 3")";
  return text;
}

std::string points_of(std::span<const Point> points) {
  std::string text;
  for (const Point& p : points) {
    text += fmt::format("{}{},{}", text.empty() ? "" : " ", number(p.x), number(p.y));
  }
  return text;
}

std::string box_of(const Rect& rect) {
  return fmt::format(R"( x="{}" y="{}" width="{}" height="{}")", number(rect.x), number(rect.y),
                     number(rect.width), number(rect.height));
}

std::string radius_of(float radius) {
  return radius <= 0.0F ? "" : fmt::format(R"( rx="{}")", number(radius));
}

std::string_view family_of(Face face) {
  const bool fixed = face == Face::kNumber || face == Face::kSmallNumber;
  return fixed ? "DejaVu Sans Mono, monospace" : "DejaVu Sans, sans-serif";
}

}  // namespace

SvgWriter::SvgWriter(const Fonts& fonts, Extent size)
    : Canvas({0.0F, 0.0F, size.width, size.height}), fonts_(fonts), size_(size) {}

std::string SvgWriter::file() const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n<defs>\n{2}</defs>\n{3}</svg>\n",
      number(size_.width), number(size_.height), definitions_, body_);
}

void SvgWriter::fill(const Rect& rect, Color color, float radius) {
  if (color.alpha == 0 || !visible(rect)) return;
  body_ += fmt::format("<rect{}{}{}/>\n", box_of(rect), radius_of(radius), fill_of(color));
}

void SvgWriter::outline(const Rect& rect, const Stroke& stroke, float radius) {
  if (!visible(rect)) return;
  body_ += fmt::format("<rect{}{}{}/>\n", box_of(rect.inset(stroke.width / 2.0F)),
                       radius_of(radius), stroke_of(stroke));
}

void SvgWriter::line(Point from, Point to, const Stroke& stroke) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", number(from.x),
                       number(from.y), number(to.x), number(to.y), stroke_of(stroke));
}

void SvgWriter::polyline(std::span<const Point> points, const Stroke& stroke) {
  if (points.size() < 2) return;
  body_ += fmt::format("<polyline points=\"{}\"{}/>\n", points_of(points), stroke_of(stroke));
}

void SvgWriter::bezier(std::span<const Point, 4> points, const Stroke& stroke) {
  body_ += fmt::format("<path d=\"M{},{} C{}\"{}/>\n", number(points[0].x), number(points[0].y),
                       points_of(points.subspan<1>()), stroke_of(stroke));
}

void SvgWriter::polygon(std::span<const Point> points, Color color) {
  body_ += fmt::format("<polygon points=\"{}\"{}/>\n", points_of(points), fill_of(color));
}

void SvgWriter::circle(Point center, float radius, Color color) {
  if (!visible({center.x - radius, center.y - radius, 2.0F * radius, 2.0F * radius})) return;
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", number(center.x),
                       number(center.y), number(radius), fill_of(color));
}

void SvgWriter::ring(Point center, float radius, const Stroke& stroke) {
  if (!visible({center.x - radius, center.y - radius, 2.0F * radius, 2.0F * radius})) return;
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", number(center.x),
                       number(center.y), number(radius), stroke_of(stroke));
}

void SvgWriter::text(Point at, std::string_view text, Face face, Color color) {
  const FaceMetrics height = metrics(face);
  if (text.empty() || !visible({at.x, at.y, text_width(text, face), height.line_height})) return;
  std::string storage;
  const std::string_view drawn = fonts_.shown(text, face, storage);
  const bool bold = face == Face::kBold || face == Face::kTitle;
  body_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" font-family=\"{}\" font-size=\"{}\"{} textLength=\"{}\" "
      "lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\"{}>{}</text>\n",
      number(at.x), number(at.y + height.ascent), family_of(face),
      number(height.line_height * kEmOfLine), bold ? " font-weight=\"bold\"" : "",
      number(text_width(text, face)), fill_of(color), markup_text(drawn));
}

float SvgWriter::text_width(std::string_view text, Face face) const {
  return fonts_.width(text, face);
}

FaceMetrics SvgWriter::metrics(Face face) const { return fonts_.metrics(face); }

void SvgWriter::begin_clip(const Rect& clip) {
  ++clips_;
  definitions_ += fmt::format("<clipPath id=\"c{}\"><rect{}/></clipPath>\n", clips_, box_of(clip));
  body_ += fmt::format("<g clip-path=\"url(#c{})\">\n", clips_);
}

void SvgWriter::end_clip() { body_ += "</g>\n"; }

}  // namespace trainscope::gui
