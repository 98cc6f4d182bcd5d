// Lists of commands that open below a button or at the mouse.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

constexpr std::string_view kCheck = "✓";

float check_width(const Ui& ui) { return std::max(16.0F, std::ceil(ui.width(kCheck)) + 2.0F); }

float menu_width(const Ui& ui, std::span<const MenuItem> items) {
  float labels = 0.0F;
  float keys = 0.0F;
  for (const MenuItem& item : items) {
    labels = std::max(labels, ui.width(item.label));
    keys = std::max(keys, ui.width(item.key, Face::kSmall));
  }
  return std::ceil(labels + keys + (keys > 0.0F ? 28.0F : 0.0F) + check_width(ui) + 32.0F);
}

// One row; true when it was chosen.
bool menu_row(Ui& ui, std::size_t i, const Rect& row, const MenuItem& item) {
  const Theme& theme = ui.theme();
  const Response response = ui.hit(std::to_string(i), row,
                                   {.kind = ItemKind::kRow,
                                    .label = item.label,
                                    .value = item.checked ? "on" : "",
                                    .enabled = item.enabled});
  // A mouse that rests leaves the arrows their row.
  const bool points = response.hovered && ui.input().moved != Point{};
  if (points) ui.memory().focus = ui.path_of(std::to_string(i));
  const bool bright = (points || response.focused) && item.enabled;
  const Surface surface(ui, row, bright ? theme.hovered : ui.paper(), 3.0F);
  const Color ink = item.enabled ? theme.ink : theme.soft_ink;
  Rect rest = row.inset(6.0F, 0.0F);
  const Rect check = take_left(rest, check_width(ui));
  if (item.checked) ui.text(check, kCheck, {.color = theme.accent});
  take_left(rest, 2.0F);
  ui.text(rest, item.label, {.color = ink});
  ui.text({row.x, row.y, row.width - 10.0F, row.height}, item.key,
          {.face = Face::kSmall, .color = theme.soft_ink, .align = Align::kRight});
  return response.clicked;
}

// Up and Down go from row to row; gives the one that they went to.
std::optional<std::size_t> walk_menu(Ui& ui, const std::vector<MenuItem>& items) {
  const bool down = ui.take("Down");
  if (!down && !ui.take("Up")) return std::nullopt;
  std::string& focus = ui.memory().focus;
  const auto count = std::ssize(items);
  std::ptrdiff_t at = down ? -1 : count;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    if (focus == ui.path_of(std::to_string(i))) at = i;
  }
  do {
    at = down ? at + 1 : at - 1;
  } while (at >= 0 && at < count && !items[static_cast<std::size_t>(at)].enabled);
  if (at < 0 || at >= count) return std::nullopt;
  focus = ui.path_of(std::to_string(at));
  return static_cast<std::size_t>(at);
}

// Below what opened it, or above, and within the window: a longer list is scrolled.
Rect menu_place(const Rect& anchor, Extent size, const Rect& window) {
  Rect box{anchor.x, anchor.bottom() + 2.0F, size.width,
           std::min(size.height, window.height - 4.0F)};
  if (box.height < size.height) box.width += kScrollbarWidth;
  box.x = std::max(2.0F, std::min(box.x, window.right() - box.width - 4.0F));
  if (box.bottom() > window.bottom()) box.y = std::max(2.0F, anchor.y - box.height - 2.0F);
  return box;
}

constexpr std::string_view kScrolledRows = "rows";

// The open list: its choice, or -1; it closes by a choice, Escape, or a press elsewhere.
void draw_menu(Ui& ui, const std::string& path, const std::vector<MenuItem>& items) {
  UiMemory& memory = ui.memory();
  const float row_height = ui.row_height() + 2.0F;
  const Rect window = ui.canvas().clip();
  const float all_rows = row_height * static_cast<float>(items.size());
  const Rect box =
      menu_place(memory.popup_anchor, {menu_width(ui, items), all_rows + 8.0F}, window);
  ui.cover(box);
  const Surface surface(ui, box, ui.theme().header, 5.0F);
  ui.canvas().outline(box, {.color = ui.theme().line}, 5.0F);
  const Scope scope(ui, "menu");
  const Rect inside = box.inset(4.0F);
  if (const std::optional<std::size_t> at = walk_menu(ui, items)) {
    const float top = row_height * static_cast<float>(*at);
    scroll_to(ui, kScrolledRows, top, top + row_height, inside.height);
  }
  const Scrolled view = scrolled(ui, kScrolledRows, inside, all_rows);
  const Clip clip(ui, view.view, Moves::kUpAndDown);
  Rect rest{view.view.x, view.view.y - view.offset, view.view.width, all_rows};
  int chosen = -1;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Rect row = take_top(rest, row_height);
    if (menu_row(ui, i, row, items[i])) chosen = static_cast<int>(i);
    if (items[i].line_above) {
      ui.canvas().fill({row.x + 4.0F, row.y, row.width - 8.0F, 1.0F}, ui.theme().line);
    }
  }
  const bool elsewhere = ui.input().is_pressed(MouseButton::kLeft) &&
                         !box.contains(ui.input().mouse) &&
                         !memory.popup_anchor.contains(ui.input().mouse);
  if (chosen >= 0) {
    memory.chosen_menu = path;
    memory.chosen_item = chosen;
  }
  if (chosen >= 0 || elsewhere || ui.take("Esc")) memory.close_popup();
}

void show_from_top(UiMemory& memory, const std::string& path) {
  memory.open_popup = path;
  memory.focus_before_popup = memory.focus;
  memory.scroll[path + "/menu/" + std::string(kScrolledRows)] = 0.0F;
}

}  // namespace

void open_menu(Ui& ui, std::string_view name, Point at) {
  show_from_top(ui.memory(), ui.path_of(name));
  ui.memory().popup_anchor = {at.x, at.y, 1.0F, 1.0F};
}

int menu(Ui& ui, std::string_view name, std::span<const MenuItem> items) {
  const std::string path = ui.path_of(name);
  int chosen = -1;
  if (ui.memory().chosen_menu == path) {
    chosen = std::exchange(ui.memory().chosen_item, -1);
    ui.memory().chosen_menu.clear();
  }
  if (ui.memory().open_popup == path) {
    ui.show_popup();
    const std::vector<MenuItem> kept(items.begin(), items.end());
    ui.later(kPopupLayer, [path, own = std::string(name), kept](Ui& above) {
      const Scope scope(above, own);
      draw_menu(above, path, kept);
    });
  }
  return chosen;
}

int menu_button(Ui& ui, std::string_view name, const Rect& rect, std::string_view label,
                std::span<const MenuItem> items, const ButtonLook& look) {
  const std::string path = ui.path_of(name);
  UiMemory& memory = ui.memory();
  const bool is_open = memory.open_popup == path;
  ButtonLook own = look;
  own.chosen = look.chosen || is_open;
  if (button(ui, name, rect, label, own)) {
    memory.close_popup();
    memory.popup_anchor = rect;
    if (!is_open) {
      show_from_top(memory, path);
      memory.focus = path + "/menu/0";
    }
  }
  return menu(ui, name, items);
}

}  // namespace trainscope::gui
