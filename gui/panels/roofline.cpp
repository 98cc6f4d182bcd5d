// The Roofline panel: what each node does of what the machine could.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "engine/plan_classes.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/plot.h"
#include "gui/ui/controls.h"
#include "gui/views/op_class.h"
#include "gui/views/roofline_points.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {
namespace {

using profiler::GroupBy;

constexpr std::array kGroups = {GroupBy::kNode, GroupBy::kOp, GroupBy::kKernel};
constexpr std::array<std::string_view, kGroups.size()> kGroupNames = {"node", "op", "kernel"};

struct RooflineState {
  std::size_t group = 0;
  KernelRows rows;
  Roofline roofline;
  std::size_t shown_group = 0;
  const RunData* of = nullptr;
  std::uint64_t version = 0;
};

GroupBy group_of(const RooflineState& state) { return kGroups[state.group]; }

KernelWishes wishes_of(const RooflineState& state) { return {.by = group_of(state)}; }

const Roofline& roofline_of_now(RooflineState& state, RunData& run) {
  const bool kept =
      state.of == &run && state.version == run.version() && state.shown_group == state.group;
  if (!kept) {
    state.rows = kernel_rows(*run.times(), *run.plan(), run.machine(), wishes_of(state));
    state.roofline = roofline_of(state.rows, run.machine(), run.plan()->facts().threads);
    state.shown_group = state.group;
    state.of = &run;
    state.version = run.version();
  }
  return state.roofline;
}

bool has_times(Workbench& workbench) {
  RunData* run = workbench.run();
  return run != nullptr && run->plan() != nullptr && run->times() != nullptr &&
         !run->times()->steps.empty();
}

void draw_roofs(Ui& ui, const Plot& plot, const Roofline& roofline) {
  const Theme& theme = ui.theme();
  const Clip clip(ui, plot.inside());
  const PlotAxis& x = roofline.intensity;
  const float line = ui.line_height(Face::kSmall);
  const Stroke stroke{.color = theme.soft_ink, .width = 1.5F};
  const Surface surface(ui, {0.0F, 0.0F, 0.0F, 0.0F}, theme.inset);
  for (const Roof& roof : roofline.roofs) {
    if (roof.gbs == 0.0) {
      const Point from = plot.at(x.low, roof.gflops);
      ui.canvas().line(from, plot.at(x.high, roof.gflops), stroke);
      ui.text({from.x, from.y - line - 2.0F, plot.inside().width - 6.0F, line},
              fmt::format("{}  {:.0f} GFLOP/s", roof.name, roof.gflops),
              {.face = Face::kSmall, .color = theme.soft_ink, .align = Align::kRight});
      continue;
    }
    const double ridge = roof.gflops / roof.gbs;
    ui.canvas().line(plot.at(x.low, x.low * roof.gbs), plot.at(ridge, roof.gflops), stroke);
    // Beside the line, where it comes into the plot.
    const double in = std::max(x.low, roofline.gflops.low / roof.gbs);
    const Point at = plot.at(in, in * roof.gbs);
    ui.text({at.x + 16.0F, at.y - 2.0F * line, 160.0F, line},
            fmt::format("{}  {:.1f} GB/s", roof.name, roof.gbs),
            {.face = Face::kSmall, .color = theme.soft_ink});
  }
}

float radius_of(const RooflinePoint& point) {
  return 4.0F + 14.0F * std::sqrt(static_cast<float>(std::min(1.0, point.share)));
}

// More places than colours: what is no class is grey.
Color color_at(const Theme& theme, std::size_t legend_place) {
  return legend_place < kSeriesColors ? theme.series[legend_place] : theme.soft_ink;
}

// The colour of the op that its first call runs.
Color color_of(const Ui& ui, const PlanView& plan, const RooflineState& state,
               const RooflinePoint& point) {
  const std::uint32_t call = first_call_of(plan, state.rows.table.rows[point.row], group_of(state));
  const OpClass op = call == kNoRow ? OpClass::kOther : class_of(plan, plan.calls[call]);
  return color_at(ui.theme(), legend_place(op));
}

std::string text_of_point(const RooflinePoint& point) {
  std::string text = fmt::format("{}\n{:.2f} GFLOP/s at {:.2f} FLOP/B, {:.2f} % of the step",
                                 point.name, point.gflops, point.intensity, 100.0 * point.share);
  if (point.roof > 0.0) text += fmt::format("\n{:.1f} % of its roof", 100.0 * point.roof);
  return text;
}

void select_point(Workbench& workbench, const RooflineState& state, const RooflinePoint& point) {
  const PlanLinks* links = workbench.links();
  const std::uint32_t call =
      first_call_of(links->plan(), state.rows.table.rows[point.row], group_of(state));
  if (call == kNoRow) return;
  workbench.select(selection_of_row(*links, workbench.selection(), call, group_of(state)));
}

std::optional<std::size_t> chosen_point(Workbench& workbench, const RooflineState& state) {
  const std::optional<std::size_t> row = row_of_call(*workbench.run()->plan(), state.rows,
                                                     group_of(state), workbench.selection().call);
  if (!row) return std::nullopt;
  const auto found = std::ranges::find(state.roofline.points, *row, &RooflinePoint::row);
  if (found == state.roofline.points.end()) return std::nullopt;
  return static_cast<std::size_t>(found - state.roofline.points.begin());
}

// Down goes to the point of less time, Up to that of more.
void walk_points(Ui& ui, Workbench& workbench, const RooflineState& state,
                 std::optional<std::size_t> chosen) {
  if (!ui.region_has_keys() || state.roofline.points.empty()) return;
  const std::size_t last = state.roofline.points.size() - 1;
  std::optional<std::size_t> to;
  if (ui.take("Down") || ui.take("Right")) to = chosen ? std::min(*chosen + 1, last) : 0;
  if (ui.take("Up") || ui.take("Left")) to = chosen && *chosen > 0 ? *chosen - 1 : 0;
  if (to) select_point(workbench, state, state.roofline.points[*to]);
}

void draw_points(Ui& ui, Workbench& workbench, const Plot& plot, const RooflineState& state) {
  const Scope scope(ui, "point");
  const Clip clip(ui, plot.inside());
  const PlanView& plan = *workbench.run()->plan();
  const std::optional<std::size_t> chosen = chosen_point(workbench, state);
  walk_points(ui, workbench, state, chosen);
  // Small points lie above large ones, which come first.
  for (std::size_t i = 0; i < state.roofline.points.size(); ++i) {
    const RooflinePoint& point = state.roofline.points[i];
    const Point at = plot.at(point.intensity, point.gflops);
    const float radius = radius_of(point);
    const Color color = color_of(ui, plan, state, point);
    const Rect box{at.x - radius, at.y - radius, 2.0F * radius, 2.0F * radius};
    const Response pressed = ui.hit(
        std::to_string(i), box, {.kind = ItemKind::kMark, .value = point.name, .focusable = false});
    ui.canvas().circle(at, radius, with_alpha(color, 0.75F));
    ui.canvas().ring(at, radius, {.color = pressed.hovered ? ui.theme().ink : ui.theme().inset});
    ui.tooltip(pressed, text_of_point(point));
    if (pressed.clicked) select_point(workbench, state, point);
  }
  if (!chosen) return;
  const RooflinePoint& point = state.roofline.points[*chosen];
  const Point at = plot.at(point.intensity, point.gflops);
  ui.canvas().ring(at, radius_of(point) + 3.0F, {.color = ui.theme().accent, .width = 2.0F});
}

// The places of the legend whose ops have points.
std::vector<std::size_t> places_seen(const PlanView& plan, const RooflineState& state) {
  std::array<bool, kLegendPlaces> there = {};
  for (const RooflinePoint& point : state.roofline.points) {
    const std::uint32_t call =
        first_call_of(plan, state.rows.table.rows[point.row], group_of(state));
    if (call != kNoRow) there[legend_place(class_of(plan, plan.calls[call]))] = true;
  }
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < kLegendPlaces; ++i) {
    if (there[i]) places.push_back(i);
  }
  return places;
}

