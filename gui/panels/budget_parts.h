// The parts of the Budget panel: the plane of the plan, the curve of memory for time, and what a
// worker says.
#pragma once

#include <span>
#include <string>

#include "gui/panels/budget_model.h"
#include "gui/ui/ui.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// What the panel remembers.
struct BudgetPanel {
  BudgetModel model;
  bool shows_command = false;
  std::string typed;  // a budget
  bool is_typing = false;
};

std::span<const AppCommand> budget_commands();

// Buffers of the plan over those of the one before; a click pins a value.
void draw_budget_plane(Ui& ui, Workbench& workbench, BudgetModel& model, const Rect& rect);
// Where the values of a plan are drawn.
struct PinPlane {
  Rect plane;
  const PlanAnswer& answer;
  const MemoryFrame& frame;
};
void draw_pins(Ui& ui, const BudgetModel& model, const PinPlane& pins);
// As items, so that tests find them.
void record_pinnable(Ui& ui, const BudgetModel& model, const PinPlane& pins);
// Arrows go from value to value, Enter pins the chosen one.
void take_pin_keys(Ui& ui, BudgetModel& model, const PinPlane& pins, std::string& chosen);
void draw_chosen_value(Ui& ui, const BudgetModel& model, const PinPlane& pins,
                       const std::string& chosen);
// Time by memory; a click asks for a budget.
void draw_budget_curve(Ui& ui, BudgetModel& model, const Rect& rect);
// The plan in numbers, each with its name.
void draw_budget_facts(Ui& ui, const BudgetModel& model, const Rect& rect);
float budget_facts_height(const Ui& ui, const BudgetModel& model);
// Steps, loss, and what was predicted beside what was measured; the way to a new run.
void draw_budget_worker(Ui& ui, Workbench& workbench, const BudgetModel& model, const Rect& rect);
float budget_worker_height(const Ui& ui, const BudgetModel& model);

}  // namespace trainscope::gui
