// The Budget panel: less memory for more time, planned while a slider is dragged, and trained with.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "gui/budget/train_on.h"
#include "gui/panels/budget_parts.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/view/view_parts.h"
#include "gui/ui/controls.h"
#include "gui/ui/text_field.h"
#include "gui/workbench/panel.h"

namespace trainscope::gui {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"none", "1", "2", "auto"};

// "312.4 MiB  75.0 %": of the step without recomputation.
std::string budget_text(const BudgetModel& model, std::int64_t bytes) {
  const std::int64_t most = model.range().most_bytes;
  const double share = most > 0 ? static_cast<double>(bytes) / static_cast<double>(most) : 1.0;
  return fmt::format("{}  {:.1f} %", text_of({static_cast<double>(bytes), Unit::kBytes}).whole(),
                     100.0 * share);
}

// The budget, or what is typed for it.
void draw_budget_field(Ui& ui, BudgetPanel& panel, const Rect& rect, const std::string& now) {
  const bool has_focus = ui.memory().focus == ui.path_of("budget");
  if (has_focus && !panel.is_typing) panel.typed.clear();
  if (!has_focus) panel.typed = now;
  panel.is_typing = has_focus;
  const std::int64_t most = panel.model.range().most_bytes;
  const std::optional<std::int64_t> bytes = budget_named(panel.typed, most);
  const FieldResponse typed = text_field(
      ui, "budget", rect, panel.typed,
      {.hint = "60% or 300MB",
       .tooltip = "The most bytes of the arena: 60% of the step without recomputation, 300MB, "
                  "1.5GiB; Enter",
       .is_wrong = has_focus && !panel.typed.empty() && !bytes});
  if (!typed.submitted || !bytes) return;
  panel.model.ask_bytes(*bytes);
  ui.memory().focus.clear();
}

void draw_budget_slider(Ui& ui, BudgetPanel& panel, Rect rect) {
  BudgetModel& model = panel.model;
  const BudgetRange range = model.range();
  const std::string text = budget_text(model, model.budget_now());
  const float width = std::ceil(ui.width("0000.0 MiB  000.0 %")) + 16.0F;
  draw_budget_field(ui, panel, take_right(rect, width), text);
  take_right(rect, 6.0F);
  if (range.empty() || rect.width < 60.0F) return;
  auto value = static_cast<double>(range.clamp(model.budget_now()));
  const auto least = static_cast<double>(range.least_bytes);
  const auto most = static_cast<double>(range.most_bytes);
  const bool moved =
      slider(ui, "slider", rect, value,
             {.least = least, .greatest = most, .step = (most - least) / 100.0}, text,
             "The most bytes of the arena, from the least that a plan is known for to those of the "
             "step without recomputation. Arrows: a hundredth; Home, End: the ends");
  if (moved) model.ask_bytes(range.clamp(std::llround(value)));
}

void draw_level_bar(Ui& ui, BudgetPanel& panel, Rect bar) {
  BudgetModel& model = panel.model;
  bar = bar.inset(8.0F, 3.0F);
  static constexpr std::string_view kTitle = "Recompute";
  ui.text(take_left(bar, std::ceil(ui.width(kTitle)) + 8.0F), kTitle,
          {.color = ui.theme().soft_ink});
  auto level = static_cast<std::size_t>(model.request().level);
  if (tabs(ui, "level", take_left(bar, tabs_width(ui, kLevels)), kLevels, level)) {
    model.ask_level(static_cast<PlanLevel>(level));
  }
  take_left(bar, 12.0F);
  draw_budget_slider(ui, panel, bar);
}

std::size_t pin_count(const PlanRequest& request) {
  return request.keep.size() + request.recompute.size();
}

// Where no plan fits the budget: a button that asks for the least that one does.
void draw_nearest(Ui& ui, BudgetModel& model, Rect& bar) {
  const PlanAnswer* shown = model.shown();
  if (shown == nullptr || shown->outcome.least_bytes <= 0) return;
  const std::int64_t least = shown->outcome.least_bytes;
  const std::string label = "Take " + budget_text(model, least);
  if (button(ui, "nearest", take_right(bar, button_width(ui, label)), label,
             {.tooltip = "The least that a plan is known for"})) {
    model.ask_bytes(least);
  }
  take_right(bar, 6.0F);
}

