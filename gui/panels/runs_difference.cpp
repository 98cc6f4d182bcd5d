// Two runs beside each other by ONNX node: rows of times, bytes and kernels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/panels/empty_state.h"
#include "gui/panels/runs_state.h"
#include "gui/views/kernel_rows.h"

namespace trainscope::gui {
namespace {

using profiler::DifferenceRow;
using profiler::NodeInPlan;

constexpr std::array<TableColumn, 8> kDifferenceColumns = {{
    {.name = "name",
     .title = "ONNX node",
     .align = Align::kLeft,
     .help = "Parentheses: time that is no call's"},
    {.name = "a_ms", .title = "A ms", .width = 76.0F, .help = "Median of a step in A"},
    {.name = "b_ms", .title = "B ms", .width = 76.0F, .help = "Median of a step in B"},
    {.name = "difference",
     .title = "B - A ms",
     .width = 88.0F,
     .help = "In colour where it is more than steps differ anyway"},
    {.name = "a_bytes", .title = "A bytes", .width = 84.0F, .help = "Of its results in A"},
    {.name = "b_bytes", .title = "B bytes", .width = 84.0F, .help = "Of its results in B"},
    {.name = "difference_bytes",
     .title = "B - A bytes",
     .width = 88.0F,
     .help = "Bytes that its results have more in B"},
    {.name = "kernels",
     .title = "kernels",
     .width = 240.0F,
     .align = Align::kLeft,
     .help = "That run it, and how often in a step: of A, and of B where that differs",
     .sorts = false},
}};

std::int64_t more_bytes(const DifferenceRow& row) { return row.b.bytes - row.a.bytes; }

void sort_differences(RunsState& state) {
  const std::vector<DifferenceRow>& rows = state.difference.rows;
  state.rows.resize(rows.size());
  for (std::uint32_t i = 0; i < state.rows.size(); ++i) state.rows[i] = i;
  const TableState& by = state.table;
  const auto key = [&](const DifferenceRow& row) {
    if (by.sorted_by == 1) return row.time.a.median;
    if (by.sorted_by == 2) return row.time.b.median;
    if (by.sorted_by == 4) return static_cast<double>(row.a.bytes);
    if (by.sorted_by == 5) return static_cast<double>(row.b.bytes);
    if (by.sorted_by == 6) return std::abs(static_cast<double>(more_bytes(row)));
    return std::abs(row.time.difference_ns());
  };
  std::ranges::stable_sort(state.rows, [&](std::uint32_t a, std::uint32_t b) {
    const DifferenceRow& first = rows[by.descending ? b : a];
    const DifferenceRow& second = rows[by.descending ? a : b];
    if (by.sorted_by == 0) return first.time.name < second.time.name;
    return key(first) < key(second);
  });
}

void take_difference(RunsState& state, RunData& a, RunData& b) {
  const bool kept = state.a == &a && state.b == &b && state.version_a == a.version() &&
                    state.version_b == b.version();
  if (!kept) {
    state.a = &a;
    state.b = &b;
    state.version_a = a.version();
    state.version_b = b.version();
    state.difference = profiler::difference_of({.plan = *a.plan(), .times = a.times()},
                                               {.plan = *b.plan(), .times = b.times()});
  }
  sort_differences(state);
}

// `compare` is of the newest session of each.
std::string fact_of_both(const RunsState& state, std::string_view pointer) {
  const bool is_printed = state.a->shows_newest() && state.b->shows_newest();
  return is_printed ? std::string(pointer) : std::string();
}

void draw_word(Ui& ui, Rect& rest, std::string_view word, Color color) {
  const float width = std::min(rest.width, std::ceil(ui.width(word)) + 1.0F);
  ui.text(take_left(rest, width), word, {.color = color, .fit = Fit::kEnd});
}

// "2 x MatMul", as `compare` says it, from the left of what is left.
void draw_calls(Ui& ui, Rect& rest, std::string_view name, const NodeInPlan& node,
                std::string_view fact, Color color) {
  if (node.calls == 0) return draw_word(ui, rest, "none", color);
  if (node.calls > 1) {
    const Quantity calls{static_cast<double>(node.calls), Unit::kCount};
    const float width = std::ceil(ui.width(text_of(calls).whole())) + 1.0F;
    if (rest.width < width) return;
    ui.number(name, take_left(rest, width), calls, fact, {.face = Face::kText, .color = color});
    draw_word(ui, rest, " x ", color);
  }
  draw_word(ui, rest, node.kernels, color);
}

// Of A, and of B where it runs it otherwise.
void draw_kernels(Ui& ui, Rect rest, const DifferenceRow& row, const std::string& fact_a,
                  const std::string& fact_b) {
  if (!row.time.is_call) return;
  const bool same = row.a.calls == row.b.calls && row.a.kernels == row.b.kernels;
  const Color color = same ? ui.theme().soft_ink : ui.theme().warning;
  draw_calls(ui, rest, "a_calls", row.a, fact_a, color);
  if (same) return;
  draw_word(ui, rest, " → ", color);
  draw_calls(ui, rest, "b_calls", row.b, fact_b, color);
}

// Of what is more the warning's colour.
Color color_of_bytes(const Theme& theme, std::int64_t more) {
  return more > 0 ? theme.warning : theme.good;
}

void draw_difference_cell(Ui& ui, const RunsState& state, const TableCell& cell) {
  const std::uint32_t position = state.rows[cell.row];
  const DifferenceRow& row = state.difference.rows[position];
  const auto fact = [&](std::string_view key) {
    return fact_of_both(state, fmt::format("/rows/{}/{}", position, key));
  };
  const auto number = [&](std::string_view name, double value, Unit unit, std::string_view key,
                          std::optional<Color> color = {}) {
    if (value == 0.0) return;
    ui.number(name, cell.rect, {value, unit}, key,
              {.face = Face::kNumber, .color = color, .hides_unit = unit == Unit::kMilliseconds});
  };
  switch (cell.column) {
    case 0:
      return ui.text(
          cell.rect, row.time.is_call ? row.time.name : "(" + row.time.name + ")",
          {.color = row.time.is_call ? ui.theme().ink : ui.theme().soft_ink, .fit = Fit::kMiddle});
    case 1:
      return number("a_ms", row.time.a.median / 1e6, Unit::kMilliseconds, fact("a/median_ms"));
    case 2:
      return number("b_ms", row.time.b.median / 1e6, Unit::kMilliseconds, fact("b/median_ms"));
    case 3: {
      const bool significant = std::abs(row.time.significance()) > profiler::kSignificant;
      const bool slower = row.time.difference_ns() > 0.0;
      const Color color =
          !significant ? ui.theme().soft_ink : (slower ? ui.theme().error : ui.theme().good);
      return number("difference", row.time.difference_ns() / 1e6, Unit::kMilliseconds,
                    fact("difference_ms"), color);
    }
    case 4:
      return number("a_bytes", static_cast<double>(row.a.bytes), Unit::kBytes,
                    fact("plan_a/bytes"));
    case 5:
      return number("b_bytes", static_cast<double>(row.b.bytes), Unit::kBytes,
                    fact("plan_b/bytes"));
    case 6:
      return number(
          "difference_bytes", static_cast<double>(more_bytes(row)), Unit::kBytes,
          fact_of_both(state,
                       fmt::format("/rows/{0}/plan_b/bytes - /rows/{0}/plan_a/bytes", position)),
          color_of_bytes(ui.theme(), more_bytes(row)));
    default:
      return draw_kernels(ui, cell.rect, row, fact("plan_a/calls"), fact("plan_b/calls"));
  }
}

// A word and its number, from the left; what finds no room is left out.
void draw_run_fact(Ui& ui, Rect& rest, std::string_view word, std::string_view name,
                   const Quantity& quantity, std::string_view fact) {
  if (!(quantity.value == quantity.value) || quantity.value == 0.0) return;
  const float word_width = std::ceil(ui.width(word)) + 6.0F;
  const float number_width = std::ceil(ui.width(text_of(quantity).whole(), Face::kNumber)) + 4.0F;
  if (rest.width < word_width + number_width) return;
  ui.text(take_left(rest, word_width), word, {.color = ui.theme().soft_ink});
  ui.number(name, take_left(rest, number_width), quantity, fact);
  take_left(rest, 14.0F);
}

void draw_heads(Ui& ui, const RunsState& state, const Rect& rect) {
  const Surface surface(ui, rect, ui.theme().header);
  Rect rest = rect.inset(8.0F, 0.0F);
  const profiler::RunDifference& both = state.difference;
  const auto ms = [](double ns) { return Quantity{ns / 1e6, Unit::kMilliseconds}; };
  const auto bytes = [](std::int64_t count) {
    return Quantity{static_cast<double>(count), Unit::kBytes};
  };
  draw_run_fact(ui, rest, "step A", "step_a", ms(both.times.step.a.median),
                fact_of_both(state, "/step/a/median_ms"));
  draw_run_fact(ui, rest, "B", "step_b", ms(both.times.step.b.median),
                fact_of_both(state, "/step/b/median_ms"));
  draw_run_fact(ui, rest, "arena A", "arena_a", bytes(both.arena_a),
                fact_of_both(state, "/arena_a"));
  draw_run_fact(ui, rest, "B", "arena_b", bytes(both.arena_b), fact_of_both(state, "/arena_b"));
}

// What has no node in the active run is chosen alone.
void choose_difference(Workbench& workbench, RunsState& state, const DifferenceRow& row) {
  const std::string& name = row.time.name;
  if (row.time.is_call && row.a.calls == 0) {
    workbench.tell(fmt::format("{} is in B alone: {}", name, state.b->name()));
  } else if (row.time.is_call) {
    const PlanLinks& links = *workbench.links();
    const auto calls = first_calls(links.plan(), profiler::GroupBy::kNode);
    const auto call = calls.find(name);
    const std::uint32_t node = links.node_named(name);
    if (call != calls.end()) {
      workbench.select(
          selection_of_row(links, workbench.selection(), call->second, profiler::GroupBy::kNode));
    } else if (node != kNoRow) {  // B runs it together with others, by whose name the row is
      workbench.select(select_node(links, workbench.selection(), links.plan().nodes[node].serial));
    }
  }
  state.chosen.choose(name, row.time.is_call, workbench.selection().call);
}

std::optional<std::size_t> chosen_difference(RunsState& state, Workbench& workbench) {
  state.chosen.follow(*workbench.run()->plan(), workbench.selection().call,
                      profiler::GroupBy::kNode);
  const auto found = std::ranges::find_if(state.rows, [&](std::uint32_t position) {
    const profiler::ComparedRow& row = state.difference.rows[position].time;
    return state.chosen.is(row.name, row.is_call);
  });
  if (found == state.rows.end()) return std::nullopt;
  return static_cast<std::size_t>(found - state.rows.begin());
}

}  // namespace

void draw_difference(Ui& ui, Workbench& workbench, RunsState& state, const Rect& rect) {
  RunData* a = workbench.run();
  RunData* b = other_run(workbench);
  if (b == nullptr) {
    return draw_empty(
        ui, workbench, rect, "One run is open",
        {.text = "Open another one, or a folder of runs, to see what differs: Ctrl+O."});
  }
  if (a->plan() == nullptr || b->plan() == nullptr) {
    const RunData& without = a->plan() == nullptr ? *a : *b;
    return draw_empty(ui, workbench, rect, without.name() + " has no plan",
                      without.message(Topic::kPlan));
  }
  take_difference(state, *a, *b);
  Rect rest = rect;
  draw_heads(ui, state, take_top(rest, ui.row_height()));
  const TableResponse response = table(ui, kDifferenceTable, rest,
                                       {.columns = kDifferenceColumns,
                                        .rows = state.rows.size(),
                                        .chosen = chosen_difference(state, workbench)},
                                       state.table, [&](Ui& inner, const TableCell& cell) {
                                         draw_difference_cell(inner, state, cell);
                                       });
  if (!response.clicked) return;
  choose_difference(workbench, state, state.difference.rows[state.rows[*response.clicked]]);
}

CopiedTable difference_table(Workbench& workbench) {
  auto& state = workbench.state<RunsState>();
  RunData* a = workbench.run();
  RunData* b = other_run(workbench);
  if (a == nullptr || b == nullptr || a->plan() == nullptr || b->plan() == nullptr) return {};
  take_difference(state, *a, *b);
  CopiedTable copied{.head = {"node", "a_ms", "b_ms", "difference_ms", "a_bytes", "b_bytes",
                              "difference_bytes", "a_calls", "b_calls", "a_kernels", "b_kernels"}};
  for (const std::uint32_t position : state.rows) {
    const DifferenceRow& row = state.difference.rows[position];
    copied.rows.push_back({row.time.name, fmt::format("{:.9g}", row.time.a.median / 1e6),
                           fmt::format("{:.9g}", row.time.b.median / 1e6),
                           fmt::format("{:.9g}", row.time.difference_ns() / 1e6),
                           std::to_string(row.a.bytes), std::to_string(row.b.bytes),
                           std::to_string(more_bytes(row)), std::to_string(row.a.calls),
                           std::to_string(row.b.calls), row.a.kernels, row.b.kernels});
  }
  return copied;
}

}  // namespace trainscope::gui
