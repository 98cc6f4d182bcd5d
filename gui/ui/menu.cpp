// Lists of commands that open below a button or at the mouse.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

float menu_width(const Ui& ui, std::span<const MenuItem> items) {
  float labels = 0.0F;
  float keys = 0.0F;
  for (const MenuItem& item : items) {
    labels = std::max(labels, ui.width(item.label));
    keys = std::max(keys, ui.width(item.key, Face::kSmall));
  }
  return std::ceil(labels + keys + (keys > 0.0F ? 28.0F : 0.0F) + 48.0F);
}

// One row; true when it was chosen.
bool menu_row(Ui& ui, std::size_t i, const Rect& row, const MenuItem& item) {
  const Theme& theme = ui.theme();
  const Response response = ui.hit(std::to_string(i), row,
                                   {.kind = ItemKind::kRow,
                                    .label = item.label,
                                    .value = item.checked ? "on" : "",
                                    .enabled = item.enabled});
  if (response.hovered) ui.memory().focus = ui.path_of(std::to_string(i));
  const bool bright = response.hovered || response.focused;
  const Surface surface(ui, row, bright && item.enabled ? theme.hovered : ui.paper(), 3.0F);
  const Color ink = item.enabled ? theme.ink : theme.soft_ink;
  if (item.checked) ui.text({row.x + 6.0F, row.y, 16.0F, row.height}, "✓", {.color = theme.accent});
  ui.text({row.x + 24.0F, row.y, row.width - 28.0F, row.height}, item.label, {.color = ink});
  ui.text({row.x, row.y, row.width - 10.0F, row.height}, item.key,
          {.face = Face::kSmall, .color = theme.soft_ink, .align = Align::kRight});
  return response.clicked;
}

// Up and Down go from row to row.
void walk_menu(Ui& ui, const std::vector<MenuItem>& items) {
  const bool down = ui.take("Down");
  if (!down && !ui.take("Up")) return;
  std::string& focus = ui.memory().focus;
  const auto count = std::ssize(items);
  std::ptrdiff_t at = down ? -1 : count;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    if (focus == ui.path_of(std::to_string(i))) at = i;
  }
  do {
    at = down ? at + 1 : at - 1;
  } while (at >= 0 && at < count && !items[static_cast<std::size_t>(at)].enabled);
  if (at >= 0 && at < count) focus = ui.path_of(std::to_string(at));
}

// The open list: its choice, or -1; it closes by a choice, Escape, or a press elsewhere.
void draw_menu(Ui& ui, const std::string& path, const std::vector<MenuItem>& items) {
  UiMemory& memory = ui.memory();
  const float row_height = ui.row_height() + 2.0F;
  const Rect window = ui.canvas().clip();
  Rect box{memory.popup_anchor.x, memory.popup_anchor.bottom() + 2.0F, menu_width(ui, items),
           row_height * static_cast<float>(items.size()) + 8.0F};
  box.x = std::max(2.0F, std::min(box.x, window.right() - box.width - 4.0F));
  if (box.bottom() > window.bottom()) {
    box.y = std::max(2.0F, memory.popup_anchor.y - box.height - 2.0F);
  }
  ui.cover(box);
  const Surface surface(ui, box, ui.theme().header, 5.0F);
  ui.canvas().outline(box, {.color = ui.theme().line}, 5.0F);
  const Scope scope(ui, "menu");
  walk_menu(ui, items);
  Rect rest = box.inset(4.0F);
  int chosen = -1;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Rect row = take_top(rest, row_height);
    if (items[i].line_above) {
      ui.canvas().fill({row.x + 4.0F, row.y, row.width - 8.0F, 1.0F}, ui.theme().line);
    }
    if (menu_row(ui, i, row, items[i])) chosen = static_cast<int>(i);
  }
  const bool elsewhere = ui.input().is_pressed(MouseButton::kLeft) &&
                         !box.contains(ui.input().mouse) &&
                         !memory.popup_anchor.contains(ui.input().mouse);
  if (chosen >= 0) {
    memory.chosen_menu = path;
    memory.chosen_item = chosen;
  }
  if (chosen >= 0 || elsewhere || ui.take("Esc")) memory.open_popup.clear();
}

}  // namespace

void open_menu(Ui& ui, std::string_view name, Point at) {
  ui.memory().open_popup = ui.path_of(name);
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
    memory.open_popup = is_open ? std::string() : path;
    memory.popup_anchor = rect;
    if (!is_open) memory.focus = path + "/menu/0";
  }
  return menu(ui, name, items);
}

}  // namespace trainscope::gui
