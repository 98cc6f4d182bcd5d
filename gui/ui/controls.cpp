// Draws controls and says what is done with them.
#include "gui/ui/controls.h"

#include <algorithm>
#include <cmath>

namespace trainscope::gui {
namespace {

constexpr float kPadding = 10.0F;  // at the sides of a label
constexpr float kRadius = 4.0F;

Color paper_of(const Ui& ui, const ButtonLook& look, const Response& response) {
  const Theme& theme = ui.theme();
  if (look.primary && look.enabled) {
    return response.hovered ? mixed(theme.accent, theme.ink, 0.15F) : theme.accent;
  }
  if (look.chosen) return theme.selected;
  if (response.hovered) return theme.hovered;
  return look.flat ? ui.paper() : theme.control;
}

}  // namespace

float button_width(const Ui& ui, std::string_view label) {
  return std::max(kLeastControl, std::ceil(ui.width(label)) + 2.0F * kPadding);
}

bool button(Ui& ui, std::string_view name, const Rect& rect, std::string_view label,
            const ButtonLook& look) {
  const Theme& theme = ui.theme();
  const bool is_primary = look.primary && look.enabled;
  const Color ink = is_primary ? theme.accent_ink : look.enabled ? theme.ink : theme.soft_ink;
  const float padding = std::min(kPadding, std::max(2.0F, (rect.width - ui.width(label)) / 2.0F));
  const Rect inside = rect.inset(padding, 0.0F);
  // Drawn twice where it is hovered: its paper is known once the mouse is.
  const Response response =
      ui.hit(name, rect,
             {.kind = ItemKind::kButton,
              .label = label,
              .value = look.chosen ? "on" : "",
              .enabled = look.enabled,
              .fits = look.fit != Fit::kWhole || ui.width(label) <= inside.width + 0.5F});
  const Color paper = paper_of(ui, look, response);
  if (!look.flat || response.hovered || look.chosen || is_primary) {
    ui.canvas().fill(rect, paper, kRadius);
  }
  {
    const Surface surface(ui, {rect.x, rect.y, 0.0F, 0.0F}, paper);
    ui.text(inside, label, {.color = ink, .align = look.align, .fit = look.fit});
  }
  if (response.focused) ui.canvas().outline(rect, {.color = theme.accent, .width = 1.5F}, kRadius);
  if (!look.tooltip.empty()) ui.tooltip(response, look.tooltip);
  return response.clicked;
}

bool toggle(Ui& ui, std::string_view name, const Rect& rect, std::string_view label, bool& on,
            std::string_view tooltip) {
  const Theme& theme = ui.theme();
  const Response response =
      ui.hit(name, rect, {.kind = ItemKind::kToggle, .label = label, .value = on ? "on" : "off"});
  if (response.clicked) on = !on;
  const float side = std::min(14.0F, rect.height - 4.0F);
  const Rect box{rect.x + 3.0F, rect.y + std::floor((rect.height - side) / 2.0F), side, side};
  ui.canvas().fill(box, on ? theme.accent : theme.inset, 3.0F);
  ui.canvas().outline(box, {.color = response.hovered ? theme.accent : theme.soft_ink}, 3.0F);
  if (on) {
    const Point check[] = {{box.x + side * 0.22F, box.y + side * 0.52F},
                           {box.x + side * 0.42F, box.y + side * 0.72F},
                           {box.x + side * 0.78F, box.y + side * 0.28F}};
    ui.canvas().polyline(check, {.color = theme.accent_ink, .width = 2.0F});
  }
  const float left = box.right() + 6.0F;
  ui.text({left, rect.y, rect.right() - left, rect.height}, label);
  if (!tooltip.empty()) ui.tooltip(response, tooltip);
  return response.clicked;
}

float tabs_width(const Ui& ui, std::span<const std::string_view> labels) {
  float width = 0.0F;
  for (const std::string_view label : labels) {
    if (!label.empty()) width += button_width(ui, label);
  }
  return width;
}

bool tabs(Ui& ui, std::string_view name, const Rect& rect, std::span<const std::string_view> labels,
          std::size_t& chosen) {
  const Scope scope(ui, name);
  Rect rest = rect;
  bool changed = false;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].empty()) continue;
    const Rect place = take_left(rest, button_width(ui, labels[i]));
    const bool pressed =
        button(ui, labels[i], place, labels[i], {.chosen = chosen == i, .flat = true});
    if (chosen == i) {
      ui.canvas().fill({place.x, place.bottom() - 2.0F, place.width, 2.0F}, ui.theme().accent);
    }
    if (!pressed || chosen == i) continue;
    chosen = i;
    changed = true;
  }
  return changed;
}

