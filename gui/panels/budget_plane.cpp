// The memory-time plane of a plan, with the one before it as a shadow, and pins.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>

#include "engine/core/numbers.h"
#include "gui/draw/color.h"
#include "gui/panels/budget_parts.h"
#include "gui/panels/plot.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

struct PlaneFrames {
  MemoryFrame shown;
  MemoryFrame ghost;
  std::string chosen;  // by keys: the value that Enter pins
};

// Times across, bytes up to those of the largest plan.
MemoryRange plane_range(const MemoryMap& map, std::int64_t most_bytes) {
  return {.first_time = 0.0,
          .last_time = std::max(1.0, static_cast<double>(map.times)),
          .first_byte = 0.0,
          .last_byte = static_cast<double>(most_bytes)};
}

float plane_y(const Rect& plane, std::int64_t bytes, std::int64_t most_bytes) {
  return plane.bottom() - plane.height * static_cast<float>(static_cast<double>(bytes) /
                                                            static_cast<double>(most_bytes));
}

void draw_boxes(Ui& ui, const Rect& plane, const MemoryMap& map, const MemoryFrame& frame,
                const std::optional<Color>& shadow) {
  for (const MemoryBox& box : frame.boxes) {
    const MemoryRectangle& rectangle = map.rectangles[box.index];
    const Rect place{plane.x + box.x, plane.y + box.y, std::max(1.0F, box.width),
                     std::max(0.5F, box.height)};
    const Color color =
        shadow.value_or(ui.theme().series[static_cast<std::size_t>(rectangle.holds)]);
    // A gap between neighbours, where there is room for one.
    const float gap = place.width > 4.0F && place.height > 10.0F ? 0.5F : 0.0F;
    ui.canvas().fill(place.inset(gap), color);
    if (!rectangle.recomputed || shadow || place.width < 4.0F || place.height < 4.0F) continue;
    ui.canvas().line({place.x, place.bottom()}, {place.right(), place.y},
                     {.color = ui.theme().panel});
  }
}

struct ArenaWords {
  std::string_view what = {};
  std::string_view fact = {};  // where the panel's twin has the bytes; empty: nowhere
};

// A line at the height of an arena, and what it is: at the right, of the plan before at the left.
void draw_arena(Ui& ui, const Rect& plane, std::int64_t bytes, std::int64_t most_bytes,
                const ArenaWords& words, Color color, bool is_before) {
  const float y = plane_y(plane, bytes, most_bytes);
  ui.canvas().line({plane.x, y}, {plane.right(), y},
                   {.color = color, .width = 1.5F, .dashed = is_before});
  const Quantity quantity{static_cast<double>(bytes), Unit::kBytes};
  const float word = std::ceil(ui.width(words.what, Face::kSmall)) + 4.0F;
  const float digits = std::ceil(ui.width(text_of(quantity).whole(), Face::kSmallNumber)) + 1.0F;
  const float width = word + digits + 8.0F;
  const float height = ui.line_height(Face::kSmall) + 2.0F;
  const float top = y - height < plane.y ? y + 1.0F : y - height - 1.0F;
  const Rect place{is_before ? plane.x : plane.right() - width, top, width, height};
  const Surface surface(ui, place, ui.theme().inset, 2.0F);
  Rect rest = place.inset(4.0F, 0.0F);
  ui.text(take_left(rest, word), words.what, {.face = Face::kSmall, .color = color});
  ui.number(words.what, rest, quantity, words.fact, {.face = Face::kSmallNumber, .color = color});
}

// Round numbers of bytes in the gutter at the plane's left.
void draw_bytes_axis(Ui& ui, const Rect& gutter, std::int64_t most_bytes) {
  const Scope scope(ui, "axis");
  const float line = ui.line_height(Face::kSmallNumber);
  const int most = std::max(2, static_cast<int>(gutter.height / 44.0F));
  const std::vector<double> ticks = round_byte_counts(0.0, static_cast<double>(most_bytes), most);
  const std::vector<std::string> texts = byte_tick_texts(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const float y = plane_y(gutter, std::llround(ticks[i]), most_bytes);
    const float top = std::clamp(y - line / 2.0F, gutter.y, gutter.bottom() - line);
    ui.text({gutter.x, top, gutter.width - 6.0F, line}, texts[i],
            {.face = Face::kSmallNumber, .color = ui.theme().soft_ink, .align = Align::kRight});
  }
}

// Where a phase ends, and their names below.
void draw_phases(Ui& ui, const Rect& plane, const Rect& axis, const MemoryMap& map) {
  const auto x_of = [&](std::uint32_t time) {
    return std::round(plane.x + plane.width * static_cast<float>(time) /
                                    static_cast<float>(std::max(1U, map.times)));
  };
  const std::array<float, 4> ends = {plane.x, x_of(map.backward_begin), x_of(map.update_begin),
                                     plane.right()};
  for (const float x : {ends[1], ends[2]}) {
    ui.canvas().line({x, plane.y}, {x, plane.bottom()},
                     {.color = ui.theme().soft_ink, .dashed = true});
  }
  draw_phase_names(ui, {plane.x, axis.y, plane.width, axis.height}, ends);
}

std::string value_tooltip(const PlanView& plan, const MemoryRectangle& rectangle, Pin pin,
                          std::string_view value) {
  const PlanBuffer& buffer = plan.buffers[rectangle.buffer];
  std::string text = fmt::format(
      "{}\n{}, {} at offset {}\nalive in the times {} to {}", plan.text(buffer.label),
      name_of(buffer.holds), text_of({static_cast<double>(rectangle.bytes), Unit::kBytes}).whole(),
      text_of({static_cast<double>(rectangle.offset), Unit::kBytes}).whole(), rectangle.begin,
      rectangle.end);
  if (rectangle.recomputed) text += "\nmade a second time, for the backward phase";
  if (value.empty()) return text;
  return text + fmt::format("\n{}: a click makes it {}",
                            pin == Pin::kFree ? "the planner decides" : name_of(pin),
                            name_of(next_pin(pin)));
}

