// Lays a table's columns out, draws its head and the rows that are seen.
#include "gui/ui/table.h"

#include <algorithm>
#include <cmath>

#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

constexpr float kCellPadding = 8.0F;
constexpr float kLeastFlexible = 120.0F;
constexpr float kLeastColumn = 40.0F;
constexpr float kArrow = 12.0F;
constexpr std::string_view kStop = "keys";  // of Tab: all rows

struct PlacedColumn {
  std::size_t column = 0;
  float x = 0.0F;
  float width = 0.0F;
};

float wanted_width(const Ui& ui, const TableColumn& column, const TableState& state,
                   std::size_t i) {
  if (i < state.widths.size() && state.widths[i] > 0.0F) return state.widths[i];
  // Widths are for the usual sizes of text and numbers.
  const float scale =
      std::max(ui.line_height(Face::kNumber) / 13.0F, ui.line_height(Face::kText) / 14.0F);
  return std::max(std::ceil(column.width * scale), std::ceil(ui.width(column.title, Face::kSmall)) +
                                                       kArrow + 2.0F + 2.0F * kCellPadding);
}

std::vector<PlacedColumn> placed(const Ui& ui, const Rect& rect, const TableLook& look,
                                 const TableState& state) {
  std::vector<PlacedColumn> columns;
  float fixed = 0.0F;
  float least = 0.0F;
  for (std::size_t i = 0; i < look.columns.size(); ++i) {
    const bool flexible = look.columns[i].width == 0.0F;
    const float width = flexible ? 0.0F : wanted_width(ui, look.columns[i], state, i);
    least = std::max(least, flexible ? kLeastFlexible : 0.0F);
    columns.push_back({.column = i, .width = width});
    fixed += width;
  }
  while (columns.size() > 1 && fixed + least > rect.width) {
    std::size_t last = columns.size() - 1;
    while (last > 0 && columns[last].width == 0.0F) --last;
    fixed -= columns[last].width;
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(last));
  }
  float x = rect.x;
  for (PlacedColumn& column : columns) {
    if (column.width == 0.0F) column.width = std::max(0.0F, rect.width - fixed);
    column.x = x;
    x += column.width;
  }
  return columns;
}

class Table {
 public:
  Table(Ui& ui, const TableLook& look, TableState& state) : ui_(ui), look_(look), state_(state) {}

  void head(const Rect& rect, const std::vector<PlacedColumn>& columns) {
    const Surface surface(ui_, rect, ui_.theme().header);
    const Scope scope(ui_, "column");
    for (const PlacedColumn& column : columns) resize(rect, column);
    for (const PlacedColumn& column : columns) title(rect, column);
    ui_.canvas().fill({rect.x, rect.bottom() - 1.0F, rect.width, 1.0F}, ui_.theme().line);
  }

  void keys(float view_height) {
    const bool is_focused = ui_.memory().focus == ui_.path_of(kStop);
    if (is_focused && !state_.had_focus) ui_.take_region();
    state_.had_focus = is_focused;
    if (!ui_.region_has_keys() || look_.rows == 0 || (look_.yields && !is_focused)) return;
    const auto page = std::max<std::ptrdiff_t>(
        1, static_cast<std::ptrdiff_t>(view_height / ui_.row_height()) - 1);
    const auto last = static_cast<std::ptrdiff_t>(look_.rows) - 1;
    const std::ptrdiff_t at =
        look_.chosen ? static_cast<std::ptrdiff_t>(*look_.chosen) : std::ptrdiff_t{-1};
    std::optional<std::ptrdiff_t> to;
    if (ui_.take("Down")) to = at + 1;
    if (ui_.take("Up")) to = at - 1;
    if (ui_.take("PageDown")) to = at + page;
    if (ui_.take("PageUp")) to = at - page;
    if (ui_.take("Home")) to = 0;
    if (ui_.take("End")) to = last;
    if (look_.chosen && ui_.take("Enter")) response.activated = look_.chosen;
    if (!to) return;
    response.clicked = static_cast<std::size_t>(std::clamp(*to, std::ptrdiff_t{0}, last));
  }

  void rows(const Rect& view, float offset, const std::vector<PlacedColumn>& columns,
            const std::function<void(Ui&, const TableCell&)>& draw) {
    const float height = ui_.row_height();
    const Clip clip(ui_, view, Moves::kUpAndDown);
    const Scope scope(ui_, "row");
    const auto first = static_cast<std::size_t>(std::max(0.0F, std::floor(offset / height)));
    for (std::size_t i = first; i < look_.rows; ++i) {
      const Rect row{view.x, view.y + height * static_cast<float>(i) - offset, view.width, height};
      if (row.y >= view.bottom()) break;
      draw_row(i, row, columns, draw);
    }
  }

  // The item that Tab comes to. It leaves the mouse to the rows, and has the focus when one of them
  // is clicked.
  void stop(const Rect& view) {
    if (look_.rows == 0) return;
    const std::string path = ui_.path_of(kStop);
    ui_.items().add({.path = path,
                     .kind = ItemKind::kArea,
                     .rect = view,
                     .seen = view.intersected(ui_.canvas().clip()),
                     .focusable = true,
                     .layer = ui_.layer(),
                     .ink = ui_.paper(),
                     .paper = ui_.paper()});
    if (is_pressed_) ui_.memory().focus = path;
    if (ui_.memory().focus != path) return;
    ui_.canvas().outline(view.inset(1.0F), {.color = ui_.theme().accent, .width = 1.5F}, 3.0F);
  }

