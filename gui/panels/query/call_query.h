// Which calls of a profile Kernels and Roofline show, and beside which other run: one question,
// asked in either panel.
#pragma once

#include <span>
#include <string>

#include "gui/ui/table.h"
#include "gui/ui/ui.h"
#include "gui/views/kernel_rows.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

struct CallQuery {
  std::string filter = {};          // an expression of `query`, as it is typed
  const RunData* beside = nullptr;  // as it was chosen; null: none
};

// Whether the active run has calls whose times are known.
bool has_call_times(Workbench& workbench);
// The run beside, as long as it is open and has times, and is not the active one; null: none.
RunData* run_beside(Workbench& workbench);
// The next of the open runs is the one beside, after the last none.
void take_next_beside(Workbench& workbench);

// The menu of runs, and the filter in what is left of the bar. `fault` is what is wrong with the
// filter now.
void draw_call_query(Ui& ui, Workbench& workbench, Rect bar, std::string_view fault);
// In place of what a filter would leave that is not understood.
void draw_wrong_filter(Ui& ui, Workbench& workbench, const Rect& rect, const std::string& fault);

// The command line that prints the rows of a run.
std::string query_of(const RunData& run, const KernelWishes& wishes);

// Before a table of rows is drawn: it shows how the wishes sort, and they go its way. Names are
// sorted from A, as `query` does.
void follow_sorting(KernelWishes& wishes, TableState& table, std::span<const TableColumn> columns);

}  // namespace trainscope::gui
