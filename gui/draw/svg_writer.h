// A canvas that is an SVG file: an element for each item drawn, text as text, no bitmap inside.
#pragma once

#include <string>

#include "gui/draw/canvas.h"
#include "gui/draw/fonts.h"

namespace trainscope::gui {

class SvgWriter final : public Canvas {
 public:
  // Texts are as wide as with these fonts, whatever fonts the reader has.
  SvgWriter(const Fonts& fonts, Extent size);

  // The file, once everything is drawn.
  std::string file() const;

  void fill(const Rect& rect, Color color, float radius = 0.0F) override;
  void outline(const Rect& rect, const Stroke& stroke, float radius = 0.0F) override;
  void line(Point from, Point to, const Stroke& stroke) override;
  void polyline(std::span<const Point> points, const Stroke& stroke) override;
  void bezier(std::span<const Point, 4> points, const Stroke& stroke) override;
  void polygon(std::span<const Point> points, Color color) override;
  void circle(Point center, float radius, Color color) override;
  void ring(Point center, float radius, const Stroke& stroke) override;
  void text(Point at, std::string_view text, Face face, Color color) override;
  float text_width(std::string_view text, Face face) const override;
  FaceMetrics metrics(Face face) const override;

 private:
  void begin_clip(const Rect& clip) override;
  void end_clip() override;

  const Fonts& fonts_;
  Extent size_;
  std::string body_;
  std::string definitions_;
  int clips_ = 0;  // so far
};

}  // namespace trainscope::gui
