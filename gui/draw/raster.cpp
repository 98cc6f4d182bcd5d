// Triangles by edge functions, row by row; a pixel belongs to a triangle whose inside or top left
// edge has its centre (the top-left rule), so that neighbours leave no gap and cover none twice.
#include "gui/draw/raster.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

namespace trainscope::gui {
namespace {

// Places in whole 256ths of a pixel: sums of products of them are exact.
constexpr std::int64_t kPixel = 256;

struct Corner {
  std::int64_t x = 0;
  std::int64_t y = 0;
};

Corner corner_of(const ImVec2& p) {
  constexpr float kFarthest = 1e6F;
  return {std::llround(std::clamp(p.x, -kFarthest, kFarthest) * static_cast<float>(kPixel)),
          std::llround(std::clamp(p.y, -kFarthest, kFarthest) * static_cast<float>(kPixel))};
}

// Twice the area of the triangle that the edge and a point make: positive inside.
struct Edge {
  std::int64_t dx = 0;
  std::int64_t dy = 0;
  Corner from;
  std::int64_t bias = 0;  // of zero: an edge that is not at the top or left does not take it

  std::int64_t at(std::int64_t x, std::int64_t y) const {
    return dx * (y - from.y) - dy * (x - from.x);
  }
  // From a pixel to the one at its right.
  std::int64_t step() const { return -dy * kPixel; }
};

// Pixels of a row, counted from its first.
struct Span {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

// Keeps those at which a value that begins with `begin` and grows by `step` is not below 0.
void cut(std::int64_t begin, std::int64_t step, Span& span) {
  if (step > 0) {
    if (begin < 0) span.first = std::max(span.first, (-begin + step - 1) / step);
  } else if (begin < 0) {
    span.end = 0;
  } else if (step < 0) {
    span.end = std::min(span.end, begin / -step + 1);
  }
}

Edge edge_of(const Corner& from, const Corner& to) {
  const std::int64_t dx = to.x - from.x;
  const std::int64_t dy = to.y - from.y;
  const bool takes_zero = dy < 0 || (dy == 0 && dx > 0);
  return {.dx = dx, .dy = dy, .from = from, .bias = takes_zero ? 0 : -1};
}

Color unpacked(ImU32 c) {
  const auto part = [c](unsigned shift) { return static_cast<std::uint8_t>(c >> shift); };
  return {part(IM_COL32_R_SHIFT), part(IM_COL32_G_SHIFT), part(IM_COL32_B_SHIFT),
          part(IM_COL32_A_SHIFT)};
}

struct Atlas {
  const unsigned char* alpha = nullptr;  // a byte a pixel
  int width = 0;
  int height = 0;

  float at(float u, float v) const {
    const int x = std::clamp(static_cast<int>(u * static_cast<float>(width)), 0, width - 1);
    const int y = std::clamp(static_cast<int>(v * static_cast<float>(height)), 0, height - 1);
    return static_cast<float>(alpha[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                                    static_cast<std::size_t>(x)]) /
           255.0F;
  }
};

struct PixelBox {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};

class Rasterizer {
 public:
  Rasterizer(Picture& picture, const Atlas& atlas) : picture_(picture), atlas_(atlas) {}

  void set_clip(const ImVec4& clip, const ImVec2& origin) {
    clip_ = {.left = std::max(0, static_cast<int>(clip.x - origin.x)),
             .top = std::max(0, static_cast<int>(clip.y - origin.y)),
             .right = std::min(picture_.width, static_cast<int>(clip.z - origin.x)),
             .bottom = std::min(picture_.height, static_cast<int>(clip.w - origin.y))};
  }

  void triangle(const ImDrawVert& a, ImDrawVert b, ImDrawVert c) {
    const Corner p = corner_of(a.pos);
    Corner q = corner_of(b.pos);
    Corner r = corner_of(c.pos);
    std::int64_t area = (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x);
    if (area == 0) return;
    if (area < 0) {
      std::swap(b, c);
      std::swap(q, r);
      area = -area;
    }
    const std::array<Edge, 3> edges = {edge_of(q, r), edge_of(r, p), edge_of(p, q)};
    const bool flat = a.col == b.col && b.col == c.col && a.uv.x == b.uv.x && b.uv.x == c.uv.x &&
                      a.uv.y == b.uv.y && b.uv.y == c.uv.y;
    const PixelBox box = box_of(a, b, c);
    if (flat) {
      fill_flat(edges, box, shaded(unpacked(a.col), a.uv));
    } else {
      fill_varying(edges, box, {a, b, c}, 1.0F / static_cast<float>(area));
    }
  }

 private:
  static int floor_of(float v) { return static_cast<int>(std::floor(std::clamp(v, -1e6F, 1e6F))); }

