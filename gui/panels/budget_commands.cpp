// Commands of the Budget panel.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "gui/panels/budget_parts.h"
#include "gui/panels/panels.h"

namespace trainscope::gui {
namespace {

// The active run's, ready to be asked; null where none is open.
BudgetModel* model_of(Workbench& workbench) {
  const RunData* run = workbench.run();
  if (run == nullptr || run->reader() == nullptr) return nullptr;
  BudgetModel& model = workbench.state<BudgetPanel>().model;
  model.look_at(*run);
  model.advance();
  return &model;
}

template <PlanLevel kLevel>
void ask_level_of(Workbench& workbench) {
  if (BudgetModel* model = model_of(workbench)) model->ask_level(kLevel);
}

// To the plan next to the one that is asked for.
template <int kDirection>
void step_budget(Workbench& workbench) {
  BudgetModel* model = model_of(workbench);
  if (model != nullptr) model->step(kDirection);
}

void run_steps(Workbench& workbench) {
  BudgetModel* model = model_of(workbench);
  if (model == nullptr) return;
  const std::string obstacle = model->obstacle();
  if (!obstacle.empty()) return workbench.complain(obstacle);
  model->train();
}

bool has_run(const Workbench& workbench) {
  return workbench.run() != nullptr && workbench.run()->reader() != nullptr;
}

bool has_buffer(const Workbench& workbench) {
  return has_run(workbench) && workbench.selection().buffer != kNoRow;
}

void show_command(Workbench& workbench) {
  const BudgetModel* model = model_of(workbench);
  if (model == nullptr) return;
  if (const std::string missing = model->missing_start(); !missing.empty()) {
    return workbench.tell(missing);
  }
  workbench.state<BudgetPanel>().shows_command ^= true;
}

// The value that the selected call writes, or that is in the selected buffer: from free to kept, to
// made again, to free.
void pin_selection(Workbench& workbench) {
  BudgetModel* model = model_of(workbench);
  const PlanLinks* links = workbench.links();
  if (model == nullptr || links == nullptr || !has_buffer(workbench)) return;
  const PlanView& plan = links->plan();
  const std::uint32_t buffer = workbench.selection().buffer;
  if (buffer >= plan.buffers.size()) return;  // the run has another plan by now
  if (model->pinnable() == nullptr) {
    return workbench.tell("the step is still being planned: pin it when Budget shows the plan");
  }
  const std::string_view value = model->pinnable()->value_of(plan, original_values(plan), buffer);
  if (value.empty()) {
    return workbench.complain("only what the forward phase makes can be pinned: a tensor of it");
  }
  PlanRequest request = model->request();
  const Pin pin = next_pin(pin_of(request, value));
  set_pin(request, value, pin);
  model->ask(std::move(request));
  workbench.tell(
      fmt::format("{}: {}", value, pin == Pin::kFree ? "the planner decides" : name_of(pin)));
}

}  // namespace

bool ask_budget(Workbench& workbench, std::string_view text) {
  BudgetModel* model = model_of(workbench);
  return model != nullptr && model->ask_named(text);
}

std::span<const AppCommand> budget_commands() {
  static constexpr AppCommand kRows[] = {
      {.id = "budget.none",
       .title = "Plan without recomputation",
       .menu = "Run",
       .help = "Every value of the forward phase is kept",
       .run = ask_level_of<PlanLevel::kNone>,
       .enabled = has_run},
      {.id = "budget.1",
       .title = "Recompute cheap ops",
       .menu = "Run",
       .help = "Level 1: every cluster of cheap ops runs twice",
       .run = ask_level_of<PlanLevel::kLevel1>,
       .enabled = has_run},
      {.id = "budget.2",
       .title = "Recompute more ops",
       .menu = "Run",
       .help = "Level 2: also where something smaller must be kept instead",
       .run = ask_level_of<PlanLevel::kLevel2>,
       .enabled = has_run},
      {.id = "budget.auto",
       .title = "Plan within a budget",
       .menu = "Run",
       .help = "The planner's choice for the budget that was asked for last",
       .run = ask_level_of<PlanLevel::kAuto>,
       .enabled = has_run},
      {.id = "budget.less",
       .title = "Next smaller plan",
       .menu = "Run",
       .help = "The plan of the front with the next smaller arena",
       .run = step_budget<-1>,
       .enabled = has_run},
      {.id = "budget.more",
       .title = "Next larger plan",
       .menu = "Run",
       .help = "The plan of the front with the next larger arena",
       .run = step_budget<1>,
       .enabled = has_run},
      {.id = "budget.least",
       .title = "Smallest plan",
       .menu = "Run",
       .help = "The plan of the front with the smallest arena",
       .run =
           [](Workbench& w) {
             if (BudgetModel* model = model_of(w)) model->ask_least();
           },
       .enabled = has_run},
      {.id = "budget.pin",
       .title = "Pin the selected value",
       .menu = "Run",
       .help = "Keep it, make it again, or leave it to the planner: each time the next of these",
       .run = pin_selection,
       .enabled = has_buffer},
      {.id = "budget.unpin",
       .title = "Unpin all values",
       .menu = "Run",
       .help = "Leave every value to the planner again",
       .run =
           [](Workbench& w) {
             if (BudgetModel* model = model_of(w)) model->unpin_all();
           },
       .enabled = has_run},
      {.id = "budget.config",
       .title = "Command line of this plan, or not",
       .menu = "Run",
       .help = "What trains on with the plan, to be copied",
       .run = show_command,
       .enabled = has_run},
      {.id = "budget.run",
       .title = "Run 20 steps with this plan",
       .menu = "Run",
       .help = "Train on from the newest checkpoint, in a process of its own",
       .run = run_steps,
       .enabled = has_run},
      {.id = "budget.stop",
       .title = "Stop the worker",
       .menu = "Run",
       .help = "End after the step under way, with a checkpoint",
       .run =
           [](Workbench& w) {
             if (BudgetModel* model = model_of(w)) model->stop();
           },
       .enabled = has_run}};
  return kRows;
}

}  // namespace trainscope::gui
