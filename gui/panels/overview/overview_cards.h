// The numbers at the top of the Overview: how training went, and what memory its step needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/ui/ui.h"

namespace trainscope::gui {

struct OverviewCard {
  std::string_view label = {};
  Quantity quantity = {};
  std::string fact = {};  // "{run}" stands for the run's path
  std::string_view help = {};
};

std::vector<OverviewCard> overview_cards(const RunData& run);
// Beside each other in as many lines as they need, which are taken from `rest`.
void draw_overview_cards(Ui& ui, const RunData& run, std::span<const OverviewCard> cards,
                         Rect& rest);

}  // namespace trainscope::gui
