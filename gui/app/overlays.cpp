// Chooses the overlay, and draws the box around it.
#include "gui/app/overlays.h"

#include <algorithm>
#include <cmath>

namespace trainscope::gui {
namespace {

Rect centered(const Rect& window, Extent size) {
  const float width = std::min(size.width, window.width - 16.0F);
  const float height = std::min(size.height, window.height - 16.0F);
  return {window.x + std::floor((window.width - width) / 2.0F),
          window.y + std::floor((window.height - height) / 3.0F), width, height};
}

}  // namespace

Modal::Modal(Ui& ui, Workbench& workbench, const Rect& window, std::string_view name, Extent size)
    : ui_(ui),
      region_(ui, name, window, kModalLayer),
      scope_(ui, name),
      box_(centered(window, size)),
      body_(box_.inset(16.0F, 12.0F)),
      surface_((ui.canvas().fill(window, with_alpha(rgb(0x000000), 0.45F)), ui), box_,
               ui.theme().panel, 6.0F) {
  ui.canvas().outline(box_, {.color = ui.theme().line}, 6.0F);
  const bool outside =
      ui.input().is_pressed(MouseButton::kLeft) && !box_.contains(ui.input().mouse);
  if (outside) workbench.overlay = Overlay::kNone;
  ui_.canvas().push_clip(box_);
}

Modal::~Modal() { ui_.canvas().pop_clip(); }

void draw_overlay(Ui& ui, Workbench& workbench, const Rect& window) {
  const Overlay before = workbench.overlay;
  switch (before) {
    case Overlay::kNone:
      return;
    case Overlay::kWelcome:
      draw_welcome(ui, workbench, window);
      break;
    case Overlay::kPalette:
      draw_palette(ui, workbench, window);
      break;
    case Overlay::kHelp:
      draw_help(ui, workbench, window);
      break;
    case Overlay::kTour:
      draw_tour(ui, workbench, window);
      break;
    case Overlay::kOpen:
      draw_open(ui, workbench, window);
      break;
    case Overlay::kOpenModel:
      draw_open_model(ui, workbench, window);
      break;
    case Overlay::kSizes:
      draw_sizes(ui, workbench, window);
      break;
    case Overlay::kNote:
      draw_notes(ui, workbench, window);
      break;
    case Overlay::kSettings:
      draw_settings(ui, workbench, window);
      break;
    case Overlay::kLayouts:
      draw_layouts(ui, workbench, window);
      break;
  }
  if (ui.take("Esc")) workbench.overlay = Overlay::kNone;
}

}  // namespace trainscope::gui
