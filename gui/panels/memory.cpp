// The Memory panel: every byte of the arena over the calls of a step, and who holds them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "gui/panels/empty_state.h"
#include "gui/panels/memory_state.h"
#include "gui/panels/view/view_parts.h"
#include "gui/ui/controls.h"
#include "gui/workbench/panel.h"

namespace trainscope::gui {
namespace {

// Whether what is selected is bytes that are seen where the cursor is.
bool is_alive_at_cursor(const MemoryState& state, const PlanView& plan,
                        const Selection& selection) {
  const bool is_bytes =
      selection.subject == Subject::kBuffer || selection.subject == Subject::kValue;
  if (!is_bytes || selection.buffer >= plan.buffers.size()) return false;
  const PlanBuffer& buffer = plan.buffers[selection.buffer];
  return buffer.begin <= state.cursor && state.cursor < buffer.end;
}

}  // namespace

void update_memory(MemoryState& state, Workbench& workbench) {
  RunData& run = *workbench.run();
  if (state.of != &run || state.version != run.version()) {
    const bool same_run = state.of == &run;
    const MemoryMap before = std::move(state.map);
    state.of = &run;
    state.version = run.version();
    state.map = memory_map(*run.plan());
    state.idle = idle_waits(*run.plan());
    const profiler::MeasuredMemory* measured = run.measured_memory();
    state.measured = measured == nullptr ? profiler::MeasuredMemory() : *measured;
    state.map.bound = state.measured.bound;
    state.alive_time = kNoRow;
    const bool same_plan =
        same_run && before.times == state.map.times && before.arena_bytes == state.map.arena_bytes;
    if (!same_plan) {
      state.range = whole_range(state.map);
      state.cursor = state.map.peak_time;
      state.gaps.clear();
      state.chosen_gap = kNoRow;
    }
  }
  const Selection& selection = workbench.selection();
  if (state.selected == selection) return;
  if (is_alive_at_cursor(state, *run.plan(), selection)) return;
  if (selection.call < run.plan()->calls.size()) {
    state.cursor =
        std::min(run.plan()->calls[selection.call].time, std::max(1U, state.map.times) - 1);
  }
}

std::uint32_t call_at_cursor(const MemoryState& state) {
  return state.cursor < state.map.call_at.size() ? state.map.call_at[state.cursor] : kNoRow;
}

void set_cursor(MemoryState& state, Workbench& workbench, std::uint32_t time) {
  state.cursor = time;
  const PlanLinks* links = workbench.links();
  const std::uint32_t call = call_at_cursor(state);
  if (links == nullptr || call == kNoRow) return;
  workbench.select(select_call(*links, workbench.selection(), call));
  state.selected = workbench.selection();
}

void take_moment(MemoryState& state, const PlanView& plan) {
  if (state.alive_time == state.cursor) return;
  const std::int64_t offset =
      state.chosen_gap < state.gaps.size() ? state.gaps[state.chosen_gap].offset : -1;
  state.alive_time = state.cursor;
  state.alive = alive_at(plan, state.cursor);
  state.gaps = gaps_at(plan, state.cursor);
  state.chosen_gap = gap_at(state, static_cast<double>(offset));
}

void see_selected_buffer(MemoryState& state, const Workbench& workbench) {
  const auto box = std::ranges::find(state.map.rectangles, workbench.selection().buffer,
                                     &MemoryRectangle::buffer);
  if (box == state.map.rectangles.end()) return;
  state.range = range_around(state.map, *box);
}

std::uint32_t gap_at(const MemoryState& state, double byte) {
  for (std::uint32_t i = 0; i < state.gaps.size(); ++i) {
    const PlanGap& gap = state.gaps[i];
    const auto begin = static_cast<double>(gap.offset);
    if (begin <= byte && byte < begin + static_cast<double>(gap.bytes)) return i;
  }
  return kNoRow;
}

namespace {

constexpr float kMemoryListWidth = 320.0F;
constexpr float kWideMemoryList = 420.0F;  // of wide panels
constexpr float kLeastPlane = 360.0F;

void draw_memory_tools(Ui& ui, Workbench& workbench, MemoryState& state, Rect bar) {
  bar = bar.inset(6.0F, 3.0F);
  static constexpr std::array<std::string_view, 4> kLists = {"alive", "gaps", "idle", "process"};
  auto list = static_cast<std::size_t>(state.list);
  tabs(ui, "list", take_left(bar, tabs_width(ui, kLists)), kLists, list);
  state.list = static_cast<MemoryList>(list);
  take_left(bar, 8.0F);
  if (button(ui, "peak", take_left(bar, button_width(ui, "Peak")), "Peak",
             {.tooltip = "The cursor to the call where the most bytes are alive (P)"})) {
    set_cursor(state, workbench, state.map.peak_time);
  }
  take_left(bar, 6.0F);
  if (button(ui, "fit", take_left(bar, button_width(ui, "Fit")), "Fit",
             {.tooltip = "The whole step and the whole arena (F)"})) {
    state.range = whole_range(state.map);
  }
  take_left(bar, 10.0F);
  const float width = std::ceil(ui.width("touched bytes")) + 30.0F;
  if (bar.width >= width) {
    toggle(ui, "touched", take_left(bar, width), "touched bytes", state.shows_touched,
           "Bytes that each call reads and writes, in the curve of the bytes that are alive");
  }
}

bool has_memory(const Workbench& workbench) {
  return workbench.run() != nullptr && workbench.run()->has_memory_plan();
}

void go_to_peak(Workbench& workbench) {
  auto& state = workbench.state<MemoryState>();
  update_memory(state, workbench);
  set_cursor(state, workbench, state.map.peak_time);
}

void go_to_buffer(Workbench& workbench) {
  auto& state = workbench.state<MemoryState>();
  update_memory(state, workbench);
  see_selected_buffer(state, workbench);
}

bool has_selected_buffer(const Workbench& workbench) {
  return has_memory(workbench) && workbench.selection().buffer != kNoRow;
}

void fit_memory(Workbench& workbench) {
  auto& state = workbench.state<MemoryState>();
  update_memory(state, workbench);
  state.range = whole_range(state.map);
}

template <MemoryList kList>
void list_memory(Workbench& workbench) {
  auto& state = workbench.state<MemoryState>();
  state.list = state.list == kList ? MemoryList::kAlive : kList;
}

constexpr AppCommand kMemoryCommands[] = {
    {.id = "memory.peak",
     .title = "Memory: to the peak",
     .panel_key = "P",
     .help = "The cursor to the call where the most bytes are alive",
     .run = go_to_peak,
     .enabled = has_memory},
    {.id = "memory.fit",
     .title = "Memory: the whole plane",
     .panel_key = "F",
     .help = "The whole step and the whole arena",
     .run = fit_memory,
     .enabled = has_memory},
    {.id = "memory.to_buffer",
     .title = "Memory: to the selected buffer",
     .panel_key = "V",
     .help = "Show the buffer over a third of the plane; also by the middle button on it",
     .run = go_to_buffer,
     .enabled = has_selected_buffer},
    {.id = "memory.gaps",
     .title = "Memory: the gaps of the arena, or what is alive",
     .panel_key = "G",
     .help = "What is free at the cursor, in the list beside the plane",
     .run = list_memory<MemoryList::kGaps>,
     .enabled = has_memory},
    {.id = "memory.idle",
     .title = "Memory: what lies idle, or what is alive",
     .help = "The list beside the plane",
     .run = list_memory<MemoryList::kIdle>,
     .enabled = has_memory},
    {.id = "memory.process",
     .title = "Memory: the process, or what is alive",
     .help = "What the process took after each profiled step, in the list beside the plane",
     .run = list_memory<MemoryList::kResident>,
     .enabled = has_memory},
};

void draw_memory(Ui& ui, Workbench& workbench, const Rect& rect) {
  if (!has_content(ui, workbench, rect, Topic::kPlan, has_memory(workbench), "No plan")) return;
  const RunData* run = workbench.run();
  auto& state = workbench.state<MemoryState>();
  update_memory(state, workbench);
  Rect rest = rect;
  Rect list = {};
  const bool roomy = rect.height > 150.0F;
  if (roomy) {
    draw_memory_tools(ui, workbench, state, take_top(rest, ui.row_height() + 8.0F));
    take_moment(state, *run->plan());
    draw_memory_summary(ui, state, *run->plan(), take_top(rest, ui.row_height()));
    draw_memory_legend(ui, state, *run->plan(), take_top(rest, ui.row_height()));
    if (rest.width >= kMemoryListWidth + kLeastPlane) {
      list = take_right(rest, rest.width > 1100.0F ? kWideMemoryList : kMemoryListWidth);
    } else if (rest.height > 330.0F) {
      list = take_bottom(rest, rest.height * 0.36F);
    }
    rest = rest.inset(4.0F, 4.0F);
  }
  take_panel_keys(ui, workbench, kMemoryCommands);
  // Before the list, so that it has the keys that both know.
  draw_memory_plane(ui, workbench, state, rest);
  if (!list.empty()) draw_memory_list(ui, workbench, state, list);
  state.selected = workbench.selection();
}

CopiedTable alive_table(const MemoryState& state, const PlanView& plan) {
  CopiedTable copied{.head = {"buffer", "class", "offset", "bytes", "birth", "death", "producer"}};
  for (const std::uint32_t id : holders_at(plan, state.cursor)) {
    const PlanBuffer& buffer = plan.buffers[id];
    copied.rows.push_back({std::string(plan.text(buffer.label)), std::string(name_of(buffer.holds)),
                           std::to_string(buffer.offset), std::to_string(buffer.bytes),
                           std::to_string(buffer.begin), std::to_string(buffer.end),
                           std::string(plan.text(buffer.producer))});
  }
  return copied;
}

CopiedTable gap_table(MemoryState& state, const PlanView& plan) {
  take_moment(state, plan);
  CopiedTable copied{.head = {"offset", "bytes", "from", "to", "calls"}};
  for (const PlanGap& gap : state.gaps) {
    copied.rows.push_back({std::to_string(gap.offset), std::to_string(gap.bytes),
                           std::to_string(gap.begin), std::to_string(gap.end),
                           std::to_string(gap.calls())});
  }
  return copied;
}

CopiedTable idle_table(const MemoryState& state, const PlanView& plan) {
  CopiedTable copied{.head = {"buffer", "bytes", "from", "to", "byte_calls"}};
  for (const IdleWait& wait : state.idle) {
    const PlanBuffer& buffer = plan.buffers[wait.buffer];
    copied.rows.push_back({std::string(plan.text(buffer.label)), std::to_string(buffer.bytes),
                           std::to_string(wait.from), std::to_string(wait.to),
                           std::to_string(wait.byte_calls)});
  }
  return copied;
}

CopiedTable resident_table(const MemoryState& state) {
  CopiedTable copied{.head = {"step", "resident_bytes", "more_bytes"}};
  for (const profiler::ResidentBytes& each : state.measured.resident) {
    copied.rows.push_back(
        {std::to_string(each.step), std::to_string(each.bytes), std::to_string(each.more_bytes)});
  }
  return copied;
}

// Of the list that is shown.
CopiedTable memory_table(Workbench& workbench) {
  if (!has_memory(workbench)) return {};
  const RunData* run = workbench.run();
  auto& state = workbench.state<MemoryState>();
  update_memory(state, workbench);
  if (state.list == MemoryList::kGaps) return gap_table(state, *run->plan());
  if (state.list == MemoryList::kIdle) return idle_table(state, *run->plan());
  if (state.list == MemoryList::kResident) return resident_table(state);
  return alive_table(state, *run->plan());
}

std::string memory_twin(Workbench& workbench) {
  std::string line = twin_of_run(workbench, "inspect") + " --memory";
  if (!has_memory(workbench)) return line;
  const RunData* run = workbench.run();
  auto& state = workbench.state<MemoryState>();
  update_memory(state, workbench);
  const std::uint32_t call = call_at_cursor(state);
  if (call != kNoRow) line += fmt::format(" --at {}", call);
  return line + run->session_flag();
}

}  // namespace

Panel memory_panel() {
  return {.id = "memory",
          .title = "Memory",
          .about =
              "The arena of a step: calls from left to right, offsets from bottom to top. Each "
              "rectangle is a buffer, at the place and for the calls that the plan gives it; "
              "the executor uses exactly these bytes. Above it the bytes that are alive at "
              "each call, with a line around those that a profiled step had bound, and the lower "
              "bound that no placement can go below. Hatched buffers are computed a second time. "
              "Dashed frames are gaps: bytes that nobody has at the cursor, for as long as they "
              "are free. The list has what is alive at the cursor, the gaps there, what lies idle "
              "between two uses, or the memory of the whole process after each profiled step.",
          .keys =
              "Left, Right: the cursor to the call before, after\nHome, End: to the first, last "
              "call\n+, -: nearer, further\nWheel: zoom at "
              "the mouse",
          .draw = draw_memory,
          .table = memory_table,
          .twin = memory_twin,
          .commands = kMemoryCommands,
          .view = memory_view()};
}

}  // namespace trainscope::gui
