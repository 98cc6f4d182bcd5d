// Counters of a profile as curves over its steps, each from its least to its greatest value.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gui/panels/timeline_state.h"

namespace trainscope::gui {
namespace {

using profiler::EventKind;

constexpr float kCounterRows = 2.0F;
constexpr std::size_t kMostDots = 200;

Quantity quantity_of_counter(EventKind kind, double value) {
  if (kind == EventKind::kResidentBytes) return {value, Unit::kBytes};
  if (kind == EventKind::kTaskClock) return {value, Unit::kNanoseconds};
  if (kind == EventKind::kLoss || kind == EventKind::kLearningRate) return {value, Unit::kPlain};
  return {value, Unit::kCount};
}

bool is_shown(const CounterSeries& series) { return series.least != 0.0 || series.greatest != 0.0; }

std::string range_text(const CounterSeries& series) {
  const std::string least = text_of(quantity_of_counter(series.kind, series.least)).whole();
  const std::string greatest = text_of(quantity_of_counter(series.kind, series.greatest)).whole();
  return least == greatest ? least : fmt::format("{} to {}", least, greatest);
}

void draw_series(Ui& ui, const TimelineState& state, const CounterSeries& series,
                 const Rect& rect) {
  const double per_ns =
      static_cast<double>(rect.width) /
      static_cast<double>(std::max<std::int64_t>(1, state.view.end_ns - state.view.begin_ns));
  const double span = series.greatest - series.least;
  std::vector<Point> points;
  for (const CounterPoint& point : series.points) {
    if (!(point.value - point.value == 0.0)) continue;  // not finite
    const double x = static_cast<double>(point.ns - state.view.begin_ns) * per_ns;
    const double share = span == 0.0 ? 0.5 : (point.value - series.least) / span;
    points.push_back({rect.x + static_cast<float>(x),
                      rect.bottom() - 5.0F - static_cast<float>(share) * (rect.height - 10.0F)});
  }
  ui.canvas().polyline(points, {.color = ui.theme().phases[0], .width = 1.5F});
  if (points.size() > kMostDots) return;
  for (const Point& point : points) ui.canvas().circle(point, 2.0F, ui.theme().phases[0]);
}

}  // namespace

float counters_height(const TimelineState& state, float row_height) {
  const auto count = std::ranges::count_if(state.data.counters, is_shown);
  return row_height * kCounterRows * static_cast<float>(count);
}

void draw_counters(Ui& ui, const TimelineState& state, const CounterArea& place) {
  float y = place.top;
  for (const CounterSeries& series : state.data.counters) {
    if (!is_shown(series)) continue;
    const Rect rect{place.area.x, y, place.area.width, place.row_height * kCounterRows};
    y += rect.height;
    ui.canvas().line({place.labels.x, rect.y}, {rect.right(), rect.y}, {.color = ui.theme().line});
    {
      const Clip clip(ui, place.area);
      if (ui.canvas().visible(rect)) draw_series(ui, state, series, rect);
    }
    if (place.labels.width <= 0.0F) continue;
    const Clip clip(ui, place.labels);
    const Rect label{place.labels.x + 6.0F, rect.y, place.labels.width - 12.0F, place.row_height};
    ui.text(label, profiler::name_of(series.kind), {.face = Face::kSmall, .align = Align::kRight});
    ui.text({label.x, rect.y + place.row_height, label.width, place.row_height}, range_text(series),
            {.face = Face::kSmallNumber,
             .color = ui.theme().soft_ink,
             .align = Align::kRight,
             .fit = Fit::kEnd});
  }
}

}  // namespace trainscope::gui
