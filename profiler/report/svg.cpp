// Places, axes and the frame of a chart.
#include "profiler/report/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "profiler/report/html.h"

namespace trainscope::profiler {
namespace {

constexpr double kPictureWidth = 720.0;
constexpr double kLeft = 64.0;
constexpr double kRight = 24.0;
constexpr double kTop = 28.0;  // the label of the axis at the left stands in it
constexpr double kBottom = 40.0;

}  // namespace

double Scale::at(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

Plane::Plane(const Scale& across, const Scale& up, double picture_height)
    : across_(across), up_(up), picture_height_(picture_height) {}

double Plane::width() const { return kPictureWidth - kLeft - kRight; }
double Plane::height() const { return picture_height_ - kTop - kBottom; }
double Plane::x(double value) const { return kLeft + across_.at(value) * width(); }
double Plane::y(double value) const { return kTop + (1.0 - up_.at(value)) * height(); }

std::string Plane::axes(const AxisTexts& texts, const std::vector<double>& x_ticks,
                        const std::vector<double>& y_ticks) const {
  std::string svg;
  const double bottom = kTop + height();
  for (const double tick : y_ticks) {
    svg +=
        fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}h{:.1f}\"/>", kLeft, y(tick), width());
    svg += fmt::format("<text class=\"tick end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       kLeft - 6.0, y(tick) + 4.0, escaped(texts.y_text(tick)));
  }
  for (const double tick : x_ticks) {
    svg +=
        fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}v{:.1f}\"/>", x(tick), kTop, height());
    svg += fmt::format("<text class=\"tick middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x(tick),
                       bottom + 16.0, escaped(texts.x_text(tick)));
  }
  svg += fmt::format("<text class=\"tick middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                     kLeft + width() / 2.0, bottom + 33.0, escaped(texts.x_label));
  // Above its numbers, which may be as wide as the margin where the page is narrow.
  svg += fmt::format("<text class=\"tick\" x=\"4\" y=\"15\">{}</text>\n", escaped(texts.y_label));
  return svg;
}

std::string Plane::svg(std::string_view title, std::string_view content) const {
  return fmt::format(
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
      kPictureWidth, picture_height_, escaped(title), content);
}

std::string figure(std::string_view title, std::string_view content) {
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", escaped(title), content);
}

}  // namespace trainscope::profiler
