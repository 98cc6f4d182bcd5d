// Cells, names and a scale as SVG.
#include "profiler/report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "profiler/report/html.h"
#include "profiler/report/svg.h"

namespace trainscope::profiler {
namespace {

// In units of a picture of 720 across.
constexpr double kWidth = 720.0;
constexpr double kNames = 300.0;  // to the left of the cells
constexpr double kRight = 10.0;
constexpr double kTop = 34.0;
constexpr double kRowHeight = 14.0;
constexpr double kWidestCell = 60.0;
constexpr double kLabelWidth = 26.0;  // of a step's number
constexpr double kScaleHeight = 44.0;
constexpr std::size_t kNameBytes = 48;

struct Color {
  double red, green, blue;
};
// From dark blue by green and yellow to red: also in grey their brightness rises, but for the last.
constexpr std::array<Color, 5> kRamp = {
    {{44, 62, 120}, {42, 143, 168}, {140, 192, 132}, {242, 193, 78}, {209, 73, 91}}};

class Cells {
 public:
  explicit Cells(const HeatMap& map)
      : columns_(static_cast<double>(std::max<std::size_t>(1, map.columns.size()))),
        width_(std::min(kWidestCell, (kWidth - kNames - kRight) / columns_)),
        bottom_(kTop + kRowHeight * static_cast<double>(map.rows.size())) {}

  double x(std::size_t column) const { return kNames + width_ * static_cast<double>(column); }
  static double y(std::size_t row) { return kTop + kRowHeight * static_cast<double>(row); }
  double width() const { return width_; }
  double bottom() const { return bottom_; }

 private:
  double columns_;
  double width_;
  double bottom_;
};

std::string text_at(std::string_view anchor, double x, double y, std::string_view text) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", anchor, x, y,
                     escaped(text, kNameBytes));
}

// Groups over their columns, steps over theirs where there is room.
std::string headings(const HeatMap& map, const Cells& cells) {
  std::string svg;
  const auto each = static_cast<std::size_t>(std::ceil(kLabelWidth / cells.width()));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < map.columns.size(); ++i) {
    if (i == 0 || map.columns[i].group != map.columns[begin].group) {
      begin = i;
      svg += text_at("start", cells.x(i), 12.0, map.columns[i].group);
      svg += fmt::format("<path class=\"mark\" d=\"M{:.1f} 2V{:.1f}\"/>\n", cells.x(i),
                         cells.bottom());
    }
    if ((i - begin) % std::max<std::size_t>(1, each) != 0) continue;
    svg += text_at("middle", cells.x(i) + cells.width() / 2.0, 28.0, map.columns[i].name);
  }
  return svg;
}

std::string cell_svg(const HeatCell& cell, const Cells& cells) {
  return fmt::format(
      "<rect{} fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}"
      "</title></rect>\n",
      cell.is_beyond ? " class=\"beyond\"" : "", heat_color(cell.error), cells.x(cell.column) + 0.5,
      Cells::y(cell.row) + 0.5, cells.width() - 1.0, kRowHeight - 1.0, escaped(cell.title, 400));
}

// A rectangle for each power of ten.
std::string scale_svg(const Cells& cells) {
  constexpr double kStep = 34.0;
  std::string svg = text_at("end", kNames - 8.0, cells.bottom() + 24.0,
                            "relative error (frame: beyond its limit)");
  int place = 0;
  for (double power = kLeastError; power <= 1.5; power *= 10.0) {
    const double x = kNames + kStep * place++;
    svg += fmt::format(
        "<rect fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"10\"/>\n",
        heat_color(power), x, cells.bottom() + 10.0, kStep - 1.0);
    svg += text_at("middle", x + kStep / 2.0, cells.bottom() + 34.0, fmt::format("{:.0e}", power));
  }
  return svg;
}

}  // namespace

std::string heat_color(double error) {
  const double decades = -std::log10(kLeastError);
  const double place =
      error > kLeastError ? std::clamp(1.0 + std::log10(error) / decades, 0.0, 1.0) : 0.0;
  const double at = place * static_cast<double>(kRamp.size() - 1);
  const auto index = std::min(static_cast<std::size_t>(at), kRamp.size() - 2);
  const double share = at - static_cast<double>(index);
  const Color& a = kRamp[index];
  const Color& b = kRamp[index + 1];
  const auto mixed = [share](double x, double y) {
    return static_cast<int>(std::lround(x + share * (y - x)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(a.red, b.red), mixed(a.green, b.green),
                     mixed(a.blue, b.blue));
}

std::string heat_map(const HeatMap& map) {
  if (map.rows.empty() || map.columns.empty()) return {};
  const Cells cells(map);
  std::string svg = headings(map, cells);
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    svg += text_at("end", kNames - 6.0, Cells::y(i) + 10.5, map.rows[i]);
  }
  for (const HeatCell& cell : map.cells) svg += cell_svg(cell, cells);
  svg += scale_svg(cells);
  const std::string picture = fmt::format(
      "<svg class=\"dense\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">\n{}</svg>\n",
      kWidth, cells.bottom() + kScaleHeight, escaped(map.title), svg);
  return figure(map.title, element("div", {{"class", "scroll"}}, picture));
}

}  // namespace trainscope::profiler
