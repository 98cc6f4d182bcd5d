// What the Runs panel remembers, and its parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/panels/query/chosen_row.h"
#include "gui/ui/table.h"
#include "gui/ui/ui.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"
#include "profiler/analysis/run_difference.h"

namespace trainscope::gui {

struct RunsState {
  std::optional<std::size_t> other = {};  // the run that the active one is held against
  TableState runs_table = {.sorted_by = 0, .descending = false};
  TableState table = {.sorted_by = 3};
  profiler::RunDifference difference = {};
  std::vector<std::uint32_t> rows = {};  // positions in the difference's, as they are sorted
  const RunData* a = nullptr;            // of `difference`
  const RunData* b = nullptr;
  std::uint64_t version_a = 0;
  std::uint64_t version_b = 0;
  ChosenRow chosen = {};  // of `rows`
};

// The run that the active one is held against: the one chosen, or else the first other one; null
// where no other is open.
RunData* other_run(Workbench& workbench);

inline constexpr std::string_view kDifferenceTable = "difference";
void draw_difference(Ui& ui, Workbench& workbench, RunsState& state, const Rect& rect);
CopiedTable difference_table(Workbench& workbench);

}  // namespace trainscope::gui
