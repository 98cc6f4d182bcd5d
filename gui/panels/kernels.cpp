// The Kernels panel: where the time of profiled steps went, by node, op, kernel, layer, phase,
// pass.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gui/panels/empty_state.h"
#include "gui/panels/query/kernels_state.h"
#include "gui/panels/view/view_parts.h"
#include "gui/ui/controls.h"
#include "gui/ui/table.h"
#include "gui/views/kernel_rows.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {
namespace {

using profiler::BreakdownRow;
using profiler::GroupBy;

void draw_tools(Ui& ui, Workbench& workbench, KernelsState& state, Rect bar) {
  static constexpr std::array<std::string_view, 7> kGroupNames = {"call",  "kernel", "op",  "node",
                                                                  "layer", "phase",  "pass"};
  bar = bar.inset(6.0F, 3.0F);
  std::array<std::string_view, 7> names = kGroupNames;
  float width = tabs_width(ui, names);
  const bool narrow = bar.width - width < 140.0F;
  auto chosen = static_cast<std::size_t>(state.wishes.by);
  if (narrow) {
    std::array<MenuItem, 7> items;
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i] = {.label = std::string(kGroupNames[i]), .checked = i == chosen};
    }
    const std::string label = fmt::format("by {} ▼", kGroupNames[chosen]);
    width = button_width(ui, label);
    const int picked = menu_button(ui, "by", take_left(bar, width), label, items);
    if (picked >= 0) chosen = static_cast<std::size_t>(picked);
  } else {
    tabs(ui, "by", take_left(bar, width), names, chosen);
  }
  state.wishes.by = static_cast<GroupBy>(chosen);
  take_left(bar, 8.0F);
  draw_call_query(ui, workbench, bar, state.rows.fault);
}

// A bar as long as the row's share of the greatest, and the share in digits.
void draw_share(Ui& ui, const TableCell& cell, double share, double greatest, std::size_t row) {
  const float room = std::max(0.0F, cell.rect.width - ui.width("100.00", Face::kNumber) - 8.0F);
  const float length = room * static_cast<float>(share / std::max(greatest, 1e-9));
  ui.canvas().fill({cell.rect.x, cell.rect.center().y - 3.0F, std::max(1.0F, length), 6.0F},
                   ui.theme().series[0], 2.0F);
  ui.number("share", cell.rect, {share, Unit::kShare}, fmt::format("/rows/{}/share", row),
            {.face = Face::kNumber, .hides_unit = true});
}

// What the run itself takes, which may have no such row.
double own_ms(const KernelsState& state, std::size_t row) {
  return state.is_of_other_alone(row) ? 0.0 : state.rows.table.ms(state.row(row).ns);
}

void draw_other(Ui& ui, const KernelsState& state, const TableCell& cell, bool is_difference) {
  const auto found = state.other_row.find(state.row(cell.row).name);
  if (found == state.other_row.end()) return;
  const profiler::Breakdown& table = state.other_rows.table;
  const double other = table.ms(table.rows[found->second].ns);
  const double more = other - own_ms(state, cell.row);
  const Color color = more > 0.0 ? ui.theme().error : ui.theme().good;
  if (is_difference) {
    ui.number("more_ms", cell.rect, {more, Unit::kMilliseconds}, {},
              {.face = Face::kNumber, .color = color, .hides_unit = true});
    return;
  }
  const std::size_t printed = state.other_rows.printed_position(found->second, state.wishes);
  ui.number("other_ms", cell.rect, {other, Unit::kMilliseconds},
            fmt::format("{} | /rows/{}/ms", query_of(*state.shown_other, state.wishes), printed),
            {.face = Face::kNumber, .hides_unit = true});
}

std::string title_of_row(const BreakdownRow& row) {
  if (row.name.empty()) return "(no name)";
  return row.is_call ? row.name : "(" + row.name + ")";
}

