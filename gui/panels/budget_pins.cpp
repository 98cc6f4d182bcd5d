// Values of the Budget panel's plane that are pinned, by mouse or by keys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gui/draw/color.h"
#include "gui/panels/budget_parts.h"

namespace trainscope::gui {
namespace {

std::string_view pin_mark(Pin pin) { return pin == Pin::kKeep ? "keep" : "recompute"; }

struct PinnablePlace {
  std::string_view value;
  Rect place;
};

// The rectangles that can be told apart, of values that may be pinned.
std::vector<PinnablePlace> pinnable_places(const PinPlane& pins) {
  const auto& [plane, answer, frame] = pins;
  std::vector<PinnablePlace> places;
  for (const MemoryBox& box : frame.boxes) {
    const std::string_view value = answer.pinnable[box.index];
    if (value.empty() || box.width < 3.0F || box.height < 3.0F) continue;
    places.push_back(
        {.value = value, .place = {plane.x + box.x, plane.y + box.y, box.width, box.height}});
  }
  return places;
}

// The next one that way: near along the way, and not far aside.
const PinnablePlace* neighbour_place(const std::vector<PinnablePlace>& places,
                                     const PinnablePlace& from, Point way) {
  const PinnablePlace* best = nullptr;
  float least = std::numeric_limits<float>::max();
  for (const PinnablePlace& place : places) {
    if (place.value == from.value) continue;
    const Point by = place.place.center() - from.place.center();
    const float along = by.x * way.x + by.y * way.y;
    const float aside = std::abs(by.x * way.y) + std::abs(by.y * way.x);
    if (along <= 0.0F || along + 3.0F * aside >= least) continue;
    least = along + 3.0F * aside;
    best = &place;
  }
  return best;
}

const PinnablePlace* place_of(const std::vector<PinnablePlace>& places, const std::string& value) {
  const auto found = std::ranges::find(places, value, &PinnablePlace::value);
  return found == places.end() ? nullptr : &*found;
}

}  // namespace

// The values that are pinned, where they are large enough to be seen.
void draw_pins(Ui& ui, const BudgetModel& model, const PinPlane& pins) {
  const auto& [plane, answer, frame] = pins;
  if (model.request().keep.empty() && model.request().recompute.empty()) return;
  for (const MemoryBox& box : frame.boxes) {
    const std::string_view value = answer.pinnable[box.index];
    const Pin pin = value.empty() ? Pin::kFree : pin_of(model.request(), value);
    if (pin == Pin::kFree) continue;
    const Rect place{plane.x + box.x, plane.y + box.y, std::max(3.0F, box.width),
                     std::max(3.0F, box.height)};
    ui.canvas().outline(place,
                        {.color = ui.theme().ink, .width = 2.0F, .dashed = pin != Pin::kKeep});
    if (ui.width(pin_mark(pin), Face::kSmall) + 6.0F > place.width || place.height < 14.0F)
      continue;
    const Color paper =
        ui.theme().series[static_cast<std::size_t>(answer.map.rectangles[box.index].holds)];
    const Surface surface(ui, {place.x, place.y, 0.0F, 0.0F}, paper);
    ui.text(place, pin_mark(pin),
            {.face = Face::kSmall, .color = ink_on(paper), .align = Align::kCenter});
  }
}

// Large ones alone, which a click can hit.
void record_pinnable(Ui& ui, const BudgetModel& model, const PinPlane& pins) {
  const auto& [plane, answer, frame] = pins;
  if (!ui.items().keeps_all()) return;
  const Scope scope(ui, "value");
  for (const MemoryBox& box : frame.boxes) {
    const std::string_view value = answer.pinnable[box.index];
    if (value.empty() || box.width < 3.0F || box.height < 3.0F) continue;
    ui.items().add({.path = ui.path_of(value),
                    .kind = ItemKind::kMark,
                    .label = std::string(value),
                    .value = std::string(name_of(pin_of(model.request(), value))),
                    .rect = {plane.x + box.x, plane.y + box.y, box.width, box.height},
                    .seen = {plane.x + box.x, plane.y + box.y, box.width, box.height},
                    .layer = ui.layer(),
                    .ink = ui.paper(),
                    .paper = ui.paper()});
  }
}

void take_pin_keys(Ui& ui, BudgetModel& model, const PinPlane& pins, std::string& chosen) {
  struct Way {
    std::string_view key;
    Point by;
  };
  static constexpr std::array<Way, 4> kWays = {{{"Left", {-1.0F, 0.0F}},
                                                {"Right", {1.0F, 0.0F}},
                                                {"Up", {0.0F, -1.0F}},
                                                {"Down", {0.0F, 1.0F}}}};
  const std::vector<PinnablePlace> places = pinnable_places(pins);
  if (places.empty()) return;
  for (const Way& way : kWays) {
    if (!ui.take(way.key)) continue;
    const PinnablePlace* now = place_of(places, chosen);
    const PinnablePlace* next =
        now == nullptr ? &places.front() : neighbour_place(places, *now, way.by);
    if (next != nullptr) chosen = next->value;
  }
  if (place_of(places, chosen) == nullptr || !ui.take("Enter")) return;
  PlanRequest request = model.request();
  set_pin(request, chosen, next_pin(pin_of(request, chosen)));
  model.ask(std::move(request));
}

void draw_chosen_value(Ui& ui, const BudgetModel& model, const PinPlane& pins,
                       const std::string& chosen) {
  const std::vector<PinnablePlace> places = pinnable_places(pins);
  for (const PinnablePlace& each : places) {
    if (each.value != chosen) continue;
    ui.canvas().outline(each.place.inset(-1.0F), {.color = ui.theme().accent, .width = 2.0F});
  }
  const PinnablePlace* now = place_of(places, chosen);
  const Pin pin = pin_of(model.request(), chosen);
  const std::string text =
      now == nullptr ? "arrows choose a value, Enter pins it"
                     : fmt::format("{}: {}, Enter: {}", chosen,
                                   pin == Pin::kFree ? "the planner decides" : name_of(pin),
                                   name_of(next_pin(pin)));
  const float width =
      std::min(std::ceil(ui.width(text, Face::kSmall)) + 12.0F, pins.plane.width - 8.0F);
  const float height = ui.line_height(Face::kSmall) + 4.0F;
  const Rect place{pins.plane.x + 4.0F, pins.plane.bottom() - height - 4.0F, width, height};
  const Surface surface(ui, place, ui.theme().header, 2.0F);
  ui.text(place.inset(6.0F, 0.0F), text, {.face = Face::kSmall, .fit = Fit::kMiddle});
}

}  // namespace trainscope::gui