bool slider(Ui& ui, std::string_view name, const Rect& rect, double& value,
            const SliderRange& range, std::string_view text, std::string_view tooltip) {
  const Theme& theme = ui.theme();
  const Response response = ui.hit(name, rect, {.kind = ItemKind::kSlider, .value = text});
  const double span = std::max(range.greatest - range.least, 1e-300);
  const Rect track = rect.inset(8.0F, 0.0F);
  double wanted = value;
  if (response.held && ui.input().is_down(MouseButton::kLeft)) {
    wanted = range.least + span * (ui.input().mouse.x - track.x) / std::max(1.0F, track.width);
  }
  if (response.focused) {
    const double page = range.step * 10.0;
    if (ui.take("Left") || ui.take("Down")) wanted -= range.step;
    if (ui.take("Right") || ui.take("Up")) wanted += range.step;
    if (ui.take("PageDown")) wanted -= page;
    if (ui.take("PageUp")) wanted += page;
    if (ui.take("Home")) wanted = range.least;
    if (ui.take("End")) wanted = range.greatest;
  }
  wanted = std::clamp(wanted, range.least, range.greatest);
  const bool changed = wanted != value;
  value = wanted;
  const float share = static_cast<float>((value - range.least) / span);
  const float y = rect.center().y;
  ui.canvas().fill({track.x, y - 2.0F, track.width, 4.0F}, theme.control, 2.0F);
  ui.canvas().fill({track.x, y - 2.0F, track.width * share, 4.0F}, theme.accent, 2.0F);
  const Point knob{track.x + track.width * share, y};
  ui.canvas().circle(knob, response.hovered || response.held ? 8.0F : 7.0F, theme.accent);
  ui.canvas().circle(knob, 3.0F, theme.panel);
  if (!tooltip.empty()) ui.tooltip(response, tooltip);
  return changed;
}

float splitter(Ui& ui, std::string_view name, const Rect& rect, Axis moves_along) {
  const Response response = ui.hit(name, rect, {.kind = ItemKind::kSplitter});
  const bool across = moves_along == Axis::kHorizontal;
  const Color color =
      response.held || response.focused || response.hovered ? ui.theme().accent : ui.theme().line;
  const Point middle = rect.center();
  // Three points to hold it by.
  for (const float i : {-1.0F, 0.0F, 1.0F}) {
    const Point at = across ? Point{rect.x + 3.0F, middle.y + i * 6.0F}
                            : Point{middle.x + i * 6.0F, rect.y + 3.0F};
    ui.canvas().circle(at, 1.5F, color);
  }
  constexpr float kArrowStep = 16.0F;
  float moved = 0.0F;
  if (response.held && ui.input().is_down(MouseButton::kLeft)) {
    moved = across ? response.dragged.x : response.dragged.y;
  }
  if (response.focused) {
    if (ui.take(across ? "Left" : "Up")) moved -= kArrowStep;
    if (ui.take(across ? "Right" : "Down")) moved += kArrowStep;
  }
  ui.tooltip(response, "Drag, or use the arrow keys, to resize");
  return moved;
}

Scrolled scrolled(Ui& ui, std::string_view name, const Rect& rect, float content_height) {
  const std::string path = ui.path_of(name);
  float& offset = ui.memory().scroll[path];
  const float most = std::max(0.0F, content_height - rect.height);
  const Input& input = ui.input();
  constexpr float kWheelPixels = 60.0F;
  // Where there is no room for a bar the wheel alone scrolls.
  const bool overflows = most > 0.5F && rect.height >= kLeastControl;
  Rect view = rect;
  const Rect bar = overflows ? take_right(view, kScrollbarWidth) : Rect{};
  const Rect seen = rect.intersected(ui.canvas().clip());
  const bool covered = std::ranges::any_of(ui.memory().covers, [&](const Cover& cover) {
    return cover.layer > ui.layer() && cover.rect.contains(input.mouse);
  });
  if (seen.contains(input.mouse) && !covered) offset -= input.wheel.y * kWheelPixels;
  offset = std::clamp(offset, 0.0F, most);
  if (!overflows) return {view, offset};
  const Response response = ui.hit(name, bar, {.kind = ItemKind::kSlider, .focusable = false});
  const float length = std::max(24.0F, rect.height * rect.height / content_height);
  const float travel = std::max(1.0F, rect.height - length);
  if (response.held && input.is_down(MouseButton::kLeft)) {
    const float grabbed = input.is_pressed(MouseButton::kLeft)
                              ? (input.mouse.y - bar.y - length / 2.0F) / travel * most - offset
                              : response.dragged.y / travel * most;
    const bool on_knob = std::abs(grabbed) * travel <= most * length / 2.0F;
    if (!input.is_pressed(MouseButton::kLeft) || !on_knob) offset += grabbed;
    offset = std::clamp(offset, 0.0F, most);
  }
  const Rect knob{bar.right() - 8.0F, bar.y + travel * offset / most, 6.0F, length};
  const bool is_bright = response.hovered || response.held;
  ui.canvas().fill(knob, is_bright ? ui.theme().soft_ink : ui.theme().line, 3.0F);
  return {view, std::round(offset)};
}

void scroll_to(Ui& ui, std::string_view name, float top, float bottom, float view_height) {
  float& offset = ui.memory().scroll[ui.path_of(name)];
  offset = std::min(offset, top);
  offset = std::max(offset, bottom - view_height);
}

}  // namespace trainscope::gui
