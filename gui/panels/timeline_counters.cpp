// Counters of a profile as curves over its steps, each from its least to its greatest value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
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

constexpr Face kRangeFace = Face::kSmallNumber;

// "0.3135 to 2.1234" at the right, where there is no room for both "up to 2.1234".
class RangeDrawer {
 public:
  RangeDrawer(Ui& ui, const CounterSeries& series, const std::string& query)
      : ui_(ui), series_(series), query_(query) {}

  void draw(Rect rest) const {
    const Quantity least = quantity_of_counter(series_.kind, series_.least);
    const Quantity greatest = quantity_of_counter(series_.kind, series_.greatest);
    const bool is_one = text_of(least).whole() == text_of(greatest).whole();
    const float end = width_of(greatest);
    const bool has_both = width_of(least) + word_width(kTo) + end <= rest.width;
    if (end + (is_one || has_both ? 0.0F : word_width(kUpTo)) > rest.width) return;
    number("greatest", take_right(rest, end), greatest);
    if (is_one) return;
    word(take_right(rest, word_width(has_both ? kTo : kUpTo)), has_both ? kTo : kUpTo);
    if (has_both) number("least", take_right(rest, width_of(least)), least);
  }

 private:
  static constexpr std::string_view kTo = " to ";
  static constexpr std::string_view kUpTo = "up to ";

  float word_width(std::string_view word) const { return std::ceil(ui_.width(word, kRangeFace)); }
  float width_of(const Quantity& quantity) const {
    return word_width(text_of(quantity).whole()) + 1.0F;
  }
  void word(const Rect& rect, std::string_view word) const {
    ui_.text(rect, word, {.face = kRangeFace, .color = ui_.theme().soft_ink});
  }
  void number(std::string_view end, const Rect& rect, const Quantity& quantity) const {
    const std::string_view name = profiler::name_of(series_.kind);
    ui_.number(fmt::format("counter/{}/{}", name, end), rect, quantity,
               fmt::format("{} | /counters/{}/{}", query_, name, end),
               {.face = kRangeFace, .color = ui_.theme().soft_ink});
  }

  Ui& ui_;
  const CounterSeries& series_;
  const std::string& query_;
};

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
    const Clip clip(ui, place.labels, Moves::kUpAndDown);
    const Rect label{place.labels.x + 6.0F, rect.y, place.labels.width - 12.0F, place.row_height};
    ui.text(label, profiler::name_of(series.kind), {.face = Face::kSmall, .align = Align::kRight});
    RangeDrawer(ui, series, place.query)
        .draw({label.x, rect.y + place.row_height, label.width, place.row_height});
  }
}

}  // namespace trainscope::gui
