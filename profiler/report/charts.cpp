// Lines and rooflines as SVG.
#include "profiler/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/core/numbers.h"
#include "profiler/report/html.h"
#include "profiler/report/svg.h"

namespace trainscope::profiler {
namespace {

constexpr int kMostDecades = 12;  // along an axis

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  void widen() {  // so that it is no single value
    if (low < high) return;
    const double margin = low == 0.0 ? 1.0 : std::abs(low) * 0.1;
    low -= margin;
    high += margin;
  }
};

std::string tick_text(double value) {
  if (value == 0.0) return "0";
  const double size = std::abs(value);
  if (size >= 1e9) return fmt::format("{:.3g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

// A pixel's column keeps its least and greatest point, in their order.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points,
                                               const Plane& plane) {
  if (points.size() <= 2 * static_cast<std::size_t>(plane.width())) return points;
  std::vector<std::pair<double, double>> kept;
  std::size_t begin = 0;
  while (begin < points.size()) {
    const auto column = std::floor(plane.x(points[begin].first));
    std::size_t end = begin;
    std::size_t least = begin;
    std::size_t greatest = begin;
    for (; end < points.size() && std::floor(plane.x(points[end].first)) == column; ++end) {
      if (points[end].second < points[least].second) least = end;
      if (points[end].second > points[greatest].second) greatest = end;
    }
    kept.push_back(points[std::min(least, greatest)]);
    if (least != greatest) kept.push_back(points[std::max(least, greatest)]);
    begin = std::max(end, begin + 1);
  }
  return kept;
}

std::string path_of(const Line& line, const Plane& plane) {
  std::string path;
  bool open = false;
  for (const auto& [x, y] : thinned(line.points, plane)) {
    if (!std::isfinite(y)) {
      open = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", open ? 'L' : 'M', plane.x(x), plane.y(y));
    if (!open) path += "h0.01";
    open = true;
  }
  return path;
}

// Of few points each: a single one would be no line.
std::string dots_of(const Line& line, const Plane& plane) {
  constexpr std::size_t kMostDots = 12;
  std::string dots;
  if (line.points.size() > kMostDots) return dots;
  for (const auto& [x, y] : line.points) {
    if (!std::isfinite(y)) continue;
    dots += fmt::format("<circle class=\"c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"/>", line.color,
                        plane.x(x), plane.y(y));
  }
  return dots;
}

std::string legend(const std::vector<Line>& lines) {
  if (lines.size() < 2) return {};
  std::string text;
  for (const Line& line : lines) {
    text += element("span", {{"class", fmt::format("key c{}", line.color)}}, "") +
            escaped(line.name) + " ";
  }
  return element("p", {{"class", "legend"}}, text);
}

// Beyond this the points of a chart that cuts outliers are few and far: three times as far from the
// median as nineteen in twenty are. Infinity: there are none.
double end_of_axis(const std::vector<Line>& lines) {
  std::vector<double> values;
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      if (std::isfinite(y)) values.push_back(y);
    }
  }
  constexpr std::size_t kLeast = 20;  // of fewer nothing is an outlier
  if (values.size() < kLeast) return std::numeric_limits<double>::infinity();
  std::ranges::sort(values);
  const double middle = median(values);
  const double most = values[values.size() - 1 - values.size() / 20];
  const double limit = most + 2.0 * std::max(most - middle, 0.05 * std::abs(middle));
  return values.back() > limit ? limit : std::numeric_limits<double>::infinity();
}

// The chart with what is beyond at the end of its axis, and a title that says so.
LineChart without_outliers(LineChart chart) {
  const double end = end_of_axis(chart.lines);
  std::size_t beyond = 0;
  double most = 0.0;
  for (Line& line : chart.lines) {
    for (auto& [x, y] : line.points) {
      if (!std::isfinite(y) || y <= end) continue;
      ++beyond;
      most = std::max(most, y);
      y = end;
    }
  }
  if (beyond > 0) {
    chart.title +=
        fmt::format(" ({} of them beyond the axis, at most {})", beyond, tick_text(most));
  }
  return chart;
}

}  // namespace

