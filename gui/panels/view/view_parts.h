// What views name of each panel: stages, ranges, groups, filters, the cursor, the budget, the
// run that is compared.
#pragma once

#include <span>

#include "gui/workbench/panel.h"

namespace trainscope::gui {

std::span<const ViewPart> stages_view();
std::span<const ViewPart> graph_view();
std::span<const ViewPart> memory_view();
std::span<const ViewPart> budget_view();
std::span<const ViewPart> timeline_view();
std::span<const ViewPart> kernels_view();
std::span<const ViewPart> roofline_view();
std::span<const ViewPart> runs_view();

}  // namespace trainscope::gui
