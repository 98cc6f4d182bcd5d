// Levers as rows: a press sets the lever in the Budget panel, or copies its command line.
#include "gui/panels/overview/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "engine/core/text.h"
#include "gui/budget/child_process.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

constexpr std::string_view kTitle = "What would help";
constexpr std::string_view kLooking =
    "Compiling the step with each lever, and pricing its calls ...";
constexpr std::size_t kMostLines = 3;
constexpr float kLineGap = 2.0F;

void start_advice(AdviceState::OfRun& of_run, const RunData& run) {
  std::vector<std::string> words = {"advise", run.path().string()};
  if (run.kind() == SourceKind::kModel) {
    for (std::string& word : words_of(run.sizes())) words.push_back(std::move(word));
  }
  of_run.process = std::make_unique<JsonProcess>(trainscope_program(), words);
  of_run.seen = run.reading();
}

bool is_under_way(const AdviceState::OfRun& of_run) {
  return of_run.process != nullptr && of_run.process->phase() == JsonProcess::Phase::kRunning;
}

bool file_exists(const std::string& file) {
  std::error_code ignored;
  return !file.empty() && std::filesystem::exists(file, ignored);
}

// The model's file may have been moved, or removed.
bool has_model_file(const RunData& run) {
  if (run.manifest() == nullptr) return file_exists(run.path().string());
  const Json& model = run.manifest()->model;
  return std::ranges::any_of(std::array{"path", "file"}, [&](const char* key) {
    const Json* file = model.is_object() ? model.find(key) : nullptr;
    return file != nullptr && file->is_string() && file_exists(file->as_string());
  });
}