  PixelBox box_of(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c) const {
    const auto [left, right] = std::minmax({a.pos.x, b.pos.x, c.pos.x});
    const auto [top, bottom] = std::minmax({a.pos.y, b.pos.y, c.pos.y});
    return {.left = std::max(clip_.left, floor_of(left)),
            .top = std::max(clip_.top, floor_of(top)),
            .right = std::min(clip_.right, floor_of(right) + 1),
            .bottom = std::min(clip_.bottom, floor_of(bottom) + 1)};
  }

  Color shaded(Color color, const ImVec2& uv) const {
    color.alpha = static_cast<std::uint8_t>(
        std::lround(static_cast<float>(color.alpha) * atlas_.at(uv.x, uv.y)));
    return color;
  }

  Color& pixel(int x, int y) {
    return picture_.pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(picture_.width) +
                           static_cast<std::size_t>(x)];
  }

  static void blend(Color& below, Color color) {
    if (color.alpha == 0) return;
    below = color.alpha == 255 ? color : over(color, below);
  }

  // Calls paint(pixels of a row that are inside, values of the edges at the first of them).
  template <typename Paint>
  void cover(const std::array<Edge, 3>& edges, const PixelBox& box, Paint paint) {
    const std::int64_t px = box.left * kPixel + kPixel / 2;
    for (int y = box.top; y < box.bottom; ++y) {
      const std::int64_t py = y * kPixel + kPixel / 2;
      Span inside{.first = 0, .end = box.right - box.left};
      for (const Edge& edge : edges) cut(edge.at(px, py) + edge.bias, edge.step(), inside);
      if (inside.first >= inside.end) continue;
      const std::int64_t first = px + inside.first * kPixel;
      Color* row = &pixel(box.left, y);
      paint(std::span(row + inside.first, row + inside.end),
            std::array{edges[0].at(first, py), edges[1].at(first, py), edges[2].at(first, py)});
    }
  }

  void fill_flat(const std::array<Edge, 3>& edges, const PixelBox& box, Color color) {
    cover(edges, box, [color](std::span<Color> pixels, const std::array<std::int64_t, 3>&) {
      for (Color& below : pixels) blend(below, color);
    });
  }

  void fill_varying(const std::array<Edge, 3>& edges, const PixelBox& box,
                    const std::array<ImDrawVert, 3>& corners, float per_area) {
    const std::array<Color, 3> colors = {unpacked(corners[0].col), unpacked(corners[1].col),
                                         unpacked(corners[2].col)};
    const auto shade = [&](const std::array<std::int64_t, 3>& w) {
      float sums[6] = {};  // red, green, blue, alpha, u, v
      for (std::size_t i = 0; i < 3; ++i) {
        const float share = static_cast<float>(w[i]) * per_area;
        sums[0] += share * static_cast<float>(colors[i].red);
        sums[1] += share * static_cast<float>(colors[i].green);
        sums[2] += share * static_cast<float>(colors[i].blue);
        sums[3] += share * static_cast<float>(colors[i].alpha);
        sums[4] += share * corners[i].uv.x;
        sums[5] += share * corners[i].uv.y;
      }
      const auto channel = [](float v) {
        return static_cast<std::uint8_t>(std::clamp(v + 0.5F, 0.0F, 255.0F));
      };
      return shaded({channel(sums[0]), channel(sums[1]), channel(sums[2]), channel(sums[3])},
                    ImVec2(sums[4], sums[5]));
    };
    cover(edges, box, [&](std::span<Color> pixels, std::array<std::int64_t, 3> w) {
      for (Color& below : pixels) {
        blend(below, shade(w));
        for (std::size_t i = 0; i < 3; ++i) w[i] += edges[i].step();
      }
    });
  }

  Picture& picture_;
  Atlas atlas_;
  PixelBox clip_;
};

void draw_list(Rasterizer& raster, const ImDrawList& list, const ImVec2& origin) {
  for (const ImDrawCmd& command : list.CmdBuffer) {
    if (command.UserCallback != nullptr) continue;
    raster.set_clip(command.ClipRect, origin);
    const auto vertex = [&](unsigned i) {
      ImDrawVert v = list.VtxBuffer[static_cast<int>(
          list.IdxBuffer[static_cast<int>(command.IdxOffset + i)] + command.VtxOffset)];
      v.pos = ImVec2(v.pos.x - origin.x, v.pos.y - origin.y);
      return v;
    };
    for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
      raster.triangle(vertex(i), vertex(i + 1), vertex(i + 2));
    }
  }
}

}  // namespace

Picture rasterized(const ImDrawData& data, const ImFontAtlas& atlas, Color background) {
  Picture picture{.width = static_cast<int>(data.DisplaySize.x),
                  .height = static_cast<int>(data.DisplaySize.y)};
  picture.pixels.assign(
      static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height),
      background);
  Rasterizer raster(picture, {atlas.TexPixelsAlpha8, atlas.TexWidth, atlas.TexHeight});
  for (int i = 0; i < data.CmdListsCount; ++i) {
    draw_list(raster, *data.CmdLists[i], data.DisplayPos);
  }
  return picture;
}

}  // namespace trainscope::gui
