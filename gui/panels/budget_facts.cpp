// Numbers of the plan, and of a worker that trains with it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "engine/core/text.h"
#include "gui/panels/budget_parts.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct FactRow {
  std::string_view name;
  std::string_view title;
  std::string_view short_title;
  std::string_view fact;  // in the twin's JSON
  Unit unit = Unit::kBytes;
  double value = kUnknown;
  std::string_view help;
};

double fact_at(const Json& facts, std::string_view group, std::string_view key) {
  const Json* in = group.empty() ? &facts : facts.find(group);
  const Json* value = in == nullptr ? nullptr : in->find(key);
  return value != nullptr && value->is_number() ? value->as_number() : kUnknown;
}

std::vector<FactRow> rows_of(const PlanAnswer& answer) {
  const Json& facts = answer.facts;
  const PlanOutcome& outcome = answer.outcome;
  return {
      {.name = "peak",
       .title = "Peak: the arena",
       .short_title = "Peak",
       .fact = "/arena_bytes",
       .value = fact_at(facts, "", "arena_bytes"),
       .help = "The one block of memory that the step uses, to the byte"},
      {.name = "bound",
       .title = "Bound of this placement",
       .short_title = "Bound",
       .fact = "/lower_bound_bytes",
       .value = fact_at(facts, "", "lower_bound_bytes"),
       .help = "No placement of this plan's buffers needs less"},
      {.name = "plain",
       .title = "Without recomputation",
       .short_title = "Plain",
       .fact = "/recompute/plain_bytes",
       .value = fact_at(facts, "recompute", "plain_bytes"),
       .help = "The arena of the step as it stands"},
      {.name = "seconds",
       .title = "Step, as predicted",
       .short_title = "Step",
       .fact = facts.contains("recompute") ? "/recompute/seconds" : "/step_seconds",
       .unit = Unit::kSeconds,
       .value = outcome.seconds,
       .help = "By the machine's model, or by --costs: for comparison, no measurement"},
      {.name = "overhead",
       .title = "More time",
       .short_title = "More",
       .fact = "/recompute/overhead",
       .unit = Unit::kShare,
       .value = fact_at(facts, "recompute", "overhead"),
       .help = "Of the step without recomputation, as predicted"},
      {.name = "certificate",
       .title = "Proved: no step is below",
       .short_title = "Proved",
       .fact = "/recompute/bound_overhead",
       .unit = Unit::kShare,
       .value = fact_at(facts, "recompute", "bound_overhead"),
       .help = "No step within the budget takes less than so much more time, whatever it makes "
               "again"},
      {.name = "repeats",
       .title = "Ops that run twice",
       .short_title = "Repeats",
       .fact = "/recompute/repeats",
       .unit = Unit::kCount,
       .value = fact_at(facts, "recompute", "repeats"),
       .help = "Nodes of the forward phase that run again for the backward phase"},
  };
}

void draw_fact(Ui& ui, Rect row, const FactRow& fact, bool is_printed) {
  const Response response =
      ui.hit(fmt::format("{}/row", fact.name), row, {.kind = ItemKind::kArea, .focusable = false});
  ui.tooltip(response, fact.help);
  const Quantity quantity{fact.value, fact.unit};
  const Rect number =
      take_right(row, std::ceil(ui.width(text_of(quantity).whole(), Face::kNumber)) + 1.0F);
  take_right(row, 6.0F);
  ui.fitting_text(row, {fact.title, fact.short_title}, {.color = ui.theme().soft_ink});
  ui.number(fact.name, number, quantity, is_printed ? fact.fact : "");
}

// The losses as a line from left to right, as high as they are apart.
void draw_losses(Ui& ui, const Rect& rect, const std::vector<WorkerStep>& steps,
                 std::int64_t count) {
  ui.canvas().fill(rect, ui.theme().inset, 3.0F);
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const WorkerStep& step : steps) {
    if (!std::isfinite(step.loss)) continue;
    least = std::min(least, step.loss);
    most = std::max(most, step.loss);
  }
  if (!(least <= most)) return;
  const Rect area = rect.inset(4.0F, 4.0F);
  const double span = std::max(most - least, 1e-12);
  const float stride = area.width / static_cast<float>(std::max<std::int64_t>(1, count - 1));
  std::vector<Point> points;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(steps[i].loss)) continue;
    const float height = static_cast<float>((steps[i].loss - least) / span);
    points.push_back(
        {area.x + stride * static_cast<float>(i), area.bottom() - area.height * height});
  }
  if (points.size() > 1) ui.canvas().polyline(points, {.color = ui.theme().accent, .width = 1.5F});
  ui.canvas().circle(points.back(), 3.0F, ui.theme().accent);
}

