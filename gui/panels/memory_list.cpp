// The buffers that are alive at the cursor, the gaps between them, and what lies idle between two
// uses.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "gui/panels/empty_state.h"
#include "gui/panels/memory_state.h"
#include "gui/views/plan_links.h"

namespace trainscope::gui {
namespace {

constexpr std::array<TableColumn, 4> kAliveColumns = {{
    {.name = "name",
     .title = "buffer",
     .align = Align::kLeft,
     .help = "The values that share these bytes, by the first of them"},
    {.name = "bytes", .title = "size", .width = 86.0F, .help = "Bytes that it takes in the arena"},
    {.name = "calls",
     .title = "life",
     .width = 50.0F,
     .help = "Calls from its first write to its last use"},
    {.name = "class",
     .title = "holds",
     .width = 92.0F,
     .align = Align::kLeft,
     .help = "What kind of value: parameters and states stay, activations wait for the backward "
             "pass"},
}};

constexpr std::array<TableColumn, 3> kGapColumns = {{
    {.name = "offset", .title = "offset", .help = "Bytes from the arena's begin"},
    {.name = "bytes",
     .title = "size",
     .width = 86.0F,
     .help = "Bytes that nobody has at the cursor"},
    {.name = "calls",
     .title = "free for",
     .width = 70.0F,
     .help = "Calls around the cursor at which all of them are free"},
}};

constexpr std::array<TableColumn, 4> kIdleColumns = {{
    {.name = "name",
     .title = "buffer",
     .align = Align::kLeft,
     .help = "It waits between two uses: what recomputation and offloading look for"},
    {.name = "bytes", .title = "size", .width = 86.0F, .help = "Bytes that it takes in the arena"},
    {.name = "wait",
     .title = "wait",
     .width = 56.0F,
     .help = "Calls between the two uses that are furthest apart"},
    {.name = "byte_calls",
     .title = "size x wait",
     .width = 128.0F,
     .help = "Bytes times calls of that wait"},
}};

constexpr std::array<TableColumn, 3> kResidentColumns = {{
    {.name = "step", .title = "step", .width = 64.0F, .help = "That was profiled", .sorts = false},
    {.name = "bytes",
     .title = "resident",
     .width = 104.0F,
     .help = "Memory of the process after the step (RSS): the arena, the program, libraries, data",
     .sorts = false},
    {.name = "more_bytes",
     .title = "more",
     .help = "Than after the profiled step before",
     .sorts = false},
}};

std::int64_t life_of(const PlanBuffer& buffer) {
  return static_cast<std::int64_t>(buffer.end) - static_cast<std::int64_t>(buffer.begin);
}

template <typename Key>
void sort_rows_by(std::vector<std::uint32_t>& rows, bool descending, Key key) {
  std::ranges::stable_sort(rows, [&](std::uint32_t a, std::uint32_t b) {
    return descending ? key(b) < key(a) : key(a) < key(b);
  });
}

void sort_alive(MemoryState& state, const PlanView& plan) {
  state.alive_rows.resize(state.alive.size());
  std::iota(state.alive_rows.begin(), state.alive_rows.end(), 0U);
  const auto buffer = [&](std::uint32_t row) -> const PlanBuffer& {
    return plan.buffers[state.alive[row]];
  };
  const TableState& table = state.alive_table;
  if (table.sorted_by == 0) {
    sort_rows_by(state.alive_rows, table.descending,
                 [&](auto row) { return plan.text(buffer(row).label); });
  } else if (table.sorted_by == 3) {
    sort_rows_by(state.alive_rows, table.descending, [&](auto row) { return buffer(row).holds; });
  } else if (table.sorted_by == 2) {
    sort_rows_by(state.alive_rows, table.descending,
                 [&](auto row) { return life_of(buffer(row)); });
  } else {
    sort_rows_by(state.alive_rows, table.descending, [&](auto row) { return buffer(row).bytes; });
  }
}

void sort_gaps(MemoryState& state) {
  state.gap_rows.resize(state.gaps.size());
  std::iota(state.gap_rows.begin(), state.gap_rows.end(), 0U);
  const TableState& table = state.gap_table;
  sort_rows_by(state.gap_rows, table.descending, [&](auto row) {
    const PlanGap& gap = state.gaps[row];
    if (table.sorted_by == 0) return gap.offset;
    return table.sorted_by == 1 ? gap.bytes : gap.calls();
  });
}

void sort_idle(MemoryState& state, const PlanView& plan) {
  state.idle_rows.resize(state.idle.size());
  std::iota(state.idle_rows.begin(), state.idle_rows.end(), 0U);
  const TableState& table = state.idle_table;
  const auto bytes = [&](std::uint32_t row) { return plan.buffers[state.idle[row].buffer].bytes; };
  if (table.sorted_by == 0) {
    sort_rows_by(state.idle_rows, table.descending,
                 [&](auto row) { return plan.text(plan.buffers[state.idle[row].buffer].label); });
  } else if (table.sorted_by == 1) {
    sort_rows_by(state.idle_rows, table.descending, bytes);
  } else if (table.sorted_by == 2) {
    sort_rows_by(state.idle_rows, table.descending,
                 [&](auto row) { return state.idle[row].calls(); });
  } else {
    sort_rows_by(state.idle_rows, table.descending,
                 [&](auto row) { return state.idle[row].byte_calls; });
  }
}

void draw_buffer_name(Ui& ui, const PlanView& plan, std::uint32_t id, const Rect& rect) {
  const PlanBuffer& buffer = plan.buffers[id];
  Rect rest = rect;
  const Rect swatch = take_left(rest, 8.0F);
  ui.canvas().fill({swatch.x, swatch.y + swatch.height / 2.0F - 4.0F, 8.0F, 8.0F},
                   ui.theme().series[static_cast<std::size_t>(buffer.holds)], 2.0F);
  take_left(rest, 6.0F);
  ui.text(rest, plan.text(buffer.label), {.fit = Fit::kMiddle});
}

void draw_alive_cell(Ui& ui, const MemoryState& state, const PlanView& plan,
                     const TableCell& cell) {
  const std::uint32_t position = state.alive_rows[cell.row];
  const std::uint32_t id = state.alive[position];
  const PlanBuffer& buffer = plan.buffers[id];
  if (cell.column == 0) return draw_buffer_name(ui, plan, id, cell.rect);
  if (cell.column == 3) {
    return ui.text(cell.rect, name_of(buffer.holds), {.color = ui.theme().soft_ink});
  }
  if (cell.column == 1) {
    return ui.number("bytes", cell.rect, {static_cast<double>(buffer.bytes), Unit::kBytes},
                     fmt::format("/buffers/{}/bytes", position));
  }
  ui.number("calls", cell.rect, {static_cast<double>(life_of(buffer)), Unit::kCount},
            fmt::format("/buffers/{}/calls", position));
}

void draw_idle_cell(Ui& ui, const MemoryState& state, const PlanView& plan, const TableCell& cell) {
  const std::uint32_t position = state.idle_rows[cell.row];
  const IdleWait& wait = state.idle[position];
  if (cell.column == 0) return draw_buffer_name(ui, plan, wait.buffer, cell.rect);
  const auto fact = [&](std::string_view key) { return fmt::format("/idle/{}/{}", position, key); };
  if (cell.column == 1) {
    const auto bytes = static_cast<double>(plan.buffers[wait.buffer].bytes);
    return ui.number("bytes", cell.rect, {bytes, Unit::kBytes}, fact("bytes"));
  }
  if (cell.column == 2) {
    return ui.number("wait", cell.rect, {static_cast<double>(wait.calls()), Unit::kCount},
                     fact("calls"));
  }
  ui.number("byte_calls", cell.rect, {static_cast<double>(wait.byte_calls), Unit::kByteCalls},
            fact("byte_calls"));
}

std::optional<std::size_t> row_where(const std::vector<std::uint32_t>& rows, auto&& is_it) {
  const auto found = std::ranges::find_if(rows, is_it);
  if (found == rows.end()) return std::nullopt;
  return static_cast<std::size_t>(found - rows.begin());
}

void draw_alive(Ui& ui, Workbench& workbench, MemoryState& state, const PlanView& plan,
                const Rect& rect, bool scrolls) {
  sort_alive(state, plan);
  const std::uint32_t chosen = workbench.selection().buffer;
  const TableResponse response = table(
      ui, "alive", rect,
      {.columns = kAliveColumns,
       .rows = state.alive_rows.size(),
       .chosen = row_where(state.alive_rows, [&](auto row) { return state.alive[row] == chosen; }),
       .scrolls_to_chosen = scrolls},
      state.alive_table,
      [&](Ui& inner, const TableCell& cell) { draw_alive_cell(inner, state, plan, cell); });
  const PlanLinks* links = workbench.links();
  if (!response.clicked || links == nullptr) return;
  const std::uint32_t buffer = state.alive[state.alive_rows[*response.clicked]];
  workbench.select(select_buffer(*links, workbench.selection(), buffer));
  state.selected = workbench.selection();  // the cursor stays where it is
}

void draw_gaps(Ui& ui, MemoryState& state, const Rect& rect) {
  sort_gaps(state);
  const TableResponse response = table(
      ui, "gaps", rect,
      {.columns = kGapColumns,
       .rows = state.gap_rows.size(),
       .chosen = row_where(state.gap_rows, [&](auto row) { return row == state.chosen_gap; })},
      state.gap_table, [&](Ui& inner, const TableCell& cell) {
        const std::uint32_t position = state.gap_rows[cell.row];
        const PlanGap& gap = state.gaps[position];
        const std::array<std::int64_t, 3> values = {gap.offset, gap.bytes, gap.calls()};
        const std::string_view name = kGapColumns[cell.column].name;
        const Unit unit = name == "calls" ? Unit::kCount : Unit::kBytes;
        inner.number(name, cell.rect, {static_cast<double>(values[cell.column]), unit},
                     fmt::format("/gaps/{}/{}", position, name));
      });
  if (response.clicked) state.chosen_gap = state.gap_rows[*response.clicked];
}

void draw_idle(Ui& ui, Workbench& workbench, MemoryState& state, const PlanView& plan,
               const Rect& rect, bool scrolls) {
  sort_idle(state, plan);
  const std::uint32_t chosen = workbench.selection().buffer;
  const TableResponse response =
      table(ui, "idle", rect,
            {.columns = kIdleColumns,
             .rows = state.idle_rows.size(),
             .chosen = row_where(state.idle_rows,
                                 [&](auto row) { return state.idle[row].buffer == chosen; }),
             .scrolls_to_chosen = scrolls},
            state.idle_table,
            [&](Ui& inner, const TableCell& cell) { draw_idle_cell(inner, state, plan, cell); });
  const PlanLinks* links = workbench.links();
  if (!response.clicked || links == nullptr) return;
  const IdleWait& wait = state.idle[state.idle_rows[*response.clicked]];
  workbench.select(select_buffer(*links, workbench.selection(), wait.buffer));
  state.selected = workbench.selection();
  state.cursor = wait.from + static_cast<std::uint32_t>(wait.calls() / 2);
}

void draw_resident(Ui& ui, Workbench& workbench, MemoryState& state, const Rect& rect) {
  const std::vector<profiler::ResidentBytes>& resident = state.measured.resident;
  if (resident.empty()) {
    return draw_empty(ui, workbench, rect, "Not measured",
                      workbench.run()->message(Topic::kProfile));
  }
  const std::int64_t step = workbench.selection().step;
  const auto chosen = std::ranges::find(
      resident, step, [](const auto& each) { return static_cast<std::int64_t>(each.step); });
  const TableResponse response =
      table(ui, "resident", rect,
            {.columns = kResidentColumns,
             .rows = resident.size(),
             .chosen = chosen == resident.end()
                           ? std::nullopt
                           : std::optional(static_cast<std::size_t>(chosen - resident.begin()))},
            state.resident_table, [&](Ui& inner, const TableCell& cell) {
              const profiler::ResidentBytes& each = resident[cell.row];
              const auto number = [&](std::string_view name, double value, Unit unit) {
                inner.number(name, cell.rect, {value, unit},
                             fmt::format("/measured/resident/{}/{}", cell.row, name));
              };
              if (cell.column == 0) return number("step", each.step, Unit::kCount);
              if (cell.column == 1)
                return number("bytes", static_cast<double>(each.bytes), Unit::kBytes);
              if (cell.row > 0) {
                number("more_bytes", static_cast<double>(each.more_bytes), Unit::kBytes);
              }
            });
  if (!response.clicked) return;
  workbench.request(fmt::format("select step:{}", resident[*response.clicked].step));
}

}  // namespace

void draw_memory_list(Ui& ui, Workbench& workbench, MemoryState& state, const Rect& rect) {
  const PlanView& plan = *workbench.run()->plan();
  const bool scrolls = !(state.listed == workbench.selection());
  state.listed = workbench.selection();
  take_moment(state, plan);
  if (state.list == MemoryList::kAlive) {
    draw_alive(ui, workbench, state, plan, rect, scrolls);
  } else if (state.list == MemoryList::kGaps) {
    draw_gaps(ui, state, rect);
  } else if (state.list == MemoryList::kResident) {
    draw_resident(ui, workbench, state, rect);
  } else {
    draw_idle(ui, workbench, state, plan, rect, scrolls);
  }
}

}  // namespace trainscope::gui
