// What the colours and the hatching of Memory's rectangles mean.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>

#include "gui/panels/memory_state.h"

namespace trainscope::gui {
namespace {

// What the hatching of buffers means, at the right, where the plan has any.
void draw_hatch_legend(Ui& ui, const MemoryMap& map, Rect& rect) {
  if (std::ranges::none_of(map.rectangles, &MemoryRectangle::recomputed)) return;
  constexpr std::string_view kWord = "recomputed";
  const float width = std::ceil(ui.width(kWord, Face::kSmall)) + 26.0F;
  if (rect.width < 2.0F * width) return;  // classes say more
  Rect place = take_right(rect, width);
  const Rect swatch = take_left(place, 22.0F);
  const Color paper = ui.theme().control;
  const Rect hatched{swatch.x, swatch.y + swatch.height / 2.0F - 6.0F, 16.0F, 12.0F};
  ui.canvas().fill(hatched, paper, 2.0F);
  draw_hatch(ui, hatched, ink_on(paper));
  ui.text(place, kWord, {.face = Face::kSmall, .color = ui.theme().soft_ink});
  take_right(rect, 12.0F);
}

}  // namespace

void draw_memory_legend(Ui& ui, const MemoryState& state, const PlanView& plan, Rect rect) {
  rect = rect.inset(8.0F, 0.0F);
  draw_hatch_legend(ui, state.map, rect);
  const auto bytes = bytes_by_class(plan, state.alive);
  // The classes with the largest areas first: what finds no room is left out.
  std::array<double, kBufferClasses> area = {};
  for (const MemoryRectangle& rectangle : state.map.rectangles) {
    area[static_cast<std::size_t>(rectangle.holds)] +=
        static_cast<double>(rectangle.bytes) * static_cast<double>(rectangle.end - rectangle.begin);
  }
  std::array<std::size_t, kBufferClasses> order = {};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return area[i]; });
  for (const std::size_t i : order) {
    if (area[i] == 0.0) return;
    const std::string_view name = name_of(static_cast<BufferClass>(i));
    const Quantity quantity{static_cast<double>(bytes[i]), Unit::kBytes};
    const float word = std::ceil(ui.width(name, Face::kSmall)) + 6.0F;
    const float number = std::ceil(ui.width(text_of(quantity).whole(), Face::kSmallNumber)) + 2.0F;
    if (rect.width < 14.0F + word + number) return;
    const Rect swatch = take_left(rect, 14.0F);
    ui.canvas().fill({swatch.x, swatch.y + swatch.height / 2.0F - 4.0F, 8.0F, 8.0F},
                     ui.theme().series[i], 2.0F);
    ui.text(take_left(rect, word), name, {.face = Face::kSmall, .color = ui.theme().soft_ink});
    ui.number(fmt::format("class/{}", name), take_left(rect, number), quantity,
              fmt::format("/by_class/{}", name), {.face = Face::kSmallNumber});
    take_left(rect, 12.0F);
  }
}

}  // namespace trainscope::gui
