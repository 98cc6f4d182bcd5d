// Draws axes and lines.
#include "gui/panels/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "gui/ui/quantity.h"

namespace trainscope::gui {

namespace {

using Texts = std::vector<std::string>;

constexpr int kMostDecimals = 8;

enum class Notation { kPlain, kExponent };

std::string tick_text(double value, Notation notation, int decimals) {
  if (notation == Notation::kPlain) return fmt::format("{:.{}f}", value, decimals);
  return value == 0.0 ? "0" : fmt::format("{:.{}e}", value, decimals);
}

// Of a power of ten.
std::string power_text(double value) {
  const bool is_plain = value >= 1e-3 && value < 1e5;
  return is_plain ? fmt::format("{:.4g}", value) : fmt::format("{:.0e}", value);
}

// The least distance of two neighbours; of a single tick the one from 0.
double least_step(std::span<const double> ticks) {
  if (ticks.size() == 1) return std::abs(ticks[0]);
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < ticks.size(); ++i) least = std::min(least, ticks[i] - ticks[i - 1]);
  return least;
}

// With as many decimals each, the fewest that name every tick; none where kMostDecimals do not.
Texts exact_texts(std::span<const double> ticks, Notation notation) {
  const double tolerance = 1e-3 * least_step(ticks);
  for (int decimals = 0; decimals <= kMostDecimals; ++decimals) {
    Texts texts;
    bool is_exact = true;
    for (const double tick : ticks) {
      const double value = std::abs(tick) <= tolerance ? 0.0 : tick;
      texts.push_back(tick_text(value, notation, decimals));
      // That of a tick near the largest double may be beyond it.
      const std::optional<double> read = parse_number(texts.back());
      is_exact = is_exact && read && std::abs(*read - value) <= tolerance;
    }
    if (is_exact) return texts;
  }
  return {};
}

// The first tick as far as nine digits go, and how far the others are from it.
Texts distance_texts(std::span<const double> ticks) {
  Texts texts;
  for (const double tick : ticks) {
    texts.push_back(texts.empty() ? fmt::format("{:.9g}", tick)
                                  : fmt::format("{:+.3g}", tick - ticks[0]));
  }
  return texts;
}

std::size_t longest(const Texts& texts) {
  return std::ranges::max(texts, {}, &std::string::size).size();
}

// Whether the one decimal that bytes are written with is all that they have.
bool is_tenth_of_unit(double bytes) {
  while (bytes >= 1024.0) bytes /= 1024.0;
  return std::abs(10.0 * bytes - std::round(10.0 * bytes)) < 1e-6;
}

}  // namespace

std::vector<std::string> tick_texts(std::span<const double> ticks, AxisScale scale) {
  if (scale == AxisScale::kLogarithmic) {
    Texts texts;
    for (const double tick : ticks) texts.push_back(power_text(tick));
    return texts;
  }
  Texts plain = exact_texts(ticks, Notation::kPlain);
  Texts exponents = exact_texts(ticks, Notation::kExponent);
  if (plain.empty() && exponents.empty()) return distance_texts(ticks);
  if (exponents.empty()) return plain;
  // An exponent is harder to read: a single character is not worth it.
  const bool is_plain = !plain.empty() && longest(plain) <= longest(exponents) + 1;
  return is_plain ? plain : exponents;
}

std::vector<std::string> byte_tick_texts(std::span<const double> ticks) {
  Texts texts;
  for (const double tick : ticks) texts.push_back(text_of({tick, Unit::kBytes}).whole());
  if (std::ranges::all_of(ticks, is_tenth_of_unit)) return texts;
  constexpr std::array<std::string_view, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  double bytes = 1.0;  // of the unit
  while (unit + 1 < kUnits.size() && least_step(ticks) >= 1024.0 * bytes) {
    bytes *= 1024.0;
    ++unit;
  }
  Texts whole;
  for (const double tick : ticks) {
    whole.push_back(fmt::format("{} {}", grouped(std::llround(tick / bytes)), kUnits[unit]));
  }
  constexpr std::size_t kMost = 10;  // characters: those of "1023.9 MiB"
  if (longest(whole) <= kMost) return whole;
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    texts[i] = "+" + text_of({ticks[i] - ticks[0], Unit::kBytes}).whole();
  }
  return texts;
}

void draw_phase_names(Ui& ui, const Rect& axis, const std::array<float, 4>& ends) {
  constexpr std::array<std::string_view, 3> kNames = {"forward", "backward", "update"};
  for (std::size_t phase = 0; phase < kNames.size(); ++phase) {
    const float from = std::max(axis.x, ends[phase]);
    const float to = std::min(axis.right(), ends[phase + 1]);
    if (to - from < ui.width(kNames[phase], Face::kSmall) + 12.0F) continue;
    ui.canvas().fill({from, axis.y + 2.0F, to - from - 1.0F, 3.0F}, ui.theme().phases[phase]);
    ui.text({from, axis.y + 5.0F, to - from, axis.height - 5.0F}, kNames[phase],
            {.face = Face::kSmall, .color = ui.theme().soft_ink, .align = Align::kCenter});
  }
}

