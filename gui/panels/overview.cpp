// The Overview: what ran, where, how it went, what it cost; and where to look next.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/overview/advice.h"
#include "gui/panels/overview/how_it_ran.h"
#include "gui/panels/overview/overview_cards.h"
#include "gui/panels/plot.h"
#include "gui/ui/controls.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

using profiler::Breakdown;
using profiler::BreakdownRow;

constexpr float kLeastTwoCurves = 200.0F;  // of the height that both have
constexpr float kRowsOfLists = 9.0F;       // that what would help leaves to the lists

struct ClassBytes {
  BufferClass holds = BufferClass::kParameter;
  std::int64_t bytes = 0;
};

// What is computed once of a run.
struct OverviewState {
  const RunData* of = nullptr;
  std::uint64_t version = 0;
  Breakdown by_op;                  // the greatest first
  std::vector<ClassBytes> at_peak;  // the greatest first
  std::int64_t live_bytes = 0;      // at the peak
  std::uint32_t largest = kNoRow;   // buffer at the peak that a node makes
  std::vector<OverviewCard> cards;
  std::vector<std::pair<double, double>> losses;
  std::vector<std::pair<double, double>> step_ms;
};

void read_peak(OverviewState& state, const PlanView& plan) {
  const MemoryPeak peak = memory_peak(plan);
  state.live_bytes = peak.live_bytes;
  const auto largest = std::ranges::find_if(
      peak.alive, [&plan](auto id) { return is_made_by_node(plan, plan.buffers[id]); });
  if (largest != peak.alive.end()) state.largest = *largest;
  for (std::size_t i = 0; i < peak.bytes_of.size(); ++i) {
    if (peak.bytes_of[i] == 0) continue;
    state.at_peak.push_back({static_cast<BufferClass>(i), peak.bytes_of[i]});
  }
  std::ranges::stable_sort(state.at_peak, std::ranges::greater(), &ClassBytes::bytes);
}

const OverviewState& state_of_now(Workbench& workbench) {
  auto& state = workbench.state<OverviewState>();
  RunData& run = *workbench.run();
  if (state.of == &run && state.version == run.version()) return state;
  state = {};
  state.of = &run;
  state.version = run.version();
  state.cards = overview_cards(run);
  for (const StepRecord& step : run.metrics().steps) {
    state.losses.emplace_back(static_cast<double>(step.step), step.loss);
    state.step_ms.emplace_back(static_cast<double>(step.step), step.step_ms);
  }
  if (run.plan() == nullptr) return state;
  read_peak(state, *run.plan());
  if (run.times() == nullptr || run.times()->steps.empty()) return state;
  state.by_op = profiler::breakdown(*run.times(), *run.plan(), profiler::GroupBy::kOp,
                                    {.machine = run.machine(), .keeps_steps = false});
  profiler::sort_rows(state.by_op, "ms");
  return state;
}

// A bar with its label and number; returns whether it was pressed.
bool draw_bar(Ui& ui, Rect row, std::string_view label, double share, Color color,
              const Quantity& quantity, std::string_view fact) {
  const Response pressed =
      ui.hit("", row, {.kind = ItemKind::kRow, .label = label, .ink = ui.theme().ink});
  const Surface surface(ui, row, pressed.hovered ? ui.theme().hovered : ui.paper(), 3.0F);
  row = row.inset(4.0F, 0.0F);
  ui.text(take_left(row, row.width * 0.36F), label, {.fit = Fit::kMiddle});
  ui.number("number", take_right(row, ui.width("000.000 MiB", Face::kNumber)), quantity, fact);
  take_right(row, 6.0F);
  ui.canvas().fill({row.x, row.center().y - 4.0F,
                    std::max(1.0F, row.width * static_cast<float>(std::min(1.0, share))), 8.0F},
                   color, 2.0F);
  return pressed.clicked;
}

void draw_time(Ui& ui, Workbench& workbench, Rect rest, const OverviewState& state) {
  const Scope scope(ui, "time");
  ui.text(take_top(rest, ui.row_height() + 2.0F), "Where a step's time goes",
          {.face = Face::kBold, .fit = Fit::kEnd});
  if (state.by_op.rows.empty()) {
    const Message& why = workbench.run()->message(Topic::kProfile);
    draw_empty(ui, workbench, rest, "No profile",
               {.text = why.text.empty() ? "The run was not profiled." : why.text,
                .command = why.command});
    return;
  }
  const std::string run = workbench.run()->words() + workbench.run()->session_flag();
  const double greatest = state.by_op.share(state.by_op.rows[0]);
  for (std::size_t i = 0; i < state.by_op.rows.size(); ++i) {
    if (rest.height < ui.row_height()) break;
    const BreakdownRow& row = state.by_op.rows[i];
    const Scope of_row(ui, std::to_string(i));
    const std::string label = row.is_call ? row.name : "(" + row.name + ")";
    const bool pressed =
        draw_bar(ui, take_top(rest, ui.row_height()), label, state.by_op.share(row) / greatest,
                 ui.theme().series[0], {state.by_op.ms(row.ns), Unit::kMilliseconds},
                 fmt::format("query {} --by op | /rows/{}/ms", run, i));
    if (pressed) workbench.request("panel kernels");
  }
}

