// The Roofline panel: what each node does of what the machine could.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gui/panels/empty_state.h"
#include "gui/panels/plot.h"
#include "gui/panels/query/roof_name.h"
#include "gui/panels/query/roofline_state.h"
#include "gui/panels/view/view_parts.h"
#include "gui/ui/controls.h"
#include "gui/views/op_class.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {
namespace {

constexpr float kListWidth = 400.0F;
constexpr float kWideList = 600.0F;  // of wide panels
constexpr float kLeastPlotWidth = 420.0F;
constexpr float kLegendName = 180.0F;  // most of a run's name
constexpr float kNameStep = 34.0F;     // between places that are tried for it
constexpr int kMostTries = 24;

// Which of the two runs a mark is of: filled ones are the active run's.
enum class Side : std::uint8_t { kOwn, kBeside };

float radius_of(const RooflinePoint& point) {
  return 4.0F + 14.0F * std::sqrt(static_cast<float>(std::min(1.0, point.share)));
}

void draw_mark(Ui& ui, Side side, Point at, float radius, Color color) {
  if (side == Side::kBeside) {  // seen on a filled one of its colour too
    ui.canvas().ring(at, radius, {.color = ui.theme().inset, .width = 4.0F});
    return ui.canvas().ring(at, radius, {.color = color, .width = 2.0F});
  }
  ui.canvas().circle(at, radius, with_alpha(color, 0.75F));
  ui.canvas().ring(at, radius, {.color = ui.theme().inset});
}

// Roofs and marks in the plot.
class MarksDrawer {
 public:
  MarksDrawer(Ui& ui, Workbench& workbench, const RooflineState& state, const Plot& plot)
      : ui_(ui), workbench_(workbench), state_(state), plot_(plot) {}

  void draw() {
    const Response response =
        ui_.hit("plot", plot_.inside(), {.kind = ItemKind::kArea, .label = "roofline"});
    const Clip clip(ui_, plot_.inside());
    draw_roofs(state_.own.roofline.roofs, Side::kOwn);
    if (has_other_roofs()) draw_roofs(state_.beside.roofline.roofs, Side::kBeside);
    name_roofs(Side::kOwn);
    if (has_other_roofs()) name_roofs(Side::kBeside);
    draw_side(Side::kOwn, response);
    draw_side(Side::kBeside, response);
    if (const auto chosen = chosen_point(state_, workbench_)) draw_chosen(*chosen);
    if (!pointed_) return;
    ui_.canvas().ring(at(*pointed_), radius_of(*pointed_), {.color = ui_.theme().ink});
    ui_.tooltip(response, text_of_point());
    if (response.clicked) click();
  }

 private:
  const Roofline& roofline_of_side(Side side) const {
    return side == Side::kOwn ? state_.own.roofline : state_.beside.roofline;
  }
  const RunData& run_of_side(Side side) const {
    return side == Side::kOwn ? *state_.own.of : *state_.beside.of;
  }
  Point at(const RooflinePoint& point) const { return plot_.at(point.intensity, point.gflops); }

  bool has_other_roofs() const {
    return state_.has_beside() && state_.beside.roofline.roofs != state_.own.roofline.roofs;
  }

  // Those of the other machine are dashed.
  void draw_roofs(std::span<const Roof> roofs, Side side) {
    const Stroke stroke{
        .color = ui_.theme().soft_ink, .width = 1.5F, .dashed = side == Side::kBeside};
    const PlotAxis& x = state_.axes.intensity;
    for (const Roof& roof : roofs) {
      const bool is_level = roof.gbs == 0.0;
      const double end = is_level ? x.high : roof.gflops / roof.gbs;
      const double low = is_level ? roof.gflops : x.low * roof.gbs;
      ui_.canvas().line(plot_.at(x.low, low), plot_.at(end, roof.gflops), stroke);
    }
  }