float legend_width(Ui& ui, std::size_t place) {
  return ui.width(name_of(class_at(place)), Face::kSmall) + 28.0F;
}

// In the bar, or where that has not the room, in rows below it, which are taken from `rest`.
void draw_legend(Ui& ui, std::span<const std::size_t> places, Rect bar, Rect& rest) {
  float needed = 0.0F;
  for (const std::size_t place : places) needed += legend_width(ui, place);
  const bool below = needed > bar.width;
  const auto next_row = [&] { return take_top(rest, ui.row_height()).inset(6.0F, 0.0F); };
  Rect row = below ? next_row() : bar;
  for (const std::size_t place : places) {
    const float width = legend_width(ui, place);
    if (below && width > row.width) row = next_row();
    const Rect at = take_left(row, width);
    ui.canvas().circle({at.x + 6.0F, at.center().y}, 5.0F, color_at(ui.theme(), place));
    ui.text({at.x + 15.0F, at.y, at.width - 15.0F, at.height}, name_of(class_at(place)),
            {.face = Face::kSmall, .color = ui.theme().soft_ink});
  }
}

void draw_unmeasured(Ui& ui, Workbench& workbench, Rect row) {
  const std::string command = "trainscope doctor --roofs --out machine.json";
  constexpr std::string_view kCopy = "Copy how to measure";
  if (button(ui, "measure", take_right(row, button_width(ui, kCopy)), kCopy,
             {.tooltip = "doctor --roofs measures; a run that trains with --machine has roofs"})) {
    ui.copy(command);
    workbench.tell("copied the command line");
  }
  take_right(row, 8.0F);
  ui.text(row, "Without roofs: nobody measured the machine of this run.",
          {.color = ui.theme().warning, .fit = Fit::kEnd});
}