void draw_cell(Ui& ui, const KernelsState& state, const TableCell& cell) {
  const profiler::BreakdownRow& row = state.row(cell.row);
  const bool is_of_other = state.is_of_other_alone(cell.row);
  if (cell.column == 0) {
    const bool is_soft = !row.is_call || is_of_other;
    return ui.text(cell.rect, title_of_row(row),
                   {.color = is_soft ? ui.theme().soft_ink : ui.theme().ink, .fit = Fit::kMiddle});
  }
  const NumberColumn& column = *state.columns[cell.column - 1];
  if (&column == &kOtherColumn || &column == &kMoreColumn) {
    return draw_other(ui, state, cell, &column == &kMoreColumn);
  }
  if (is_of_other) return;
  const std::size_t printed = state.rows.printed_position(cell.row, state.wishes);
  const double value = profiler::column_of(state.rows.table, row, column.column.name);
  if (column.column.name == "share") {
    return draw_share(ui, cell, value, state.greatest_share, printed);
  }
  if (value == 0.0) return;  // it has none of this
  ui.number(column.column.name, cell.rect, {value, column.unit},
            fmt::format("/rows/{}/{}", printed, column.column.name),
            {.face = Face::kNumber, .hides_unit = true});
}

void select_row(Workbench& workbench, const KernelsState& state, const BreakdownRow& row) {
  const PlanLinks* links = workbench.links();
  if (links == nullptr) return;
  const std::uint32_t call = first_call_of(links->plan(), row, state.wishes.by);
  if (call == kNoRow) return;
  workbench.select(selection_of_row(*links, workbench.selection(), call, state.wishes.by));
}

// What is no call of this run is chosen alone.
void choose_row(Workbench& workbench, KernelsState& state, std::size_t at) {
  const BreakdownRow& row = state.row(at);
  if (state.is_of_other_alone(at)) {
    workbench.tell(fmt::format("{} is in {} alone", title_of_row(row), state.shown_other->name()));
  } else {
    select_row(workbench, state, row);
  }
  state.chosen.choose(row.name, row.is_call, workbench.selection().call);
  state.selected = workbench.selection();  // it is where it was clicked: nothing scrolls
}

void draw_footer(Ui& ui, const Rect& rect, const KernelsState& state) {
  const Surface surface(ui, rect, ui.theme().header);
  const profiler::Breakdown& table = state.rows.table;
  std::int64_t shown_ns = 0;
  for (const profiler::BreakdownRow& row : table.rows) shown_ns += row.ns;
  Rect rest = rect.inset(8.0F, 0.0F);
  const auto say = [&](std::string_view words) {
    ui.text(take_left(rest, std::ceil(ui.width(words)) + 6.0F), words,
            {.color = ui.theme().soft_ink});
  };
  const auto add = [&](std::string_view name, const Quantity& quantity, float gap,
                       std::string_view help) {
    const float width = std::ceil(ui.width(text_of(quantity).whole(), Face::kNumber));
    const Rect place = take_left(rest, width);
    take_left(rest, gap);
    ui.tooltip(
        ui.hit(fmt::format("{}/about", name), place, {.kind = ItemKind::kArea, .focusable = false}),
        help);
    ui.number(name, place, quantity, fmt::format("/{}", name));
  };
  add("rows", {static_cast<double>(table.rows.size()), Unit::kCount}, 6.0F,
      "That the filter leaves: calls, put together as they are grouped, and what is no call");
  say("rows of");
  add("steps", {static_cast<double>(table.steps), Unit::kCount}, 6.0F,
      "Whole steps in the profile; times are the mean of them");
  say("profiled steps of");
  add("step_ms", {table.ms(table.total_ns), Unit::kMilliseconds}, 2.0F,
      "Milliseconds of a step, the mean of the profiled steps");
  if (state.wishes.filter.empty() || rest.width < 220.0F) return;
  ui.text(take_left(rest, std::ceil(ui.width(", shown")) + 6.0F), ", shown",
          {.color = ui.theme().soft_ink});
  add("shown_ms", {table.ms(shown_ns), Unit::kMilliseconds}, 2.0F,
      "Milliseconds of a step in the rows that the filter leaves");
}

void group_by_next(Workbench& workbench) {
  GroupBy& by = workbench.state<KernelsState>().wishes.by;
  by = by == GroupBy::kPass ? GroupBy::kCall : static_cast<GroupBy>(static_cast<int>(by) + 1);
}

constexpr AppCommand kKernelsCommands[] = {
    {.id = "kernels.by",
     .title = "Kernels: the next grouping",
     .panel_key = "G",
     .help = "Rows by call, kernel, op, node, layer, phase or pass",
     .run = group_by_next,
     .enabled = [](const Workbench& w) { return w.run() != nullptr; }},
    {.id = "kernels.no_filter",
     .title = "Kernels, Roofline: no filter",
     .help = "All calls again",
     .run = [](Workbench& w) { w.state<CallQuery>().filter.clear(); },
     .enabled = [](const Workbench& w) { return w.run() != nullptr; }},
    {.id = "kernels.beside",
     .title = "Kernels, Roofline: the next run beside this one",
     .help = "The next of the open runs beside the active one, after the last none",
     .run = take_next_beside,
     .enabled = [](const Workbench& w) { return w.count() > 1; }},
};

