// What the pass of the shown stage nearly rewrote: a dashed outline around each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gui/panels/graph/graph_state.h"

namespace trainscope::gui {
namespace {

class MissDrawer {
 public:
  MissDrawer(Ui& ui, Workbench& workbench, GraphState& state, const NearMissView& view)
      : ui_(ui),
        state_(state),
        view_(view),
        selected_(selected_place(state, workbench)),
        margin_(std::clamp(kWidestMargin * state.camera.zoom, kLeastMargin, kWidestMargin)) {}

  // The near miss that is pressed; those there are: none.
  std::size_t draw() {
    std::size_t pressed = state_.near_misses.size();
    for (std::size_t i = 0; i < state_.near_misses.size(); ++i) {
      const Rect outline = outline_of(state_.near_misses[i]);
      if (!ui_.canvas().visible(outline)) continue;
      if (draw_one(i, outline)) pressed = i;
    }
    return pressed;
  }

  const std::string& tooltip() const { return tooltip_; }

 private:
  static constexpr float kWidestMargin = 6.0F;  // from a node to the outline
  static constexpr float kLeastMargin = 2.0F;

  Rect on_screen(const LayoutRect& rect) const {
    const GraphCamera& camera = state_.camera;
    return {view_.rect.x + (rect.x - camera.x) * camera.zoom,
            view_.rect.y + (rect.y - camera.y) * camera.zoom, rect.width * camera.zoom,
            rect.height * camera.zoom};
  }

  // On whole pixels: dashes are sharp there.
  Rect outline_of(const NearMissGroup& miss) const {
    const Rect around = on_screen(rect_around(view_.layout, miss.places)).inset(-margin_);
    const float x = std::floor(around.x);
    const float y = std::floor(around.y);
    return {x, y, std::ceil(around.right()) - x, std::ceil(around.bottom()) - y};
  }

  std::string names_of(const NearMissGroup& miss) const {
    std::string names;
    for (const std::uint32_t place : miss.places) {
      if (!names.empty()) names += ", ";
      names += state_.picture.nodes[place].name;
    }
    return names;
  }

  bool draw_one(std::size_t i, const Rect& outline) {
    const NearMissGroup& miss = state_.near_misses[i];
    const std::string sentence = sentence_of(miss);
    const Response response =
        ui_.hit(fmt::format("miss/{}", i), outline,
                {.kind = ItemKind::kMark, .label = sentence, .value = names_of(miss)});
    const bool chosen = std::ranges::find(miss.places, selected_) != miss.places.end();
    const bool stressed = chosen || response.hovered || response.focused;
    const Color color = ui_.theme().warning;
    ui_.canvas().fill(outline, with_alpha(color, stressed ? 0.12F : 0.06F));
    ui_.canvas().outline(outline,
                         {.color = color, .width = stressed ? 2.0F : 1.5F, .dashed = true});
    draw_members(miss);
    if (response.hovered) tooltip_ += (tooltip_.empty() ? "" : "\n") + sentence;
    const bool clicked = view_.clicked && outline.contains(*view_.clicked);
    return response.clicked || clicked;
  }

  // Other nodes may lie between them. Where nodes are small the outline has to do.
  void draw_members(const NearMissGroup& miss) {
    if (miss.places.size() == 1 || margin_ < kWidestMargin / 2.0F) return;
    for (const std::uint32_t place : miss.places) {
      if (view_.layout.is_hidden(place)) continue;
      ui_.canvas().outline(on_screen(rect_around(view_.layout, {&place, 1})).inset(-2.5F),
                           {.color = ui_.theme().warning}, 4.0F);
    }
  }

  Ui& ui_;
  const GraphState& state_;
  const NearMissView& view_;
  std::uint32_t selected_;
  float margin_;
  std::string tooltip_;
};

}  // namespace

void draw_near_misses(Ui& ui, Workbench& workbench, GraphState& state, const NearMissView& view) {
  MissDrawer drawer(ui, workbench, state, view);
  const std::size_t pressed = drawer.draw();
  if (!view.over_node) ui.tooltip({.hovered = !drawer.tooltip().empty()}, drawer.tooltip());
  if (pressed < state.near_misses.size()) select_near_miss(state, workbench, pressed);
}

}  // namespace trainscope::gui
