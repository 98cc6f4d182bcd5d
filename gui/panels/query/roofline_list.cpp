// The points of a roofline as a table, with what the run beside has of the same name.
#include <fmt/format.h>

#include <algorithm>

#include "gui/panels/query/roofline_state.h"

namespace trainscope::gui {
namespace {

constexpr TableColumn kRate = {
    .name = "gflops",
    .title = "GFLOP/s",
    .width = 78.0F,
    .help = "Floating-point operations of the op's definition, by its time"};
constexpr TableColumn kOtherRate = {.name = "other_gflops",
                                    .title = "other GFLOP/s",
                                    .width = 96.0F,
                                    .help = "In the run beside this one",
                                    .sorts = false};
constexpr TableColumn kIntensity = {
    .name = "intensity", .title = "FLOP/B", .width = 70.0F, .help = "FLOPs by bytes"};
constexpr TableColumn kShareOfTime = {.name = "share",
                                      .title = "share %",
                                      .width = 70.0F,
                                      .help = "Of the time of all profiled steps"};
constexpr TableColumn kShareOfRoof = {
    .name = "roof",
    .title = "roof %",
    .width = 66.0F,
    .help =
        "The time that it would take at the machine's measured roofs, by the time that it "
        "takes"};
constexpr TableColumn kTime = {
    .name = "ms",
    .title = "ms",
    .width = 70.0F,
    .help = "Milliseconds of a step on the driving thread, the mean of the profiled steps"};

Unit unit_of(std::string_view column) {
  if (column == "gflops") return Unit::kGigaflopsPerSecond;
  if (column == "intensity") return Unit::kFlopsPerByte;
  return column == "ms" ? Unit::kMilliseconds : Unit::kShare;
}

void draw_point_name(Ui& ui, const RooflinePoint& point, const Rect& rect) {
  Rect rest = rect;
  const Rect swatch = take_left(rest, 8.0F);
  ui.canvas().circle({swatch.x + 4.0F, swatch.center().y}, 4.0F,
                     color_of_class(ui.theme(), point.op_class));
  take_left(rest, 6.0F);
  ui.text(rest, point.name, {.fit = Fit::kMiddle});
}

void draw_other_rate(Ui& ui, const RooflineState& state, const RooflinePoint& point,
                     const Rect& rect) {
  const std::optional<std::size_t> other = state.beside.roofline.point_named(point.name);
  if (!other) return;
  const RooflinePoint& beside = state.beside.roofline.points[*other];
  ui.number("other_gflops", rect, {beside.gflops, Unit::kGigaflopsPerSecond},
            fmt::format("{} | /rows/{}/gflops", query_of(*state.beside.of, state.wishes),
                        state.beside.rows.printed_position(beside.row, state.wishes)),
            {.face = Face::kNumber, .hides_unit = true});
}

void draw_point_cell(Ui& ui, const RooflineState& state, const TableColumn& column,
                     const TableCell& cell) {
  const RooflinePoint& point = state.own.roofline.points[cell.row];
  if (cell.column == 0) return draw_point_name(ui, point, cell.rect);
  if (column.name == kOtherRate.name) return draw_other_rate(ui, state, point, cell.rect);
  const profiler::Breakdown& table = state.own.rows.table;
  ui.number(column.name, cell.rect,
            {profiler::column_of(table, table.rows[point.row], column.name), unit_of(column.name)},
            fmt::format("/rows/{}/{}", state.own.rows.printed_position(point.row, state.wishes),
                        column.name),
            {.face = Face::kNumber, .hides_unit = true});
}

}  // namespace

std::vector<TableColumn> roofline_columns(const RooflineState& state) {
  std::vector<TableColumn> columns = {
      {.name = "name",
       .title = name_of(state.wishes.by),
       .align = Align::kLeft,
       .help = "What the points are, with the colour of its first op"}};
  columns.push_back(kTime);
  columns.push_back(kRate);
  if (state.has_beside()) columns.push_back(kOtherRate);
  columns.push_back(kIntensity);
  if (!state.own.roofline.roofs.empty()) columns.push_back(kShareOfRoof);
  columns.push_back(kShareOfTime);
  return columns;
}

void draw_roofline_list(Ui& ui, Workbench& workbench, RooflineState& state, const Rect& rect) {
  const std::vector<TableColumn> columns = roofline_columns(state);
  const bool moved = !(state.selected == workbench.selection());
  state.selected = workbench.selection();
  const TableResponse response = table(ui, "points", rect,
                                       {.columns = columns,
                                        .rows = state.own.roofline.points.size(),
                                        .chosen = chosen_point(state, workbench),
                                        .scrolls_to_chosen = moved},
                                       state.table, [&](Ui& inner, const TableCell& cell) {
                                         draw_point_cell(inner, state, columns[cell.column], cell);
                                       });
  if (response.sorted) state.wishes.sort = columns[state.table.sorted_by].name;
  if (!response.clicked) return;
  select_point(workbench, state, *response.clicked);
  state.selected = workbench.selection();  // it is where it was clicked: nothing scrolls
}

}  // namespace trainscope::gui