std::string line_chart(const LineChart& given) {
  const LineChart chart = given.cuts_outliers ? without_outliers(given) : given;
  Range x;
  Range y;
  for (const Line& line : chart.lines) {
    for (const auto& [px, py] : line.points) {
      if (!std::isfinite(py)) continue;
      x.add(px);
      y.add(py);
    }
  }
  if (x.empty()) return element("p", {}, escaped(chart.title) + ": no finite value");
  if (chart.from_zero) y.add(0.0);
  x.widen();
  y.widen();
  const Plane plane({.low = x.low, .high = x.high}, {.low = y.low, .high = y.high});
  std::string svg = plane.axes({.x_label = chart.x_label,
                                .y_label = chart.y_label,
                                .x_text = tick_text,
                                .y_text = tick_text},
                               round_numbers(x.low, x.high, 6), round_numbers(y.low, y.high, 5));
  for (const Line& line : chart.lines) {
    svg += dots_of(line, plane);
    svg += fmt::format("<path class=\"line s{}\" d=\"{}\"/>\n", line.color, path_of(line, plane));
  }
  return figure(chart.title, plane.svg(chart.title, svg) + legend(chart.lines));
}

std::string roofline_chart(const RooflineChart& chart) {
  Range x;
  Range y;
  for (const RooflinePoint& point : chart.points) {
    if (point.intensity <= 0.0 || point.flops <= 0.0) continue;
    x.add(point.intensity);
    y.add(point.flops);
  }
  if (x.empty() || chart.peak_flops <= 0.0) return {};
  double quickest = 0.0;
  for (const auto& [name, bytes] : chart.levels) quickest = std::max(quickest, bytes);
  if (quickest > 0.0) x.add(chart.peak_flops / quickest);
  y.add(chart.peak_flops);
  const Scale across{.low = x.low / 2.0, .high = x.high * 4.0, .logarithmic = true};
  const Scale up{.low = y.low / 2.0, .high = y.high * 2.0, .logarithmic = true};
  const Plane plane(across, up);
  std::string svg = plane.axes(
      {.x_label = "FLOPs a byte", .y_label = "FLOP/s", .x_text = tick_text, .y_text = tick_text},
      powers_of_ten(across.low, across.high, kMostDecades),
      powers_of_ten(up.low, up.high, kMostDecades));
  for (const auto& [name, bytes] : chart.levels) {
    if (bytes <= 0.0) continue;
    const double ridge = std::min(chart.peak_flops / bytes, across.high);
    const double begin = std::max(across.low, up.low / bytes);
    svg += fmt::format(
        "<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}\"><title>{}</title>"
        "</path>\n",
        plane.x(begin), plane.y(begin * bytes), plane.x(ridge), plane.y(ridge * bytes),
        plane.x(across.high), plane.y(std::min(chart.peak_flops, across.high * bytes)),
        escaped(fmt::format("{}: {:.3g} GB/s", name, bytes / 1e9)));
    svg += fmt::format("<text class=\"note\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       plane.x(begin) + 4.0, plane.y(begin * bytes) - 6.0, escaped(name));
  }
  for (const RooflinePoint& point : chart.points) {
    if (point.intensity <= 0.0 || point.flops <= 0.0) continue;
    svg += fmt::format(
        "<circle class=\"c0\" cx=\"{:.1f}\" cy=\"{:.1f}\" "
        "r=\"{:.1f}\"><title>{}</title></circle>\n",
        plane.x(point.intensity), plane.y(point.flops), 3.0 + 12.0 * std::sqrt(point.share),
        escaped(fmt::format("{}: {:.3g} GFLOP/s at {:.3g} FLOPs a byte, {:.1f} % of the step",
                            point.name, point.flops / 1e9, point.intensity, 100.0 * point.share)));
  }
  return figure(chart.title, plane.svg(chart.title, svg));
}

}  // namespace trainscope::profiler