std::string_view phase_text(WorkerState::Phase phase) {
  using Phase = WorkerState::Phase;
  switch (phase) {
    case Phase::kStarting:
      return "compiling";
    case Phase::kTraining:
      return "training";
    case Phase::kStopping:
      return "stopping";
    case Phase::kFinished:
      return "done";
    case Phase::kStopped:
      return "stopped";
    case Phase::kFailed:
      return "failed";
  }
  return "";
}

std::string worker_title(const WorkerState& state) {
  std::string text(phase_text(state.phase));
  if (state.phase == WorkerState::Phase::kStarting && !state.progress.work.empty()) {
    text += fmt::format(": {} {}", state.progress.work, state.progress.now);
  }
  return text;
}

struct Measured {
  std::string_view name;
  std::string_view title;
  Quantity predicted;
  Quantity measured;
  std::string predicted_fact = {};
  std::string measured_fact = {};
};

// Of each of the two columns: what its numbers and its head need.
float measured_width(const Ui& ui, std::span<const Measured> rows) {
  float width = std::max(ui.width("measured", Face::kSmall), ui.width("predicted", Face::kSmall));
  for (const Measured& each : rows) {
    width = std::max({width, ui.width(text_of(each.predicted).whole(), Face::kNumber),
                      ui.width(text_of(each.measured).whole(), Face::kNumber)});
  }
  return std::ceil(width) + 12.0F;
}

void draw_measured(Ui& ui, Rect row, const Measured& each, float width) {
  const Rect measured = take_right(row, width);
  const Rect predicted = take_right(row, width);
  ui.fitting_text(row, {each.title}, {.color = ui.theme().soft_ink});
  ui.number(fmt::format("{}/predicted", each.name), predicted, each.predicted, each.predicted_fact);
  ui.number(fmt::format("{}/measured", each.name), measured, each.measured, each.measured_fact);
}

std::string seconds_fact(const BudgetModel& model) {
  const bool recomputes = !view_of(*model.applied().record).recompute.empty();
  return fmt::format("{} | {}", model.applied_twin(),
                     recomputes ? "/recompute/seconds" : "/step_seconds");
}

// What the command line prints that the worker was started with, once it has trained to its end.
std::string fact_of_end(const BudgetModel& model, std::string_view key) {
  if (model.worker()->phase != WorkerState::Phase::kFinished) return {};
  return fmt::format("{} | /{}", model.applied_command(), key);
}

// What its run keeps of the times of its steps.
std::string fact_of_steps(const Workbench& workbench, const BudgetModel& model) {
  if (model.worker()->phase != WorkerState::Phase::kFinished) return {};
  const std::string run =
      model.new_run().empty() ? workbench.run()->words() : shell_word(model.new_run().string());
  return fmt::format("inspect {} | /warm_step_ms", run);
}

// "training: step 12 of 23", as far as there is room.
void draw_worker_steps(Ui& ui, const BudgetModel& model, Rect rest) {
  const WorkerState& state = *model.worker();
  const TextLook look{.face = Face::kBold};
  const auto say = [&](const std::string& words) {
    ui.fitting_text(take_left(rest, std::ceil(ui.width(words, look.face)) + 5.0F), {words}, look);
  };
  const auto number = [&](std::string_view name, std::int64_t count, std::string_view key) {
    const Quantity quantity{static_cast<double>(count), Unit::kCount};
    const float width = std::ceil(ui.width(text_of(quantity).whole(), look.face)) + 1.0F;
    if (rest.width < width) return;
    ui.number(name, take_left(rest, width), quantity, fact_of_end(model, key), look);
    take_left(rest, 5.0F);
  };
  say(fmt::format("{}: step", phase_text(state.phase)));
  number("step_done", state.steps.back().step, "step");
  say("of");
  number("to_step", state.begin->to_step, "to_step");
}

void draw_worker_head(Ui& ui, const BudgetModel& model, Rect row) {
  const WorkerState& state = *model.worker();
  const float number = std::ceil(ui.width("00 000.0000", Face::kNumber)) + 4.0F;
  const bool has_steps = !state.steps.empty();
  if (has_steps) {
    const Rect loss = take_right(row, number);
    ui.number("loss", loss, {state.steps.back().loss, Unit::kPlain},
              fact_of_end(model, "last_loss"));
    ui.text({row.right() - 40.0F, row.y, 40.0F, row.height}, "loss",
            {.color = ui.theme().soft_ink, .align = Align::kRight});
    take_right(row, 44.0F);
  }
  if (state.begin && has_steps) return draw_worker_steps(ui, model, row);
  ui.fitting_text(row, {worker_title(state), phase_text(state.phase)}, {.face = Face::kBold});
}

}  // namespace