  // Those of the other machine with its run; what both machines have has its name once.
  void name_roofs(Side side) {
    const bool is_own = side == Side::kOwn;
    const std::vector<Roof>& roofs = roofline_of_side(side).roofs;
    const Scope scope(ui_, is_own ? "roof" : "roof_beside");
    for (std::size_t i = 0; i < roofs.size(); ++i) {
      const Roof& roof = roofs[i];
      if (!is_own && is_own_roof(roof)) continue;
      const std::string of_run = is_own ? "" : run_of_side(side).name();
      const auto fact = [&](std::string_view key) {
        return is_own ? fmt::format("/roofs/{}/{}", i, key)
                      : fmt::format("{} | /roofs/{}/{}", query_of(run_of_side(side), state_.wishes),
                                    i, key);
      };
      if (roof.gbs == 0.0) {
        name_level(roof,
                   {roof.name, {roof.gflops, Unit::kGigaflopsPerSecond}, fact("gflops"), of_run});
      } else {
        name_slope(roof, {roof.name, {roof.gbs, Unit::kGigabytesPerSecond}, fact("gbs"), of_run});
      }
    }
  }

  // Above the line, at the right or as far to the left as other names need.
  void name_level(const Roof& roof, const RoofName& words) {
    const float width = words.width(ui_);
    const float line = ui_.line_height(Face::kSmall);
    const float y = plot_.at(state_.axes.intensity.high, roof.gflops).y - line - 2.0F;
    for (int i = 0; i < kMostTries; ++i) {
      const float moved = static_cast<float>(i) * kNameStep;
      if (name({plot_.inside().right() - 6.0F - width - moved, y, width, line}, words)) return;
    }
  }

  // Beside the line, where it comes into the plot or as far up as other names need.
  void name_slope(const Roof& roof, const RoofName& words) {
    const float line = ui_.line_height(Face::kSmall);
    const Point start =
        plot_.at(std::max(state_.axes.intensity.low, state_.axes.gflops.low / roof.gbs), 1.0);
    const double ridge = roof.gflops / roof.gbs;
    for (int i = 0; i < kMostTries; ++i) {
      const float x = start.x + kNameStep * static_cast<float>(i);
      const double intensity = state_.axes.intensity.value_at(
          static_cast<double>((x - plot_.inside().x) / plot_.inside().width));
      if (intensity >= ridge) return;
      const float y = plot_.at(intensity, intensity * roof.gbs).y;
      if (name({x + 16.0F, y - 2.0F * line, words.width(ui_), line}, words)) return;
    }
  }

  // False where another name lies there.
  bool name(const Rect& rect, const RoofName& words) {
    const bool is_taken = std::ranges::any_of(
        names_, [&](const Rect& other) { return !other.intersected(rect).empty(); });
    if (is_taken) return false;
    names_.push_back(rect);
    words.draw(ui_, rect);
    return true;
  }

  bool is_own_roof(const Roof& roof) const {
    return std::ranges::any_of(state_.own.roofline.roofs, [&](const Roof& own) {
      const bool same_height = roof.gbs > 0.0 || own.gflops == roof.gflops;
      return own.name == roof.name && own.gbs == roof.gbs && same_height;
    });
  }

  // Small points lie above large ones, which come first. The last one at the mouse is pointed at.
  void draw_side(Side side, const Response& response) {
    const Roofline& roofline = roofline_of_side(side);
    const Scope scope(ui_, side == Side::kOwn ? "point" : "beside");
    for (const std::size_t i : roofline.by_share) {
      const RooflinePoint& point = roofline.points[i];
      const Point center = at(point);
      const float radius = radius_of(point);
      draw_mark(ui_, side, center, radius, color_of_class(ui_.theme(), point.op_class));
      const Rect box{center.x - radius, center.y - radius, 2.0F * radius, 2.0F * radius};
      if (response.hovered && box.contains(ui_.input().mouse)) {
        pointed_ = &point;
        pointed_side_ = side;
      }
      if (!ui_.items().keeps_all()) continue;
      ui_.hit(std::to_string(i), box,
              {.kind = ItemKind::kMark, .value = point.name, .focusable = false});
    }
  }

  // With a line to what the other run does of the same name.
  void draw_chosen(std::size_t chosen) {
    const RooflinePoint& point = state_.own.roofline.points[chosen];
    const Stroke stroke{.color = ui_.theme().accent, .width = 2.0F};
    if (const auto other = state_.beside.roofline.point_named(point.name)) {
      const RooflinePoint& beside = state_.beside.roofline.points[*other];
      ui_.canvas().line(at(point), at(beside), {.color = ui_.theme().accent, .dashed = true});
      ui_.canvas().ring(at(beside), radius_of(beside) + 3.0F, stroke);
    }
    ui_.canvas().ring(at(point), radius_of(point) + 3.0F, stroke);
  }