Plot::Plot(Ui& ui, const Rect& rect, const PlotLook& look) : ui_(ui), look_(look) {
  const Theme& theme = ui.theme();
  const float line = std::max(ui.line_height(Face::kSmall), ui.line_height(Face::kSmallNumber));
  Rect rest = rect;
  if (!look.title.empty()) {
    Rect head = take_top(rest, ui.row_height() + 2.0F);
    const Rect unit = take_right(head, ui.width(look.y_label, Face::kSmall) + 1.0F);
    ui.fitting_text(unit, {look.y_label},
                    {.face = Face::kSmall, .color = theme.soft_ink, .align = Align::kRight});
    ui.fitting_text(head, {look.title}, {.face = Face::kBold});
  }
  const auto rows = std::max(2, static_cast<int>(rest.height / (3.0F * line)));
  const std::vector<double> y_ticks = ticks_of(look.y, rows);
  const std::vector<std::string> y_texts = tick_texts(y_ticks, look.y.scale);
  float widest = 0.0F;
  for (const std::string& text : y_texts) {
    widest = std::max(widest, ui.width(text, Face::kSmallNumber));
  }
  take_left(rest, std::ceil(widest) + 8.0F);
  take_right(rest, 8.0F);
  take_top(rest, std::round(line / 2.0F));
  const Rect foot = take_bottom(rest, line + 6.0F);
  inside_ = rest;
  if (inside_.width < 20.0F || inside_.height < 20.0F) return;
  ui.canvas().fill(inside_, theme.inset);
  const Surface surface(ui, {inside_.x, inside_.y, 0.0F, 0.0F}, ui.paper());
  for (std::size_t i = 0; i < y_ticks.size(); ++i) {
    const float y = at(look.x.low, y_ticks[i]).y;
    if (y < inside_.y - 0.5F || y > inside_.bottom() + 0.5F) continue;
    ui.canvas().line({inside_.x, y}, {inside_.right(), y}, {.color = theme.line});
    ui.text({rect.x, y - line / 2.0F, inside_.x - rect.x - 6.0F, line}, y_texts[i],
            {.face = Face::kSmallNumber, .color = theme.soft_ink, .align = Align::kRight});
  }
  const float label = look.x_label.empty() ? 0.0F : ui.width(look.x_label, Face::kSmall) + 12.0F;
  const auto columns = std::max(2, static_cast<int>((inside_.width - label) / 70.0F));
  const std::vector<double> x_ticks = ticks_of(look.x, columns);
  const std::vector<std::string> x_texts = tick_texts(x_ticks, look.x.scale);
  for (std::size_t i = 0; i < x_ticks.size(); ++i) {
    const float x = at(x_ticks[i], look.y.low).x;
    if (x < inside_.x - 0.5F || x > inside_.right() + 0.5F) continue;
    ui.canvas().line({x, inside_.y}, {x, inside_.bottom()}, {.color = theme.line});
    const float width = ui.width(x_texts[i], Face::kSmallNumber) + 1.0F;
    const Rect place{std::clamp(x - width / 2.0F, rect.x, rect.right() - width), foot.y + 4.0F,
                     width, line};
    if (place.right() > inside_.right() - label + 6.0F) continue;
    ui.text(place, x_texts[i],
            {.face = Face::kSmallNumber, .color = theme.soft_ink, .align = Align::kCenter});
  }
  ui.text({inside_.x, foot.y + 4.0F, inside_.width + 8.0F, line}, look.x_label,
          {.face = Face::kSmall, .color = theme.soft_ink, .align = Align::kRight});
}

Point Plot::at(double x, double y) const {
  return {inside_.x + inside_.width * static_cast<float>(look_.x.share_of(x)),
          inside_.bottom() - inside_.height * static_cast<float>(look_.y.share_of(y))};
}

void Plot::line(std::span<const std::pair<double, double>> points, const Stroke& stroke) const {
  if (inside_.width < 20.0F || inside_.height < 20.0F) return;
  const Clip clip(ui_, inside_);
  std::vector<Point> run;
  const auto flush = [&] {
    if (run.size() == 1) ui_.canvas().circle(run[0], 2.0F, stroke.color);
    ui_.canvas().polyline(run, stroke);
    run.clear();
  };
  for (std::size_t i = 0; i < points.size();) {
    if (!std::isfinite(points[i].second)) {
      flush();
      ++i;
      continue;
    }
    const Point first = at(points[i].first, points[i].second);
    float least = first.y;
    float greatest = first.y;
    std::size_t next = i + 1;
    for (; next < points.size() && std::isfinite(points[next].second); ++next) {
      const Point p = at(points[next].first, points[next].second);
      if (p.x >= first.x + 1.0F) break;
      least = std::min(least, p.y);
      greatest = std::max(greatest, p.y);
    }
    run.push_back(first);
    if (greatest - least > 0.5F) {
      run.push_back({first.x + 0.3F, least});
      run.push_back({first.x + 0.6F, greatest});
    }
    i = next;
  }
  flush();
}

}  // namespace trainscope::gui