void draw_budget_facts(Ui& ui, const BudgetModel& model, const Rect& rect) {
  const Scope scope(ui, "facts");
  const PlanAnswer* shown = model.shown();
  if (shown == nullptr) return;
  Rect rest = rect.inset(8.0F, 2.0F);
  if (shown->facts.is_null()) {
    const PlanOutcome& outcome = shown->outcome;
    ui.paragraph(rest, outcome.fault + "\n" + outcome.hint,
                 {.color = ui.theme().error, .fit = Fit::kEnd});
    return;
  }
  const bool is_printed = !shown->outcome.draft;
  for (const FactRow& fact : rows_of(*shown)) {
    if (std::isnan(fact.value)) continue;
    if (rest.height < ui.row_height()) return;
    draw_fact(ui, take_top(rest, ui.row_height()), fact, is_printed);
  }
}

float budget_facts_height(const Ui& ui, const BudgetModel& model) {
  const PlanAnswer* shown = model.shown();
  std::ptrdiff_t rows = 3;
  if (shown != nullptr && !shown->facts.is_null()) {
    rows = std::ranges::count_if(rows_of(*shown),
                                 [](const FactRow& fact) { return !std::isnan(fact.value); });
  }
  return static_cast<float>(rows) * ui.row_height() + 8.0F;
}

namespace {

float new_run_height(const Ui& ui) { return ui.row_height() + 6.0F; }

// Which run the worker makes, and once it has ended the way there: what is planned now is of the
// run before.
void draw_new_run(Ui& ui, Workbench& workbench, const BudgetModel& model, Rect row) {
  static constexpr std::string_view kOpen = "Open it";
  if (button(ui, "open", take_right(row, button_width(ui, kOpen)), kOpen,
             {.enabled = !model.trains() && model.worker()->begin.has_value(),
              .tooltip = "Show the new run, once its steps are done"})) {
    workbench.request("open " + model.new_run().string());
  }
  take_right(row, 6.0F);
  ui.text(row, fmt::format("a new run: {}", printable(model.new_run().filename().string())),
          {.color = ui.theme().soft_ink, .fit = Fit::kMiddle});
}

}  // namespace

float budget_worker_height(const Ui& ui, const BudgetModel& model) {
  return 5.0F * ui.row_height() + 54.0F + (model.new_run().empty() ? 0.0F : new_run_height(ui));
}

void draw_budget_worker(Ui& ui, Workbench& workbench, const BudgetModel& model, const Rect& rect) {
  const WorkerState* state = model.worker();
  if (state == nullptr) return;
  const Scope scope(ui, "worker");
  const Surface surface(ui, rect, ui.theme().header);
  Rect rest = rect.inset(8.0F, 3.0F);
  draw_worker_head(ui, model, take_top(rest, ui.row_height()));
  if (!model.new_run().empty()) {
    const Rect row = take_bottom(rest, new_run_height(ui));
    draw_new_run(ui, workbench, model, row.inset(0.0F, 3.0F));
  }
  if (state->phase == WorkerState::Phase::kFailed) {
    ui.paragraph(rest, state->fault + "\n" + state->hint,
                 {.color = ui.theme().error, .fit = Fit::kEnd});
    return;
  }
  const std::int64_t count =
      state->begin ? state->begin->to_step - state->begin->from_step : BudgetModel::kSteps;
  draw_losses(ui, take_top(rest, 44.0F).inset(0.0F, 2.0F), state->steps, count);
  Rect head = take_top(rest, ui.row_height());
  const auto bytes = [](std::int64_t count_of) {
    return Quantity{count_of > 0 ? static_cast<double>(count_of) : kUnknown, Unit::kBytes};
  };
  const WorkerPeak peak = state->peak.value_or(WorkerPeak{});
  const Measured rows[] = {{.name = "arena",
                            .title = "Arena",
                            .predicted = bytes(peak.predicted_bytes),
                            .measured = bytes(peak.used_bytes),
                            .predicted_fact = fact_of_end(model, "predicted_bytes"),
                            .measured_fact = fact_of_end(model, "used_bytes")},
                           {.name = "step",
                            .title = "Step",
                            .predicted = {model.applied().seconds, Unit::kSeconds},
                            .measured = {median_milliseconds(state->steps), Unit::kMilliseconds},
                            .predicted_fact = seconds_fact(model),
                            .measured_fact = fact_of_steps(workbench, model)},
                           {.name = "resident",
                            .title = "Process",
                            .predicted = {kUnknown, Unit::kBytes},
                            .measured = bytes(peak.resident_bytes)}};
  const float width = measured_width(ui, rows);
  const TextLook look{.face = Face::kSmall, .color = ui.theme().soft_ink, .align = Align::kRight};
  ui.text(take_right(head, width), "measured", look);
  ui.text(take_right(head, width), "predicted", look);
  for (const Measured& row : rows) draw_measured(ui, take_top(rest, ui.row_height()), row, width);
}

}  // namespace trainscope::gui