void draw_memory(Ui& ui, Workbench& workbench, Rect rest, const OverviewState& state) {
  const Scope scope(ui, "peak");
  Rect head = take_top(rest, ui.row_height() + 2.0F);
  take_right(head, 4.0F);  // as rows are
  if (!state.at_peak.empty()) {
    ui.number("live", take_right(head, ui.width("000.000 MiB", Face::kNumber) + 4.0F),
              {static_cast<double>(state.live_bytes), Unit::kBytes},
              fmt::format("inspect {} --memory{} | /live_bytes", workbench.run()->words(),
                          workbench.run()->session_flag()));
  }
  ui.text(head, "What holds the peak", {.face = Face::kBold, .fit = Fit::kEnd});
  if (state.at_peak.empty()) {
    draw_empty(ui, workbench, rest, "No plan", workbench.run()->message(Topic::kPlan));
    return;
  }
  for (const ClassBytes& entry : state.at_peak) {
    if (rest.height < ui.row_height()) break;
    const std::string_view name = trainscope::name_of(entry.holds);
    const Scope of_row(ui, name);
    const bool pressed =
        draw_bar(ui, take_top(rest, ui.row_height()), name,
                 static_cast<double>(entry.bytes) / static_cast<double>(state.at_peak[0].bytes),
                 ui.theme().series[static_cast<std::size_t>(entry.holds)],
                 {static_cast<double>(entry.bytes), Unit::kBytes},
                 fmt::format("inspect {} --memory{} | /by_class/{}", workbench.run()->words(),
                             workbench.run()->session_flag(), name));
    if (pressed) workbench.request("panel memory");
  }
}

void draw_curve(Ui& ui, const Rect& rect, std::string_view title, std::string_view unit,
                const std::vector<std::pair<double, double>>& points, Color color) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const auto& [x, y] : points) {
    xs.push_back(x);
    ys.push_back(y);
  }
  PlotAxis x = axis_around(xs);
  if (!xs.empty() && xs.front() < xs.back()) {
    x.low = xs.front();
    x.high = xs.back();
  }
  const Plot plot(
      ui, rect, {.x = x, .y = axis_around(ys), .title = title, .x_label = "step", .y_label = unit});
  plot.line(points, {.color = color, .width = 1.5F});
}

// Questions, and the panel with the answer.
void draw_questions(Ui& ui, Workbench& workbench, Rect rest, const OverviewState& state) {
  const Scope scope(ui, "ask");
  const auto ask = [&](std::string_view name, std::string_view label, bool enabled) {
    const float width = button_width(ui, label);
    if (width > rest.width) return false;
    const bool pressed = button(ui, name, take_left(rest, width), label, {.enabled = enabled});
    take_left(rest, 8.0F);
    return pressed;
  };
  if (ask("peak", "Which op holds the peak?", state.largest != kNoRow)) {
    workbench.request(fmt::format("select buffer:{}", state.largest));
    workbench.request("panel memory");
  }
  const bool has_plan = workbench.run()->has_memory_plan();
  if (ask("fit", "Make it fit in less", has_plan && workbench.run()->reader() != nullptr)) {
    workbench.request("panel budget");
  }
  auto& advice = workbench.state<AdviceState>();
  // What is asked is of the newest session.
  if (ask("help", "What would help?", has_plan && workbench.run()->shows_newest())) {
    advice.is_shown = !advice.is_shown;
  }
  if (ask("slow", "Which op is slow?", !state.by_op.rows.empty())) {
    workbench.request("panel kernels");
  }
  if (ask("stages", "What did the passes do?", !workbench.run()->stages().empty())) {
    workbench.request("panel stages");
  }
}

