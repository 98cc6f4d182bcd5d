// The parts of the Budget panel: the plane of the plan, the curve of memory for time, and what a
// worker says.
#pragma once

#include "gui/panels/budget_model.h"
#include "gui/ui/ui.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// Buffers of the plan over those of the one before; a click pins a value. Gives back the value
// below the mouse, empty: none.
std::string draw_budget_plane(Ui& ui, Workbench& workbench, BudgetModel& model, const Rect& rect);
// Time by memory; a click asks for a budget.
void draw_budget_curve(Ui& ui, BudgetModel& model, const Rect& rect);
// The plan in numbers, each with its name.
void draw_budget_facts(Ui& ui, const BudgetModel& model, const Rect& rect);
float budget_facts_height(const Ui& ui, const BudgetModel& model);
// Steps, loss, and what was predicted beside what was measured.
void draw_budget_worker(Ui& ui, const BudgetModel& model, const Rect& rect);
float budget_worker_height(const Ui& ui);

}  // namespace trainscope::gui
