// What differs between two stages: a list beside the graph, with the reasons, and ghosts of nodes
// that went.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gui/panels/graph/graph_state.h"

namespace trainscope::gui {
namespace {

constexpr std::array<TableColumn, 2> kChangeColumns = {{
    {.name = "name",
     .title = "node or value",
     .align = Align::kLeft,
     .help = "Nodes first, then values",
     .sorts = false},
    {.name = "kind",
     .title = "became",
     .width = 84.0F,
     .align = Align::kLeft,
     .help = "Of what is gone: where it went. Of what is new: added, or rematerialized",
     .sorts = false},
}};

Color color_of_mark(const Theme& theme, ChangeMark mark) {
  if (mark == ChangeMark::kAdded) return theme.differences[0];
  return mark == ChangeMark::kGone ? theme.differences[1] : theme.differences[2];
}

void draw_change_cell(Ui& ui, const GraphState& state, const TableCell& cell) {
  const StageChange& row = state.changes.rows[cell.row];
  if (cell.column == 1) {
    return ui.text(cell.rect, row.kind, {.color = ui.theme().soft_ink, .fit = Fit::kEnd});
  }
  Rect rest = cell.rect;
  const Rect sign = take_left(rest, 14.0F);
  ui.canvas().fill({sign.x, sign.y + sign.height / 2.0F - 5.0F, 3.0F, 10.0F},
                   color_of_mark(ui.theme(), row.mark));
  ui.text({sign.x + 5.0F, sign.y, 9.0F, sign.height}, std::string(1, sign_of(row.mark)),
          {.face = Face::kNumber});
  ui.text(rest, row.name,
          {.color = row.is_node ? ui.theme().ink : ui.theme().soft_ink, .fit = Fit::kMiddle});
}

// The row that was chosen last: it is chosen until something else is selected.
struct ChosenChange {
  std::size_t row = 0;
  std::uint32_t serial = 0;              // of what it is about
  Selection selection = {};              // when it had been chosen
  std::optional<std::size_t> seen = {};  // the row that was chosen in the frame before
};

// Or else the row of the selected node, or of the selected value.
std::optional<std::size_t> chosen_change(const ChosenChange& last,
                                         const std::vector<StageChange>& rows,
                                         const Selection& selection) {
  const bool is_last = last.row < rows.size() && rows[last.row].serial == last.serial &&
                       last.selection == selection && last.serial != 0;
  if (is_last) return last.row;
  const bool is_value = selection.subject == Subject::kValue;
  const std::uint32_t serial = is_value ? selection.value : selection.node;
  const auto found = std::ranges::find_if(rows, [&](const StageChange& row) {
    return row.is_node != is_value && row.serial == serial;
  });
  if (serial == 0 || found == rows.end()) return std::nullopt;
  return static_cast<std::size_t>(found - rows.begin());
}

// The node itself where it is in this stage, or else what does its work; a value of the plan.
void select_change(GraphState& state, Workbench& workbench, const StageChange& row) {
  const PlanLinks* links = workbench.links();
  const bool is_value =
      !row.is_node && links != nullptr && links->value_of_serial(row.serial) != kNoRow;
  if (is_value) return workbench.select(select_value(*links, workbench.selection(), row.serial));
  std::uint32_t place = row.is_node ? state.picture.find(row.serial) : kNoPlace;
  for (const std::uint32_t other : row.others) {
    if (place == kNoPlace) place = state.picture.find(other);
  }
  if (place != kNoPlace) return select_place(state, workbench, place);
  workbench.tell(fmt::format("{}: {} by {}: {}", row.name, row.kind, row.stage, row.reason));
}

// Why, below the list: as high as its text, up to half of it.
void draw_reason(Ui& ui, Rect& rest, const StageChange& row) {
  const std::string text = fmt::format("{} {}. {}: {}", row.kind, row.text, row.stage, row.reason);
  const TextLook look{.face = Face::kSmall, .color = ui.theme().soft_ink, .fit = Fit::kEnd};
  const float width = rest.width - 16.0F;
  float height = 0.0F;
  {
    const Clip nowhere(ui, {0.0F, 0.0F, 0.0F, 0.0F});
    height = ui.paragraph({0.0F, 0.0F, width, 1e6F}, text, look);
  }
  const Rect place = take_bottom(rest, std::min(height + 12.0F, std::floor(rest.height / 2.0F)));
  const Surface surface(ui, place, ui.theme().header);
  ui.paragraph(place.inset(8.0F, 6.0F), text, look);
}

}  // namespace

void draw_changes(Ui& ui, Workbench& workbench, GraphState& state, const Rect& rect) {
  Rect rest = rect;
  const std::vector<StageChange>& rows = state.changes.rows;
  auto& last = workbench.state<ChosenChange>();
  const std::optional<std::size_t> chosen = chosen_change(last, rows, workbench.selection());
  if (chosen && rect.height > 220.0F) draw_reason(ui, rest, rows[*chosen]);
  if (rows.empty()) {
    return ui.text(rest, "The two stages are the same",
                   {.color = ui.theme().soft_ink, .align = Align::kCenter});
  }
  const TableResponse response = table(ui, kChangesTable, rest,
                                       {.columns = kChangeColumns,
                                        .rows = rows.size(),
                                        .chosen = chosen,
                                        .scrolls_to_chosen = last.seen != chosen},
                                       state.change_table, [&](Ui& inner, const TableCell& cell) {
                                         draw_change_cell(inner, state, cell);
                                       });
  last.seen = chosen;
  if (!response.clicked) return;
  select_change(state, workbench, rows[*response.clicked]);
  last.row = *response.clicked;
  last.serial = rows[last.row].serial;
  last.selection = workbench.selection();
}

void draw_ghosts(Ui& ui, const StageStep& step, const GraphLayout& layout,
                 const GraphCamera& camera, const Rect& rect, float share) {
  const auto on_view = [&](LayoutPoint at) {
    return Rect{rect.x + (at.x - camera.x) * camera.zoom, rect.y + (at.y - camera.y) * camera.zoom,
                kNodeWidth * camera.zoom, kNodeHeight * camera.zoom};
  };
  for (const GraphGhost& ghost : step.ghosts) {
    const Rect place = on_view(ghost.at);
    if (!ui.canvas().visible(place)) continue;
    const bool has_heir = ghost.heir != kNoPlace;
    const Stroke stroke{.color = has_heir ? ui.theme().soft_ink : ui.theme().differences[1],
                        .dashed = true};
    ui.canvas().outline(place, stroke, 3.0F);
    if (has_heir) {
      const LaidNode& heir = layout.nodes[ghost.heir];
      const Point from = place.center();
      const Point way = on_view({heir.x, heir.y}).center() - from;
      ui.canvas().line(from, {from.x + way.x * share, from.y + way.y * share}, stroke);
    }
    if (!ui.items().keeps_all()) continue;
    ui.hit(fmt::format("ghost/{}", ghost.name), place,
           {.kind = ItemKind::kMark, .label = ghost.op, .value = ghost.fate, .focusable = false});
  }
}

}  // namespace trainscope::gui