bool is_being_trained(const RunData& run) {
  return run.manifest() != nullptr && run.manifest()->sessions.back().status == RunStatus::kRunning;
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

std::string text_of_lever(const Json& lever) {
  return fmt::format(
      "{}\n{}",
      budget_of_lever(lever) > 0 ? "Plans it in the Budget panel" : "Copies the command line",
      lever.at("command").as_string());
}

// Time and bytes of a step with it, from the right of what is left of the line.
void draw_lever_numbers(Ui& ui, Workbench& workbench, Rect& line, const Json& lever,
                        std::size_t i) {
  const LeverColumns columns = lever_columns(ui);
  // Who asks again may find other times and so another order: calls are timed anew.
  const auto fact = [&](std::string_view key) {
    return fmt::format("{} | /levers/{}/{}", twin_of_advice(*workbench.run()), i, key);
  };
  ui.number("ms", take_right(line, columns.milliseconds),
            {lever.at("ms").as_number(), Unit::kMilliseconds}, fact("ms"));
  ui.number("arena_bytes", take_right(line, columns.bytes),
            {lever.at("arena_bytes").as_number(), Unit::kBytes}, fact("arena_bytes"));
}

// Its name, its numbers and below or between them what it costs: a row of two lines has the room
// below.
void draw_lever(Ui& ui, Workbench& workbench, Rect row, const Json& lever, std::size_t i) {
  const Scope scope(ui, fmt::format("lever/{}", i));
  const std::string& name = lever.at("name").as_string();
  const Response pressed =
      ui.hit("", row, {.kind = ItemKind::kRow, .label = name, .ink = ui.theme().ink});
  const Surface surface(ui, row, pressed.hovered ? ui.theme().hovered : ui.theme().header, 4.0F);
  ui.tooltip(pressed, text_of_lever(lever));
  row = row.inset(4.0F, 1.0F);
  const bool is_one_line = row.height < 1.5F * ui.row_height();
  Rect line = is_one_line ? row : take_top(row, ui.row_height());
  draw_lever_numbers(ui, workbench, line, lever, i);
  const float word = std::max(0.25F * line.width, ui.width(name, Face::kBold) + 16.0F);
  const Rect cost = is_one_line ? take_right(line, std::floor(line.width - word)) : row;
  ui.text(line, name, {.face = Face::kBold, .fit = Fit::kEnd});
  ui.text(cost, "cost: " + lever.at("cost").as_string(),
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

std::string twin_of_advice(const RunData& run) { return "trainscope advise " + run.words(); }

const JsonProcess* AdviceState::process_of(const RunData* run) const {
  const auto found = runs.find(run);
  return found == runs.end() ? nullptr : found->second.process.get();
}

void ask_for_advice(Workbench& workbench) {
  const RunData& run = *workbench.run();
  AdviceState::OfRun& of_run = workbench.state<AdviceState>().runs[&run];
  start_advice(of_run, run);
  of_run.is_wanted = true;
}

void look_for_advice(Workbench& workbench) {
  const RunData& run = *workbench.run();
  auto& runs = workbench.state<AdviceState>().runs;
  AdviceState::OfRun& of_run = runs[&run];
  bool is_any_under_way = false;
  for (auto& [each, of_each] : runs) {
    if (of_each.process != nullptr) of_each.process->poll();
    is_any_under_way = is_any_under_way || is_under_way(of_each);
  }
  // One after the other: calls are timed. What an answer is of may be another step by now.
  const bool is_new = run.shows_newest() && of_run.seen != run.reading();
  if (workbench.works_ahead && !is_any_under_way && is_new) {
    const bool has_step = run.has_memory_plan() && has_model_file(run);
    if (has_step && !is_being_trained(run)) start_advice(of_run, run);
    of_run.seen = run.reading();
  }
  if (is_under_way(of_run) || is_any_under_way) workbench.under_way = true;
  const bool has_failed =
      of_run.process != nullptr && of_run.process->phase() == JsonProcess::Phase::kFailed;
  if (has_failed && of_run.is_wanted) workbench.complain(of_run.process->fault());
  if (!is_under_way(of_run)) of_run.is_wanted = false;
}

float advice_lines_height(const Ui& ui, Workbench& workbench, float room) {
  const JsonProcess* process = workbench.state<AdviceState>().process_of(workbench.run());
  if (process == nullptr || process->phase() == JsonProcess::Phase::kFailed) return 0.0F;
  const float line = ui.row_height() + kLineGap;
  const float head = ui.row_height() + 2.0F;
  if (room < head + line) return 0.0F;
  const auto fitting = std::min(kMostLines, static_cast<std::size_t>((room - head) / line));
  return head + line * static_cast<float>(fitting);
}

void draw_advice_lines(Ui& ui, Workbench& workbench, const Rect& rect) {
  const Scope scope(ui, "advice");
  const JsonProcess& process = *workbench.state<AdviceState>().process_of(workbench.run());
  Rect rest = rect;
  Rect head = take_top(rest, ui.row_height() + 2.0F);
  const bool is_done = process.phase() == JsonProcess::Phase::kDone;
  if (is_done) {
    const LeverColumns columns = lever_columns(ui);
    const TextLook look{.face = Face::kSmall, .color = ui.theme().soft_ink, .align = Align::kRight};
    take_right(head, 4.0F);
    ui.text(take_right(head, columns.milliseconds), "a step", look);
    ui.text(take_right(head, columns.bytes), "arena", look);
  }
  ui.fitting_text(head, {kTitle}, {.face = Face::kBold});
  if (!is_done) {
    return ui.fitting_text(take_top(rest, ui.row_height()), {kLooking, "Looking for it ..."},
                           {.color = ui.theme().soft_ink});
  }
  const JsonArray& levers = process.json().at("levers").as_array();
  if (levers.empty()) {
    return ui.fitting_text(take_top(rest, ui.row_height()), {"Nothing of what is known."},
                           {.color = ui.theme().soft_ink});
  }
  for (std::size_t i = 0; i < levers.size() && rest.height >= ui.row_height(); ++i) {
    draw_lever(ui, workbench, take_top(rest, ui.row_height()), levers[i], i);
    take_top(rest, kLineGap);
  }
}

void draw_advice(Ui& ui, Workbench& workbench, const Rect& rect) {
  const Scope scope(ui, "advice");
  AdviceState::OfRun& of_run = workbench.state<AdviceState>().runs[workbench.run()];
  if (of_run.process == nullptr) {
    start_advice(of_run, *workbench.run());
    look_for_advice(workbench);
  }
  const JsonProcess& process = *of_run.process;
  Rect rest = rect;
  Rect head = take_top(rest, ui.row_height() + 2.0F);
  constexpr std::string_view kAgain = "Ask again";
  const float again = button_width(ui, kAgain);
  if (head.width > again + 140.0F) {
    const bool asks = button(ui, "again", take_right(head, again), kAgain,
                             {.enabled = process.phase() != JsonProcess::Phase::kRunning,
                              .tooltip = "Calls are timed anew"});
    if (asks) workbench.request("overview.advise");
  }
  ui.fitting_text(head, {kTitle}, {.face = Face::kBold});
  switch (process.phase()) {
    case JsonProcess::Phase::kRunning:
      ui.paragraph(rest, kLooking, {.color = ui.theme().soft_ink});
      return;
    case JsonProcess::Phase::kFailed:
      ui.paragraph(rest, process.fault() + "\n" + process.hint(),
                   {.color = ui.theme().error, .fit = Fit::kEnd});
      return;
    case JsonProcess::Phase::kDone:
      return draw_answer(ui, workbench, rest, process.json());
  }
}

}  // namespace trainscope::gui
