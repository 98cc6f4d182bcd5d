// The whole layout in small, with the part that is seen.
#include <algorithm>

#include "gui/panels/graph/graph_state.h"

namespace trainscope::gui {
namespace {

constexpr float kMapWidth = 104.0F;
constexpr float kMapHeight = 150.0F;
constexpr float kMapMargin = 10.0F;
constexpr float kMapHalo = 5.0F;  // that keeps it apart from what it lies over

// Empty where there is none.
Rect map_of(const GraphState& state, const Rect& rect) {
  const bool all_seen = state.camera.zoom * state.layout.height <= rect.height + 40.0F;
  if (all_seen || rect.width < 560.0F || rect.height < 320.0F) return {};
  return {rect.right() - kMapWidth - kMapMargin, rect.bottom() - kMapHeight - kMapMargin, kMapWidth,
          kMapHeight};
}

float map_zoom(const GraphLayout& layout) {
  return std::min(kMapWidth / std::max(1.0F, layout.width),
                  kMapHeight / std::max(1.0F, layout.height));
}

float left_of_layout(const GraphLayout& layout, const Rect& map) {
  return map.x + (map.width - layout.width * map_zoom(layout)) / 2.0F;
}

}  // namespace

bool hold_graph_map(Ui& ui, GraphState& state, const Rect& rect) {
  const Rect map = map_of(state, rect);
  if (map.empty()) return false;
  const Response response = ui.hit(
      "map", map, {.kind = ItemKind::kArea, .label = "map of the graph", .focusable = false});
  if (!response.held) return response.hovered;
  const Point mouse = ui.input().mouse;
  GraphCamera& camera = state.camera;
  const float zoom = map_zoom(state.layout);
  camera.x = (mouse.x - left_of_layout(state.layout, map)) / zoom - rect.width / camera.zoom / 2.0F;
  camera.y = (mouse.y - map.y) / zoom - rect.height / camera.zoom / 2.0F;
  return true;
}

void draw_graph_map(Ui& ui, const GraphState& state, const Rect& rect) {
  const GraphLayout& layout = state.layout;
  const GraphCamera& camera = state.camera;
  const Rect map = map_of(state, rect);
  if (map.empty()) return;
  ui.canvas().fill({map.x - kMapHalo, map.y - kMapHalo, map.width + kMapHalo + kMapMargin,
                    map.height + kMapHalo + kMapMargin},
                   ui.theme().inset);
  ui.canvas().fill(map, ui.theme().panel, 3.0F);
  ui.canvas().outline(map, {.color = ui.theme().line}, 3.0F);
  const Clip clip(ui, map);
  const float zoom = map_zoom(layout);
  const float left = left_of_layout(layout, map);
  for (const LaidBlock& block : layout.blocks) {
    const Rect band{left, map.y + block.rect.y * zoom, layout.width * zoom,
                    std::max(1.0F, block.rect.height * zoom - 0.5F)};
    ui.canvas().fill(band, with_alpha(ui.theme().series[2], 0.5F));
  }
  const float width = rect.width / camera.zoom;
  const float height = rect.height / camera.zoom;
  ui.canvas().outline(
      {left + camera.x * zoom, map.y + camera.y * zoom, width * zoom, height * zoom},
      {.color = ui.theme().accent, .width = 1.5F});
}

}  // namespace trainscope::gui