// What is being done, or what stands in the way; and which session is planned where an older one is
// shown.
void draw_status(Ui& ui, const BudgetModel& model, const Rect& rect, bool shows_newest) {
  const BudgetState& state = model.budget();
  const PlanAnswer* shown = model.shown();
  if (shown != nullptr && !shown->outcome.fault.empty()) {
    ui.text(rect, shown->outcome.fault, {.color = ui.theme().error, .fit = Fit::kEnd});
    return;
  }
  std::string text = state.planning ? "planning ..." : "";
  if (shown != nullptr && shown->outcome.draft) text = "a draft; the plan is being made ...";
  if (shown != nullptr && text.empty()) {
    text = fmt::format("planned in {:.0f} ms", shown->milliseconds);
  }
  const std::size_t pins = pin_count(model.request());
  if (pins > 0) text += fmt::format("; {} pinned", pins);
  const TextLook look{.color = ui.theme().soft_ink};
  if (shows_newest) return ui.fitting_text(rect, {text}, look);
  constexpr std::string_view kWhich = "of the newest session";
  ui.fitting_text(rect, {fmt::format("{}; {}", kWhich, text), kWhich}, look);
}

void draw_actions(Ui& ui, BudgetPanel& panel, Rect bar, bool shows_newest) {
  BudgetModel& model = panel.model;
  bar = bar.inset(8.0F, 3.0F);
  if (model.trains()) {
    if (button(ui, "stop", take_right(bar, button_width(ui, "Stop")), "Stop",
               {.tooltip = "End after the step under way, with a checkpoint"})) {
      model.stop();
    }
  } else {
    const std::string label = fmt::format("Run {} steps", BudgetModel::kSteps);
    const std::string obstacle = model.obstacle();
    const bool pressed = button(
        ui, "run", take_right(bar, button_width(ui, label)), label,
        {.enabled = obstacle.empty(),
         .primary = true,
         .tooltip = "Train on from the newest checkpoint with this plan, in a process of its "
                    "own: a new session of the run, or a new run where the learning rate of this "
                    "one has come to its end"});
    if (pressed) model.train();
  }
  take_right(bar, 6.0F);
  if (button(ui, "config", take_right(bar, button_width(ui, "Write config")), "Write config",
             {.enabled = !model.command().empty(),
              .chosen = panel.shows_command,
              .tooltip = "Show the command line that trains on with this plan"})) {
    panel.shows_command = !panel.shows_command;
  }
  take_right(bar, 6.0F);
  if (pin_count(model.request()) > 0) {
    if (button(ui, "unpin", take_right(bar, button_width(ui, "Unpin all")), "Unpin all",
               {.tooltip = "Leave every value to the planner again"})) {
      model.unpin_all();
    }
    take_right(bar, 6.0F);
  }
  draw_nearest(ui, model, bar);
  draw_status(ui, model, bar, shows_newest);
}

void draw_command(Ui& ui, Workbench& workbench, const BudgetModel& model, Rect row) {
  row = row.inset(8.0F, 2.0F);
  const Rect copy = take_right(row, button_width(ui, "Copy"));
  take_right(row, 6.0F);
  const std::string command = model.command();
  {
    const Surface surface(ui, row, ui.theme().inset, 4.0F);
    ui.text(row.inset(8.0F, 0.0F), command, {.face = Face::kNumber, .fit = Fit::kMiddle});
  }
  if (button(ui, "copy_command", copy, "Copy", {.tooltip = "Copy the command line"})) {
    ui.copy(command);
    workbench.tell("copied the command line");
  }
}

// Facts, and the curve beside them or above, as far as there is room for each.
void draw_facts_and_curve(Ui& ui, BudgetModel& model, Rect rest) {
  constexpr float kFacts = 300.0F;
  constexpr float kLeastCurve = 90.0F;
  const float height = std::min(rest.height, budget_facts_height(ui, model));
  if (rest.width >= kFacts + 2.0F * kLeastCurve) {
    draw_budget_facts(ui, model, take_right(rest, kFacts));
  } else {
    draw_budget_facts(ui, model, take_bottom(rest, height));
  }
  if (rest.height >= kLeastCurve) draw_budget_curve(ui, model, rest.inset(8.0F, 4.0F));
}

void draw_body(Ui& ui, Workbench& workbench, BudgetModel& model, Rect rest) {
  constexpr float kLeastColumn = 420.0F;  // of a height that has more than the plane
  const bool is_wide = rest.width >= 640.0F;
  const float worker = model.worker() != nullptr ? budget_worker_height(ui, model) : 0.0F;
  if (!is_wide || rest.height < 200.0F) {
    if (worker > 0.0F) draw_budget_worker(ui, workbench, model, take_bottom(rest, worker));
    if (rest.height >= kLeastColumn) {
      const float below = std::max(budget_facts_height(ui, model), std::floor(rest.height * 0.4F));
      draw_facts_and_curve(ui, model, take_bottom(rest, std::min(below, rest.height * 0.48F)));
    }
    draw_budget_plane(ui, workbench, model, rest.inset(8.0F, 2.0F));
    return;
  }
  Rect side = take_right(rest, std::clamp(std::floor(rest.width * 0.38F), 300.0F, 480.0F));
  draw_budget_plane(ui, workbench, model, rest.inset(8.0F, 4.0F));
  if (worker > 0.0F) draw_budget_worker(ui, workbench, model, take_bottom(side, worker));
  const float facts = std::min(side.height * 0.55F, budget_facts_height(ui, model));
  draw_budget_facts(ui, model, take_bottom(side, facts));
  draw_budget_curve(ui, model, side.inset(8.0F, 4.0F));
}