void draw_overview(Ui& ui, Workbench& workbench, const Rect& rect) {
  const RunData* run = workbench.run();
  const bool is_there = run != nullptr && run->message(Topic::kSource).empty();
  if (!has_content(ui, workbench, rect, Topic::kSource, is_there, "Overview")) return;
  const OverviewState& state = state_of_now(workbench);
  Rect rest = rect.inset(16.0F, 12.0F);
  ui.text(take_top(rest, ui.row_height() + 4.0F), run->name(),
          {.face = Face::kTitle, .fit = Fit::kMiddle});
  draw_how_it_ran(ui, *run, take_top(rest, ui.row_height()));
  const RunSession* session = run->session_record();
  if (session != nullptr && !session->message.empty()) {
    ui.text(take_top(rest, ui.row_height()), session->message,
            {.color = ui.theme().error, .fit = Fit::kEnd});
  }
  take_top(rest, 8.0F);
  draw_overview_cards(ui, *run, state.cards, rest);
  const float question_height = ui.row_height() + 6.0F;
  if (rest.height > question_height) {
    const Rect questions = take_bottom(rest, question_height);
    take_bottom(rest, 8.0F);
    draw_questions(ui, workbench, questions, state);
  }
  look_for_advice(workbench);
  auto& advice = workbench.state<AdviceState>();
  const bool can_advise = run->has_memory_plan() && run->shows_newest();
  const bool is_full = advice.is_shown && can_advise;
  const float lines =
      is_full || !can_advise
          ? 0.0F
          : advice_lines_height(ui, workbench, rest.height - kRowsOfLists * ui.row_height());
  if (lines > 0.0F) {
    draw_advice_lines(ui, workbench, take_bottom(rest, lines));
    take_bottom(rest, 8.0F);
  }
  take_top(rest, 4.0F);
  if (rest.height < 3.0F * ui.row_height()) return;  // no heading without a row
  const bool wide = rest.width > 560.0F;
  const bool advises = is_full && rest.height > 100.0F;
  if (advises && !wide) return draw_advice(ui, workbench, rest);
  Rect left = wide ? take_left(rest, std::floor(rest.width * 0.5F) - 12.0F) : Rect{};
  if (wide) take_left(rest, 24.0F);
  if (rest.height < 7.0F * ui.row_height()) {  // the lists beside each other, without curves
    draw_time(ui, workbench, wide ? left : rest, state);
    if (wide) draw_memory(ui, workbench, rest, state);
    return;
  }
  Rect times = take_top(rest, std::floor(rest.height * 0.52F));
  take_bottom(times, 8.0F);
  draw_time(ui, workbench, times, state);
  draw_memory(ui, workbench, rest, state);
  if (advises) return draw_advice(ui, workbench, left);
  if (!wide || left.height < 120.0F) return;
  if (state.losses.empty()) {
    draw_empty(ui, workbench, left, "No steps", run->message(Topic::kMetrics));
    return;
  }
  const bool has_both = left.height >= kLeastTwoCurves;
  const Rect loss = take_top(left, has_both ? std::floor(left.height * 0.55F) : left.height);
  draw_curve(ui, loss, "Loss", "", state.losses, ui.theme().series[0]);
  if (!has_both) return;
  take_top(left, 8.0F);
  draw_curve(ui, left, "Time of a step", "ms", state.step_ms, ui.theme().series[4]);
}

CopiedTable overview_table(Workbench& workbench) {
  CopiedTable copied{.head = {"what", "value"}};
  if (workbench.run() == nullptr) return copied;
  for (const OverviewCard& card : state_of_now(workbench).cards) {
    copied.rows.push_back({std::string(card.label), text_of(card.quantity).whole()});
  }
  return copied;
}

std::string overview_twin(Workbench& workbench) { return twin_of_run(workbench, "inspect"); }

constexpr AppCommand kOverviewCommands[] = {
    {.id = "overview.advise",
     .title = "Overview: ask what would help",
     .help = "The levers that the step has against its memory and time; again: timed anew",
     .run = [](Workbench& w) { ask_for_advice(w), w.request("panel overview"); },
     .enabled =
         [](const Workbench& w) {
           return w.run() != nullptr && w.run()->has_memory_plan() && w.run()->shows_newest();
         }},
};

}  // namespace

Panel overview_panel() {
  return {
      .id = "overview",
      .title = "Overview",
      .about =
          "What ran, on what, and how it went: the loss and the time of each step, where "
          "the time of a profiled step goes, and what is in memory when most bytes are "
          "alive. Press a bar to see more of it. What would help is looked for while you look; a "
          "press plans it in Budget, or copies its command line.",
      .draw = draw_overview,
      .table = overview_table,
      .twin = overview_twin,
      .commands = kOverviewCommands};
}

}  // namespace trainscope::gui
