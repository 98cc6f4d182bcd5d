// Time by memory: the plans that no other beats, where the plan asked for is among them, and what
// no plan can go below.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/core/numbers.h"
#include "gui/panels/budget_parts.h"
#include "gui/panels/plot.h"

namespace trainscope::gui {
namespace {

// From bytes and share of more time to points of the plot.
struct CurvePlot {
  Rect area;
  double least_bytes = 0.0;
  double most_bytes = 1.0;
  double most_overhead = 0.01;

  float x(double bytes) const {
    return area.x + area.width * static_cast<float>((bytes - least_bytes) /
                                                    std::max(1.0, most_bytes - least_bytes));
  }
  float y(double overhead) const {
    return area.bottom() - area.height * static_cast<float>(overhead / most_overhead);
  }
  Point at(double bytes, double overhead) const { return {x(bytes), y(overhead)}; }
  double bytes_at(float at_x) const {
    return least_bytes + (at_x - area.x) / std::max(1.0F, area.width) * (most_bytes - least_bytes);
  }
};

CurvePlot plot_of(Ui& ui, const BudgetModel& model, Rect area,
                  const std::vector<CurveCorner>& corners) {
  const BudgetRange range = model.range();
  const double margin = 0.04 * static_cast<double>(range.most_bytes - range.least_bytes);
  take_left(area, std::ceil(ui.width("00.0 %", Face::kSmallNumber)) + 6.0F);
  take_bottom(area, ui.line_height(Face::kSmall) + 4.0F);
  take_top(area, 6.0F);
  take_right(area, 8.0F);
  CurvePlot plot{.area = area,
                 .least_bytes = static_cast<double>(range.least_bytes) - margin,
                 .most_bytes = static_cast<double>(range.most_bytes) + margin};
  if (!corners.empty()) plot.most_overhead = std::max(0.01, corners.back().overhead * 1.08);
  return plot;
}

void draw_axes(Ui& ui, const CurvePlot& plot) {
  const Scope scope(ui, "axis");
  const Theme& theme = ui.theme();
  const float line = ui.line_height(Face::kSmallNumber);
  const int rows = std::max(2, static_cast<int>(plot.area.height / (line * 3.0F)));
  const std::vector<double> percents = round_numbers(0.0, 100.0 * plot.most_overhead, rows - 1);
  const std::vector<std::string> texts = tick_texts(percents, AxisScale::kLinear);
  for (std::size_t i = 0; i < percents.size(); ++i) {
    const float y = plot.y(percents[i] / 100.0);
    ui.canvas().line({plot.area.x, y}, {plot.area.right(), y}, {.color = theme.line});
    ui.text({plot.area.x - 60.0F, y - line / 2.0F, 55.0F, line}, texts[i] + " %",
            {.face = Face::kSmallNumber, .color = theme.soft_ink, .align = Align::kRight});
  }
  const float label = std::ceil(ui.width("000.0 MiB", Face::kSmallNumber)) + 12.0F;
  const int columns = std::max(2, static_cast<int>(plot.area.width / label) + 1);
  const std::vector<double> ticks =
      round_byte_counts(plot.least_bytes, plot.most_bytes, columns - 1);
  const std::vector<std::string> words = byte_tick_texts(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const float x = plot.x(ticks[i]);
    ui.canvas().line({x, plot.area.y}, {x, plot.area.bottom()}, {.color = theme.line});
    const Rect place{x - label / 2.0F, plot.area.bottom() + 3.0F, label, line};
    if (place.right() > plot.area.right() + 8.0F || place.x < plot.area.x - 30.0F) continue;
    ui.text(place, words[i],
            {.face = Face::kSmallNumber, .color = theme.soft_ink, .align = Align::kCenter});
  }
}

void draw_staircase(Ui& ui, const CurvePlot& plot, const std::vector<CurveCorner>& corners,
                    const std::vector<TradePoint>& front, double plain_seconds) {
  std::vector<Point> points;
  for (const CurveCorner& corner : corners)
    points.push_back(plot.at(corner.bytes, corner.overhead));
  if (points.size() > 1) ui.canvas().polyline(points, {.color = ui.theme().accent, .width = 1.5F});
  constexpr std::size_t kMostDots = 60;  // more of them are a line anyway
  if (front.size() > kMostDots) return;
  for (const TradePoint& point : front) {
    ui.canvas().circle(
        plot.at(static_cast<double>(point.arena_bytes), overhead_of(point.seconds, plain_seconds)),
        2.5F, ui.theme().accent);
  }
}

// No step within so many bytes is quicker: a bracket from the proof up to the plan.
void draw_certificate(Ui& ui, const CurvePlot& plot, const PlanOutcome& outcome) {
  if (outcome.bound_seconds <= 0.0 || outcome.bound_bytes <= 0) return;
  const double overhead = overhead_of(outcome.bound_seconds, outcome.plain_seconds);
  const Point at = plot.at(static_cast<double>(outcome.bound_bytes), overhead);
  if (!plot.area.inset(-4.0F).contains(at)) return;
  const Stroke stroke{.color = ui.theme().good, .width = 2.0F};
  ui.canvas().line({at.x - 7.0F, at.y}, {at.x + 7.0F, at.y}, stroke);
  const float top = plot.y(overhead_of(outcome.seconds, outcome.plain_seconds));
  if (at.y - top > 4.0F) ui.canvas().line(at, {at.x, top}, {.color = stroke.color, .dashed = true});
}

void draw_plan_dot(Ui& ui, const CurvePlot& plot, const PlanAnswer* answer, bool is_ghost) {
  if (answer == nullptr || answer->facts.is_null()) return;
  const PlanOutcome& outcome = answer->outcome;
  const Point at = plot.at(static_cast<double>(answer->map.arena_bytes),
                           overhead_of(outcome.seconds, outcome.plain_seconds));
  if (!plot.area.inset(-8.0F).contains(at)) return;
  if (is_ghost) {
    ui.canvas().ring(at, 5.0F, {.color = ui.theme().soft_ink, .width = 1.5F});
    return;
  }
  draw_certificate(ui, plot, outcome);
  ui.canvas().circle(at, 5.5F, ui.theme().ink);
  ui.canvas().circle(at, 3.5F, outcome.draft ? ui.theme().inset : ui.theme().accent);
}

// Where the plan that is being made will be, or a little below.
void draw_asked_dot(Ui& ui, const CurvePlot& plot, const BudgetState& state) {
  const bool waits = state.point && (!state.answer || state.answer->id != state.asked);
  if (!waits) return;
  const Point at = plot.at(static_cast<double>(state.point->arena_bytes),
                           overhead_of(state.point->seconds, state.plain->outcome.seconds));
  if (plot.area.inset(-8.0F).contains(at)) ui.canvas().ring(at, 5.5F, {.color = ui.theme().accent});
}

std::string curve_tooltip(const BudgetModel& model, std::int64_t bytes) {
  const TradePoint* plan = quickest_within(*model.budget().front, bytes);
  if (plan == nullptr) return "No plan is known in so little.";
  const double plain = model.budget().plain->outcome.seconds;
  return fmt::format("{}: {:.2f} % more time, {} ops run twice\nA click asks for it.",
                     text_of({static_cast<double>(bytes), Unit::kBytes}).whole(),
                     100.0 * overhead_of(plan->seconds, plain), plan->rematerialized_nodes);
}

// By mouse, and by arrows from plan to plan.
void touch_curve(Ui& ui, BudgetModel& model, const CurvePlot& plot, const Response& response) {
  const std::vector<TradePoint>& front = *model.budget().front;
  PlanRequest request = model.request();
  const std::int64_t now =
      request.level == PlanLevel::kAuto ? request.budget_bytes : model.range().most_bytes;
  std::optional<std::int64_t> wanted;
  if (response.focused) {
    if (ui.take("Left") || ui.take("Down")) wanted = neighbour_budget(front, now, -1);
    if (ui.take("Right") || ui.take("Up")) wanted = neighbour_budget(front, now, 1);
  }
  if (response.hovered && plot.area.inset(-4.0F).contains(ui.input().mouse)) {
    const std::int64_t bytes = model.range().clamp(std::llround(plot.bytes_at(ui.input().mouse.x)));
    ui.tooltip(response, curve_tooltip(model, bytes));
    if (response.clicked) wanted = bytes;
  }
  if (!wanted || (request.level == PlanLevel::kAuto && *wanted == now)) return;
  request.level = PlanLevel::kAuto;
  request.budget_bytes = *wanted;
  model.ask(std::move(request));
}

}  // namespace

void draw_budget_curve(Ui& ui, BudgetModel& model, const Rect& rect) {
  Rect area = rect;
  const float title = ui.line_height(Face::kSmall) + 4.0F;
  ui.fitting_text(take_top(area, title),
                  {"more time by memory: the plans that no other beats", "more time by memory"},
                  {.face = Face::kSmall, .color = ui.theme().soft_ink});
  ui.canvas().fill(area, ui.theme().inset);
  const Surface surface(ui, {area.x, area.y, 0.0F, 0.0F}, ui.theme().inset);
  const Response response =
      ui.hit("curve", area, {.kind = ItemKind::kArea, .label = "memory for time"});
  const BudgetState& state = model.budget();
  if (!state.front || !state.plain || area.height < 60.0F || area.width < 120.0F) return;
  const std::vector<CurveCorner> corners = curve_of(*state.front, state.plain->outcome.seconds);
  const CurvePlot plot = plot_of(ui, model, area, corners);
  draw_axes(ui, plot);
  if (model.request().level == PlanLevel::kAuto) {
    const float x = plot.x(static_cast<double>(model.range().clamp(model.request().budget_bytes)));
    ui.canvas().line({x, plot.area.y}, {x, plot.area.bottom()},
                     {.color = ui.theme().ink, .dashed = true});
  }
  draw_staircase(ui, plot, corners, *state.front, state.plain->outcome.seconds);
  draw_plan_dot(ui, plot, model.ghost(), true);
  draw_plan_dot(ui, plot, model.shown(), false);
  draw_asked_dot(ui, plot, state);
  touch_curve(ui, model, plot, response);
}

}  // namespace trainscope::gui