bool is_run(Ui& ui, Workbench& workbench, const Rect& rect) {
  const RunData* run = workbench.run();
  const bool has_reader = run != nullptr && run->reader() != nullptr;
  if (run == nullptr || has_reader || !run->message(Topic::kSource).empty()) {
    return has_content(ui, workbench, rect, Topic::kStages, has_reader, "No budget");
  }
  draw_empty(ui, workbench, rect, "Budgets are planned for runs",
             {.text = "This is a model: there is no step yet whose memory could be planned. Train "
                      "it, or ask for a plan of its step.",
              .command = fmt::format("trainscope plan {} --memory-budget BYTES", run->words())});
  return false;
}

// A worker trains on while other panels are shown.
void advance_budget(Workbench& workbench) {
  BudgetModel& model = workbench.state<BudgetPanel>().model;
  if (!model.trains()) return;
  model.advance();
  workbench.under_way = true;
  if (!model.trains()) workbench.tell("The worker has ended: Budget says what came of it");
}

void draw_budget(Ui& ui, Workbench& workbench, const Rect& rect) {
  if (!is_run(ui, workbench, rect)) return;
  auto& panel = workbench.state<BudgetPanel>();
  panel.model.look_at(*workbench.run());
  panel.model.advance();
  workbench.under_way = workbench.under_way || panel.model.is_under_way();
  const BudgetState& state = panel.model.budget();
  if (state.phase == BudgetState::Phase::kFailed) {
    draw_empty(ui, workbench, rect, "The step cannot be planned",
               {.text = state.hint.empty() ? state.now : state.now + "\n" + state.hint});
    return;
  }
  if (state.phase == BudgetState::Phase::kOpening) {
    draw_empty(ui, workbench, rect, "Reading the step ...", {.text = state.now});
    return;
  }
  Rect rest = rect;
  const float bar = ui.row_height() + 8.0F;
  if (rect.height < 3.0F * bar) {  // a strip
    draw_level_bar(ui, panel, take_top(rest, bar));
    draw_budget_plane(ui, workbench, panel.model, rest.inset(8.0F, 2.0F));
    return;
  }
  draw_level_bar(ui, panel, take_top(rest, bar));
  draw_actions(ui, panel, take_top(rest, bar), workbench.run()->shows_newest());
  if (panel.shows_command) draw_command(ui, workbench, panel.model, take_top(rest, bar));
  draw_body(ui, workbench, panel.model, rest);
}

CopiedTable budget_table(Workbench& workbench) {
  CopiedTable copied{.head = {"arena_bytes", "seconds", "overhead", "repeats"}};
  const BudgetState& state = workbench.state<BudgetPanel>().model.budget();
  if (!state.front || !state.plain) return copied;
  for (const TradePoint& point : *state.front) {
    copied.rows.push_back(
        {fmt::format("{}", point.arena_bytes), fmt::format("{:.9g}", point.seconds),
         fmt::format("{:.9g}", overhead_of(point.seconds, state.plain->outcome.seconds)),
         fmt::format("{}", point.rematerialized_nodes)});
  }
  return copied;
}

std::string budget_twin(Workbench& workbench) {
  return workbench.state<BudgetPanel>().model.twin();
}

}  // namespace

Panel budget_panel() {
  return {.id = "budget",
          .title = "Budget",
          .about =
              "How much memory a step needs, and what less of it costs. The slider asks for a "
              "budget: values of the forward phase that do not fit are made a second time when "
              "the backward phase needs them. Left the plan's bytes by time, with the plan before "
              "as a shadow; a click on a value pins it: kept, made again, or left to the planner. "
              "The curve has the plans that no other beats in both memory and time; the bracket "
              "below the plan is proved: no step in so many bytes is quicker. Losses keep every "
              "bit.",
          .keys =
              "Left, Right on the slider: a hundredth; on the curve: the next plan\n"
              "Arrows on the plane: the next value; Enter: pins it\n"
              "Tab: to levels, slider, buttons",
          .draw = draw_budget,
          .advance = advance_budget,
          .table = budget_table,
          .twin = budget_twin,
          .commands = budget_commands(),
          .view = budget_view()};
}

}  // namespace trainscope::gui
