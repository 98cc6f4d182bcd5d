// A canvas on one of Dear ImGui's draw lists.
#pragma once

#include <string>

#include "gui/draw/canvas.h"
#include "gui/draw/fonts.h"

struct ImDrawList;

namespace trainscope::gui {

class ImGuiCanvas final : public Canvas {
 public:
  // Of a frame: both live as long as it does. `whole` in logical pixels.
  ImGuiCanvas(ImDrawList& list, const Fonts& fonts, const Rect& whole);

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

  ImDrawList& list_;
  const Fonts& fonts_;
  float scale_;
  std::string storage_;  // of a text that is drawn with other characters
};

}  // namespace trainscope::gui