// What is below the mouse.
void touch_plane(Ui& ui, BudgetModel& model, const Rect& plane, const PlanAnswer& answer,
                 const Response& response) {
  const Point mouse = ui.input().mouse;
  if (!response.hovered || !plane.contains(mouse)) return;
  const double time = (mouse.x - plane.x) / plane.width * static_cast<double>(answer.map.times);
  const double byte =
      (plane.bottom() - mouse.y) / plane.height * static_cast<double>(model.most_bytes());
  const std::uint32_t index = rectangle_at(answer.map, time, byte);
  if (index == kNoRow) return;
  const PlanView plan = answer.plan();
  const MemoryRectangle& rectangle = answer.map.rectangles[index];
  const std::string_view value = answer.pinnable[index];
  const Pin pin = value.empty() ? Pin::kFree : pin_of(model.request(), value);
  ui.tooltip(response, value_tooltip(plan, rectangle, pin, value));
  if (response.clicked && !value.empty()) {
    PlanRequest request = model.request();
    set_pin(request, value, next_pin(pin));
    model.ask(std::move(request));
  }
}

// The classes of buffers that there are, with their colours. What covers most of the plane stands
// first: where there is no room for all, the last are left out.
void draw_legend(Ui& ui, const MemoryMap& map, Rect rest) {
  std::array<double, kBufferClasses> areas = {};  // bytes x times
  for (const MemoryRectangle& each : map.rectangles) {
    areas[static_cast<std::size_t>(each.holds)] +=
        static_cast<double>(each.bytes) * static_cast<double>(each.end - each.begin);
  }
  std::array<std::size_t, kBufferClasses> order = {};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return areas[i]; });
  for (const std::size_t i : order) {
    if (areas[i] == 0.0) return;
    const std::string_view name = name_of(static_cast<BufferClass>(i));
    const float width = std::ceil(ui.width(name, Face::kSmall)) + 24.0F;
    if (width > rest.width) return;
    const Rect place = take_left(rest, width);
    ui.canvas().fill({place.x, place.center().y - 4.0F, 8.0F, 8.0F}, ui.theme().series[i], 2.0F);
    ui.text({place.x + 12.0F, place.y, width - 14.0F, place.height}, name,
            {.face = Face::kSmall, .color = ui.theme().soft_ink});
  }
}

}  // namespace

void draw_budget_plane(Ui& ui, Workbench& workbench, BudgetModel& model, const Rect& rect) {
  Rect plane = rect;
  const float line = ui.line_height(Face::kSmall) + 6.0F;
  Rect legend = take_bottom(plane, line);
  const bool roomy = plane.height > 150.0F && plane.width > 260.0F;
  const Rect axis = take_bottom(plane, roomy ? line : 0.0F);
  const Rect gutter =
      take_left(plane, roomy ? std::ceil(ui.width("0000.0 MiB", Face::kSmallNumber)) + 8.0F : 0.0F);
  take_left(legend, gutter.width);
  ui.canvas().fill(plane, ui.theme().inset);
  const Clip clip(ui, rect);
  const PlanAnswer* shown = model.shown();
  auto& frames = workbench.state<PlaneFrames>();
  const bool has_plan = shown != nullptr && !shown->facts.is_null() && plane.height >= 8.0F;
  const std::int64_t most = model.most_bytes();
  if (has_plan) {  // boxes are positions in the map: of this frame's plan, also for keys
    frame_memory(shown->map, plane_range(shown->map, most), plane.width, plane.height,
                 frames.shown);
  }
  if (has_plan && ui.memory().focus == ui.path_of("plane")) {
    take_pin_keys(ui, model, {.plane = plane, .answer = *shown, .frame = frames.shown},
                  frames.chosen);
  }
  const Response response = ui.hit(
      "plane", plane, {.kind = ItemKind::kArea, .label = "memory by time", .value = frames.chosen});
  if (!has_plan) return;
  const PlanAnswer* ghost = model.ghost();
  if (ghost != nullptr && ghost->map.arena_bytes != shown->map.arena_bytes) {
    frame_memory(ghost->map, plane_range(ghost->map, most), plane.width, plane.height,
                 frames.ghost);
    draw_boxes(ui, plane, ghost->map, frames.ghost,
               mixed(ui.theme().inset, ui.theme().soft_ink, 0.28F));
  }
  draw_boxes(ui, plane, shown->map, frames.shown, std::nullopt);
  const PinPlane pins{.plane = plane, .answer = *shown, .frame = frames.shown};
  draw_pins(ui, model, pins);
  record_pinnable(ui, model, pins);
  if (ghost != nullptr && ghost->map.arena_bytes != shown->map.arena_bytes) {
    const std::string before = model.twin_of(ghost->outcome.request) + " | /arena_bytes";
    draw_arena(ui, plane, ghost->map.arena_bytes, most, {.what = "before", .fact = before},
               ui.theme().soft_ink, true);
  }
  draw_arena(ui, plane, shown->map.arena_bytes, most, {.what = "peak", .fact = "/arena_bytes"},
             ui.theme().ink, false);
  if (response.focused) draw_chosen_value(ui, model, pins, frames.chosen);
  if (roomy) {
    draw_bytes_axis(ui, gutter, most);
    draw_phases(ui, plane, axis, shown->map);
  }
  draw_legend(ui, shown->map, legend);
  touch_plane(ui, model, plane, *shown, response);
}

}  // namespace trainscope::gui