  TableResponse response;

 private:
  void resize(const Rect& rect, const PlacedColumn& column) {
    if (look_.columns[column.column].width == 0.0F) return;
    const std::string name = std::string(look_.columns[column.column].name) + "/width";
    const Rect grip{column.x - kLeastControl / 2.0F, rect.y, kLeastControl, rect.height};
    const Response grabbed = ui_.hit(name, grip, {.kind = ItemKind::kSplitter, .focusable = false});
    ui_.canvas().fill({column.x, rect.y + 5.0F, 1.0F, rect.height - 10.0F},
                      grabbed.hovered || grabbed.held ? ui_.theme().accent : ui_.theme().line);
    if (!grabbed.held || grabbed.dragged.x == 0.0F) return;
    state_.widths.resize(look_.columns.size());
    state_.widths[column.column] = std::max(kLeastColumn, column.width - grabbed.dragged.x);
  }

  void title(const Rect& rect, const PlacedColumn& placed) {
    const TableColumn& column = look_.columns[placed.column];
    const bool is_sorted = column.sorts && state_.sorted_by == placed.column;
    const Rect place{placed.x, rect.y, placed.width, rect.height};
    const Response pressed = ui_.hit(column.name, place,
                                     {.kind = ItemKind::kColumn,
                                      .label = column.title,
                                      .value = !is_sorted          ? ""
                                               : state_.descending ? "descending"
                                                                   : "ascending",
                                      .enabled = column.sorts,
                                      .ink = ui_.theme().soft_ink});
    Rect inside = place.inset(kCellPadding, 0.0F);
    const Color ink = is_sorted || pressed.hovered ? ui_.theme().ink : ui_.theme().soft_ink;
    if (is_sorted) {  // beside the title
      const float title = std::ceil(ui_.width(column.title, Face::kSmall)) + 4.0F;
      const bool at_left = column.align == Align::kRight;
      const float x = at_left ? inside.right() - title - kArrow : inside.x + title;
      ui_.text({x, inside.y, kArrow, inside.height}, state_.descending ? "▼" : "▲",
               {.face = Face::kSmall, .color = ink});
      if (at_left) take_left(inside, kArrow);
    }
    ui_.text(inside, column.title, {.face = Face::kSmall, .color = ink, .align = column.align});
    if (!column.help.empty()) ui_.tooltip(pressed, column.help);
    if (!pressed.clicked) return;
    if (is_sorted) {
      state_.descending = !state_.descending;
    } else {
      state_.sorted_by = placed.column;
      state_.descending = column.align == Align::kRight;
    }
    response.sorted = true;
  }

  void draw_row(std::size_t i, const Rect& row, const std::vector<PlacedColumn>& columns,
                const std::function<void(Ui&, const TableCell&)>& draw) {
    const Scope scope(ui_, std::to_string(i));
    const bool is_chosen = look_.chosen == i;
    const Response pressed = ui_.hit(
        "", row, {.kind = ItemKind::kRow, .value = is_chosen ? "chosen" : "", .focusable = false});
    const Theme& theme = ui_.theme();
    const Color paper = is_chosen         ? theme.selected
                        : pressed.hovered ? theme.hovered
                        : i % 2 == 1      ? theme.stripe
                                          : ui_.paper();
    const Surface surface(ui_, row, paper);
    if (is_chosen) ui_.canvas().fill({row.x, row.y, 3.0F, row.height}, theme.accent);
    for (const PlacedColumn& column : columns) {
      const Rect place{column.x, row.y, column.width, row.height};
      draw(ui_, {.row = i, .column = column.column, .rect = place.inset(kCellPadding, 0.0F)});
    }
    if (pressed.clicked || pressed.right_clicked) response.clicked = i;
    is_pressed_ = is_pressed_ || pressed.clicked;
    if (pressed.double_clicked) response.activated = i;
    if (pressed.hovered) response.hovered = i;
  }

  Ui& ui_;
  const TableLook& look_;
  TableState& state_;
  bool is_pressed_ = false;  // a row, by the mouse
};

}  // namespace

bool has_focus(Ui& ui, std::string_view table) {
  const Scope scope(ui, table);
  return ui.memory().focus == ui.path_of(kStop);
}

TableResponse table(Ui& ui, std::string_view name, const Rect& rect, const TableLook& look,
                    TableState& state, const std::function<void(Ui&, const TableCell&)>& draw) {
  const Scope scope(ui, name);
  const Clip clip(ui, rect);
  Rect body = rect;
  const float height = ui.row_height();
  const Rect head = take_top(body, height + 2.0F);
  const float content = height * static_cast<float>(look.rows);
  Table parts(ui, look, state);
  parts.keys(body.height);
  const std::optional<std::size_t> shown = parts.response.clicked   ? parts.response.clicked
                                           : look.scrolls_to_chosen ? look.chosen
                                                                    : std::nullopt;
  if (shown) {
    const float top = height * static_cast<float>(*shown);
    scroll_to(ui, "scroll", top, top + height, body.height);
  }
  const Scrolled view = scrolled(ui, "scroll", body, content);
  const std::vector<PlacedColumn> columns =
      placed(ui, {rect.x, rect.y, view.view.width, rect.height}, look, state);
  parts.head(head, columns);
  parts.rows(view.view, view.offset, columns, draw);
  parts.stop(view.view);
  return parts.response;
}

}  // namespace trainscope::gui
