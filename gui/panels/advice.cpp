// Levers as rows: a press sets the lever in the Budget panel, or copies its command line.
#include "gui/panels/advice.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "gui/budget/child_process.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

void ask_for_advice(AdviceState& state, const RunData& run) {
  if (state.of != &run) state = {.of = &run, .is_shown = state.is_shown};
  if (state.process) return;
  state.process = std::make_unique<JsonProcess>(
      trainscope_program(), std::vector<std::string>{"advise", run.path().string()});
}

// The budget that the Budget panel plans the lever with, in bytes; 0: it is no lever of that panel.
std::int64_t budget_of_lever(const Json& lever) {
  const JsonObject& flags = lever.at("flags").as_object();
  if (flags.size() != 1) return 0;
  const JsonMember& flag = *flags.begin();
  if (flag.key == "memory-budget") return parse_int(flag.value.as_string()).value_or(0);
  // The least memory at so much more time: within it no plan is quicker.
  return flag.key == "max-overhead" ? lever.at("arena_bytes").as_int() : 0;
}

void take_lever(Workbench& workbench, const Json& lever) {
  const std::int64_t budget = budget_of_lever(lever);
  if (budget > 0 && workbench.run()->reader() != nullptr) {
    workbench.request("panel budget");
    workbench.request(fmt::format("budget {}", budget));
    return;
  }
  workbench.copied = lever.at("command").as_string();
  workbench.tell("copied the command line");
}

struct LeverColumns {
  float bytes = 0.0F;
  float milliseconds = 0.0F;
};

LeverColumns lever_columns(const Ui& ui) {
  return {.bytes = std::ceil(ui.width("000.000 MiB", Face::kNumber)) + 8.0F,
          .milliseconds = std::ceil(ui.width("00000.000 ms", Face::kNumber)) + 8.0F};
}

void draw_lever_head(Ui& ui, Rect row) {
  const LeverColumns columns = lever_columns(ui);
  const TextLook look{.face = Face::kSmall, .color = ui.theme().soft_ink, .align = Align::kRight};
  row = row.inset(4.0F, 0.0F);
  ui.text(take_right(row, columns.milliseconds), "a step", look);
  ui.text(take_right(row, columns.bytes), "arena", look);
  ui.text(row, "lever", {.face = Face::kSmall, .color = ui.theme().soft_ink});
}

void draw_lever(Ui& ui, Workbench& workbench, Rect row, const Json& lever, std::size_t i) {
  const Scope scope(ui, fmt::format("lever/{}", i));
  const std::string& name = lever.at("name").as_string();
  const Response pressed =
      ui.hit("", row, {.kind = ItemKind::kRow, .label = name, .ink = ui.theme().ink});
  const Surface surface(ui, row, pressed.hovered ? ui.theme().hovered : ui.theme().header, 4.0F);
  const bool plans = budget_of_lever(lever) > 0;
  ui.tooltip(
      pressed,
      fmt::format("{}\n{}", plans ? "Plans it in the Budget panel" : "Copies the command line",
                  lever.at("command").as_string()));
  const LeverColumns columns = lever_columns(ui);
  row = row.inset(4.0F, 1.0F);
  Rect line = take_top(row, ui.row_height());
  // Who asks again may find other times and so another order: calls are timed anew.
  const auto fact = [&](std::string_view key) {
    return fmt::format("{} | /levers/{}/{}", twin_of_advice(*workbench.run()), i, key);
  };
  ui.number("ms", take_right(line, columns.milliseconds),
            {lever.at("ms").as_number(), Unit::kMilliseconds}, fact("ms"));
  ui.number("arena_bytes", take_right(line, columns.bytes),
            {lever.at("arena_bytes").as_number(), Unit::kBytes}, fact("arena_bytes"));
  ui.text(line, name, {.face = Face::kBold, .fit = Fit::kEnd});
  ui.text(row, "costs " + lever.at("cost").as_string(),
          {.face = Face::kSmall, .color = ui.theme().soft_ink, .fit = Fit::kEnd});
  if (pressed.clicked) take_lever(workbench, lever);
}

void draw_reasons(Ui& ui, Rect rest, const Json& advice) {
  for (const std::string_view group : {"why_this_peak", "why_this_time"}) {
    for (const Json& sentence : advice.at(group).as_array()) {
      float height = 0.0F;
      {
        const Clip nowhere(ui, {0.0F, 0.0F, 0.0F, 0.0F});
        height = ui.paragraph({0.0F, 0.0F, rest.width, 1e6F}, sentence.as_string());
      }
      if (height > rest.height) return;
      ui.paragraph(take_top(rest, height + 4.0F), sentence.as_string(),
                   {.color = ui.theme().soft_ink});
    }
  }
}

void draw_answer(Ui& ui, Workbench& workbench, Rect rest, const Json& advice) {
  const JsonArray& levers = advice.at("levers").as_array();
  const float row = ui.row_height() + ui.line_height(Face::kSmall) + 5.0F;
  draw_lever_head(ui, take_top(rest, ui.row_height()));
  const auto fitting = static_cast<std::size_t>(std::max(1.0F, rest.height * 0.7F / (row + 4.0F)));
  for (std::size_t i = 0; i < std::min(levers.size(), fitting); ++i) {
    draw_lever(ui, workbench, take_top(rest, row), levers[i], i);
    take_top(rest, 4.0F);
  }
  take_top(rest, 4.0F);
  draw_reasons(ui, rest, advice);
}

}  // namespace

std::string twin_of_advice(const RunData& run) {
  return "trainscope advise " + shell_word(run.path().string());
}

void draw_advice(Ui& ui, Workbench& workbench, AdviceState& state, const Rect& rect) {
  const Scope scope(ui, "advice");
  ask_for_advice(state, *workbench.run());
  state.process->poll();
  Rect rest = rect;
  ui.text(take_top(rest, ui.row_height() + 2.0F), "What would help",
          {.face = Face::kBold, .fit = Fit::kEnd});
  switch (state.process->phase()) {
    case JsonProcess::Phase::kRunning:
      workbench.under_way = true;
      ui.paragraph(rest, "Compiling the step with each lever, and pricing its calls ...",
                   {.color = ui.theme().soft_ink});
      return;
    case JsonProcess::Phase::kFailed:
      ui.paragraph(rest, state.process->fault() + "\n" + state.process->hint(),
                   {.color = ui.theme().error});
      return;
    case JsonProcess::Phase::kDone:
      return draw_answer(ui, workbench, rest, state.process->json());
  }
}

}  // namespace trainscope::gui