void draw_roofline(Ui& ui, Workbench& workbench, const Rect& rect) {
  const bool is_there = has_times(workbench);
  if (!has_content(ui, workbench, rect, Topic::kProfile, is_there, "No profile")) return;
  auto& state = workbench.state<RooflineState>();
  Rect rest = rect;
  if (rect.height > 150.0F) {
    Rect bar = take_top(rest, ui.row_height() + 8.0F).inset(6.0F, 3.0F);
    tabs(ui, "by", take_left(bar, tabs_width(ui, kGroupNames)), kGroupNames, state.group);
    take_left(bar, 16.0F);
    roofline_of_now(state, *workbench.run());
    draw_legend(ui, places_seen(*workbench.run()->plan(), state), bar, rest);
  }
  const Roofline& roofline = roofline_of_now(state, *workbench.run());
  if (roofline.points.empty()) {
    draw_empty(ui, workbench, rest, "Nothing to show",
               {.text = "No op of the profile has both FLOPs and bytes."});
    return;
  }
  if (roofline.roofs.empty() && rect.height > 220.0F) {
    draw_unmeasured(ui, workbench, take_bottom(rest, ui.row_height() + 8.0F).inset(12.0F, 3.0F));
  }
  rest = rest.inset(12.0F, 6.0F);
  const Plot plot(ui, rest,
                  {.x = roofline.intensity,
                   .y = roofline.gflops,
                   .title = rect.height > 150.0F ? "What each does, of what the machine can" : "",
                   .x_label = "FLOPs a byte",
                   .y_label = "GFLOP/s"});
  draw_roofs(ui, plot, roofline);
  draw_points(ui, workbench, plot, state);
}

CopiedTable roofline_table(Workbench& workbench) {
  CopiedTable copied{.head = {"name", "flops_per_byte", "gflops", "share", "roof"}};
  if (!has_times(workbench)) return copied;
  auto& state = workbench.state<RooflineState>();
  for (const RooflinePoint& point : roofline_of_now(state, *workbench.run()).points) {
    copied.rows.push_back({point.name, fmt::format("{:.9g}", point.intensity),
                           fmt::format("{:.9g}", point.gflops), fmt::format("{:.9g}", point.share),
                           fmt::format("{:.9g}", point.roof)});
  }
  return copied;
}

std::string roofline_twin(Workbench& workbench) {
  return fmt::format("{} --by {}", twin_of_run(workbench, "query"),
                     kGroupNames[workbench.state<RooflineState>().group]);
}

}  // namespace

Panel roofline_panel() {
  return {.id = "roofline",
          .title = "Roofline",
          .about =
              "Each circle is a node, op or kernel: to the right it does more FLOPs for each "
              "byte that it moves, upwards it does more of them in a second; its area is its "
              "share of the step's time. Lines are what the machine was measured to reach: "
              "sloped ones bytes a second of a level of memory, level ones FLOPs a second. "
              "What is far below its line has something to gain.",
          .keys = "Down, Right: the next point by time\nUp, Left: the one before",
          .draw = draw_roofline,
          .table = roofline_table,
          .twin = roofline_twin};
}

}  // namespace trainscope::gui