void draw_kernels(Ui& ui, Workbench& workbench, const Rect& rect) {
  const bool has_profile = has_call_times(workbench);
  if (!has_content(ui, workbench, rect, Topic::kProfile, has_profile, "No profile")) return;
  RunData& run = *workbench.run();
  Rect rest = rect;
  if (rect.height > 150.0F) {
    draw_tools(ui, workbench, workbench.state<KernelsState>(),
               take_top(rest, ui.row_height() + 8.0F));
  }
  take_panel_keys(ui, workbench, kKernelsCommands);
  KernelsState& state = kernels_of(workbench);
  RunData* other = run_beside(workbench);
  choose_columns(state, run.machine() != nullptr, other != nullptr);
  const std::vector<TableColumn> columns = columns_of(state);
  follow_sorting(state.wishes, state.table, columns);
  const KernelRows& rows = rows_of_now(state, run, other);
  if (!rows.fault.empty()) return draw_wrong_filter(ui, workbench, rest, rows.fault);
  if (rect.height > 150.0F) draw_footer(ui, take_bottom(rest, ui.row_height()), state);
  const bool moved = !(state.selected == workbench.selection());
  state.selected = workbench.selection();
  state.chosen.follow(*run.plan(), workbench.selection().call, state.wishes.by);
  const TableResponse response =
      table(ui, "table", rest,
            {.columns = columns,
             .rows = state.row_count(),
             .chosen = state.chosen_row(),
             .scrolls_to_chosen = moved},
            state.table, [&](Ui& inner, const TableCell& cell) { draw_cell(inner, state, cell); });
  if (response.sorted) state.wishes.sort = columns[state.table.sorted_by].name;
  if (response.clicked) choose_row(workbench, state, *response.clicked);
}

// Empty where the run has no such row.
std::string value_of(const KernelsState& state, std::size_t at, const NumberColumn& column) {
  const BreakdownRow& row = state.row(at);
  const bool is_other = &column == &kOtherColumn;
  if (!is_other && &column != &kMoreColumn) {
    if (state.is_of_other_alone(at)) return {};
    return fmt::format("{:.9g}", profiler::column_of(state.rows.table, row, column.column.name));
  }
  const auto found = state.other_row.find(row.name);
  if (found == state.other_row.end()) return {};
  const profiler::Breakdown& table = state.other_rows.table;
  const double other = table.ms(table.rows[found->second].ns);
  return fmt::format("{:.9g}", is_other ? other : other - own_ms(state, at));
}

CopiedTable kernels_table(Workbench& workbench) {
  if (!has_call_times(workbench)) return {};
  KernelsState& state = kernels_of(workbench);
  rows_of_now(state, *workbench.run(), run_beside(workbench));
  CopiedTable copied{.head = {std::string(name_of(state.wishes.by))}};
  for (const NumberColumn* column : state.columns) copied.head.emplace_back(column->column.name);
  for (std::size_t i = 0; i < state.row_count(); ++i) {
    std::vector<std::string>& cells = copied.rows.emplace_back();
    cells.push_back(state.row(i).name);
    for (const NumberColumn* column : state.columns) cells.push_back(value_of(state, i, *column));
  }
  return copied;
}

std::string kernels_twin(Workbench& workbench) {
  if (workbench.run() == nullptr) return twin_of_run(workbench, "query");
  return query_of(*workbench.run(), kernels_of(workbench).wishes);
}

}  // namespace

Panel kernels_panel() {
  return {.id = "kernels",
          .title = "Kernels",
          .about =
              "Where the time of the profiled steps went. Each row is one node of the ONNX "
              "model, op, kernel, layer, phase or pass; rows add up to the steps, to the "
              "nanosecond. Time in parentheses is no call's: copies, waits, what was not "
              "recorded. Click a head to sort, a row to select it in all panels. Rows of "
              "the other run alone stand last.",
          .keys = "/: filter\nUp, Down, PageUp, PageDown, Home, End: rows",
          .draw = draw_kernels,
          .table = kernels_table,
          .twin = kernels_twin,
          .commands = kKernelsCommands,
          .view = kernels_view()};
}

}  // namespace trainscope::gui
