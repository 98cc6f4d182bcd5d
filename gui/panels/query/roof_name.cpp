// The rate is always whole; names are shortened.
#include "gui/panels/query/roof_name.h"

#include <algorithm>
#include <cmath>

namespace trainscope::gui {
namespace {

constexpr float kMostWidth = 260.0F;
constexpr float kGap = 8.0F;

float width_of(const Ui& ui, const std::string& part) {
  return part.empty() ? 0.0F : std::ceil(ui.width(part, Face::kSmall)) + kGap;
}

}  // namespace

float RoofName::width(const Ui& ui) const {
  const float whole =
      width_of(ui, name) + width_of(ui, text_of(rate).whole()) + width_of(ui, of_run);
  return std::min(kMostWidth, whole);
}

void RoofName::draw(Ui& ui, Rect rest) const {
  const Surface surface(ui, rest, ui.theme().inset);
  const TextLook look{.face = Face::kSmall, .color = ui.theme().soft_ink, .fit = Fit::kMiddle};
  const float digits = width_of(ui, text_of(rate).whole()) - kGap + 1.0F;
  ui.text(take_left(rest, std::min(rest.width - digits, width_of(ui, name))), name, look);
  ui.number(name, take_left(rest, digits), rate, fact, look);
  take_left(rest, kGap - 1.0F);
  ui.text(rest, of_run, look);
}

}  // namespace trainscope::gui