  std::string text_of_point() const {
    const RooflinePoint& point = *pointed_;
    std::string text = point.name;
    if (state_.has_beside()) text += fmt::format("\nin {}", run_of_side(pointed_side_).name());
    text += fmt::format("\n{:.2f} GFLOP/s at {:.2f} FLOP/B, {:.2f} % of the step", point.gflops,
                        point.intensity, 100.0 * point.share);
    if (point.roof > 0.0) text += fmt::format("\n{:.1f} % of its roof", 100.0 * point.roof);
    return text;
  }

  // The point of this name in the active run: one that only the other run has selects nothing.
  void click() {
    const auto own = state_.own.roofline.point_named(pointed_->name);
    if (own) select_point(workbench_, state_, *own);
  }

  Ui& ui_;
  Workbench& workbench_;
  const RooflineState& state_;
  const Plot& plot_;
  std::vector<Rect> names_ = {};  // where roofs have theirs
  const RooflinePoint* pointed_ = nullptr;
  Side pointed_side_ = Side::kOwn;
};

// Down goes to the next row of the list, Up to the one before.
void walk_points(Ui& ui, Workbench& workbench, const RooflineState& state) {
  if (!ui.region_has_keys() || state.own.roofline.points.empty()) return;
  const std::optional<std::size_t> chosen = chosen_point(state, workbench);
  const std::size_t last = state.own.roofline.points.size() - 1;
  std::optional<std::size_t> to;
  if (ui.take("Down") || ui.take("Right")) to = chosen ? std::min(*chosen + 1, last) : 0;
  if (ui.take("Up") || ui.take("Left")) to = chosen && *chosen > 0 ? *chosen - 1 : 0;
  if (to) select_point(workbench, state, *to);
}

struct LegendEntry {
  std::string text = {};
  Side side = Side::kOwn;
  Color color = {};
};

// The runs where there are two, then the classes whose ops have points.
std::vector<LegendEntry> legend_of(const Ui& ui, const RooflineState& state) {
  std::vector<LegendEntry> entries;
  std::array<bool, kLegendPlaces> there = {};
  for (const RooflineRun* run : {&state.own, &state.beside}) {
    if (run->of == nullptr) continue;
    const Side side = run == &state.own ? Side::kOwn : Side::kBeside;
    if (state.has_beside()) entries.push_back({run->of->name(), side, ui.theme().ink});
    for (const RooflinePoint& point : run->roofline.points) {
      there[legend_place(point.op_class)] = true;
    }
  }
  for (std::size_t i = 0; i < kLegendPlaces; ++i) {
    if (!there[i]) continue;
    entries.push_back(
        {std::string(name_of(class_at(i))), Side::kOwn, color_of_class(ui.theme(), class_at(i))});
  }
  return entries;
}

// In as many rows as it needs, which are taken from `rest`.
void draw_legend(Ui& ui, const RooflineState& state, Rect& rest) {
  const Scope scope(ui, "legend");
  const auto next_row = [&] { return take_top(rest, ui.row_height()).inset(8.0F, 0.0F); };
  Rect row = next_row();
  for (const LegendEntry& entry : legend_of(ui, state)) {
    const float width =
        std::min(kLegendName, std::ceil(ui.width(entry.text, Face::kSmall))) + 28.0F;
    if (width > row.width) row = next_row();
    const Rect at = take_left(row, width);
    draw_mark(ui, entry.side, {at.x + 6.0F, at.center().y}, 5.0F, entry.color);
    ui.text({at.x + 15.0F, at.y, at.width - 27.0F, at.height}, entry.text,
            {.face = Face::kSmall, .color = ui.theme().soft_ink, .fit = Fit::kMiddle});
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
  ui.fitting_text(row, {"Without roofs: nobody measured the machine of this run.", "Not measured"},
                  {.color = ui.theme().warning});
}

void draw_roofline_tools(Ui& ui, Workbench& workbench, Rect bar) {
  RooflineState& state = roofline_state_of(workbench);
  bar = bar.inset(6.0F, 3.0F);
  auto group = static_cast<std::size_t>(std::ranges::find(kRooflineGroups, state.wishes.by) -
                                        kRooflineGroups.begin());
  tabs(ui, "by", take_left(bar, tabs_width(ui, kRooflineGroupNames)), kRooflineGroupNames, group);
  state.wishes.by = kRooflineGroups[group];
  take_left(bar, 8.0F);
  draw_call_query(ui, workbench, bar, state.own.rows.fault);
}

// The list's part of the panel, which is taken from it; empty where there is no room.
Rect take_list(Rect& rest) {
  if (rest.width >= kListWidth + kLeastPlotWidth) {
    return take_right(rest, rest.width > 1300.0F ? kWideList : kListWidth);
  }
  return rest.height > 420.0F ? take_bottom(rest, std::floor(rest.height * 0.36F)) : Rect{};
}

void draw_roofline(Ui& ui, Workbench& workbench, const Rect& rect) {
  const bool is_there = has_call_times(workbench);
  if (!has_content(ui, workbench, rect, Topic::kProfile, is_there, "No profile")) return;
  Rect rest = rect;
  const bool roomy = rect.height > 150.0F;
  if (roomy) draw_roofline_tools(ui, workbench, take_top(rest, ui.row_height() + 8.0F));
  take_panel_keys(ui, workbench, roofline_commands());
  RooflineState& state = roofline_state_of(workbench);
  follow_sorting(state.wishes, state.table, roofline_columns(state));
  update_roofline(state, workbench);
  const std::string& fault = state.own.rows.fault;
  if (!fault.empty()) return draw_wrong_filter(ui, workbench, rest, fault);
  if (state.own.roofline.points.empty() && state.beside.roofline.points.empty()) {
    draw_empty(ui, workbench, rest, "Nothing to show",
               {.text = "No op of the profile has both FLOPs and bytes, and matches the filter."});
    return;
  }
  walk_points(ui, workbench, state);
  if (roomy) draw_legend(ui, state, rest);
  if (state.own.roofline.roofs.empty() && rect.height > 220.0F) {
    draw_unmeasured(ui, workbench, take_bottom(rest, ui.row_height() + 8.0F).inset(12.0F, 3.0F));
  }
  const Rect list = roomy ? take_list(rest) : Rect{};
  if (!list.empty()) draw_roofline_list(ui, workbench, state, list);
  const Plot plot(ui, rest.inset(12.0F, 6.0F),
                  {.x = state.axes.intensity,
                   .y = state.axes.gflops,
                   .title = roomy ? "What each does, of what the machine can" : "",
                   .x_label = "FLOPs a byte",
                   .y_label = "GFLOP/s"});
  MarksDrawer(ui, workbench, state, plot).draw();
}

CopiedTable roofline_table(Workbench& workbench) {
  CopiedTable copied{.head = {"name", "flops_per_byte", "gflops", "share", "roof"}};
  if (!has_call_times(workbench)) return copied;
  RooflineState& state = roofline_state_of(workbench);
  update_roofline(state, workbench);
  if (state.has_beside()) {
    for (const char* name : {"other_flops_per_byte", "other_gflops", "other_share", "other_roof"}) {
      copied.head.emplace_back(name);
    }
  }
  const auto add = [](std::vector<std::string>& cells, const RooflinePoint& point) {
    for (const double value : {point.intensity, point.gflops, point.share, point.roof}) {
      cells.push_back(fmt::format("{:.9g}", value));
    }
  };
  for (const RooflinePoint& point : state.own.roofline.points) {
    std::vector<std::string>& cells = copied.rows.emplace_back();
    cells.push_back(point.name);
    add(cells, point);
    const auto other = state.beside.roofline.point_named(point.name);
    if (other) add(cells, state.beside.roofline.points[*other]);
    cells.resize(copied.head.size());
  }
  return copied;
}

std::string roofline_twin(Workbench& workbench) {
  if (workbench.run() == nullptr) return twin_of_run(workbench, "query");
  return query_of(*workbench.run(), roofline_state_of(workbench).wishes);
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
              "What is far below its line has something to gain. Rings are another run's, "
              "dashed lines its machine's. Filter and other run are those of Kernels.",
          .keys = "/: filter\nDown, Right: the next point of the list\nUp, Left: the one before",
          .draw = draw_roofline,
          .table = roofline_table,
          .twin = roofline_twin,
          .commands = roofline_commands(),
          .view = roofline_view()};
}

}  // namespace trainscope::gui
