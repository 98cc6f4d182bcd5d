// What the Roofline panel shows: points of the active run and of the one beside, and its parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gui/panels/query/call_query.h"
#include "gui/views/roofline_points.h"

namespace trainscope::gui {

inline constexpr std::array kRooflineGroups = {profiler::GroupBy::kNode, profiler::GroupBy::kOp,
                                               profiler::GroupBy::kKernel};
inline constexpr std::array<std::string_view, kRooflineGroups.size()> kRooflineGroupNames = {
    "node", "op", "kernel"};

// A run's part of it.
struct RooflineRun {
  const RunData* of = nullptr;  // null: there is no such run
  std::uint64_t version = 0;
  KernelRows rows = {};
  Roofline roofline = {};
};

struct RooflineState {
  KernelWishes wishes = {};
  TableState table = {.sorted_by = 1};
  KernelWishes shown = {};  // of the two runs
  RooflineRun own = {};
  RooflineRun beside = {};
  RooflineAxes axes = {};
  Selection selected = {};  // when the list was last scrolled to it

  bool has_beside() const { return beside.of != nullptr; }
};

// With the filter of now.
RooflineState& roofline_state_of(Workbench& workbench);
// Brings it to the active run, which has times of calls, and to the one beside.
void update_roofline(RooflineState& state, Workbench& workbench);
// The point of the selected call; none where there is none.
std::optional<std::size_t> chosen_point(const RooflineState& state, const Workbench& workbench);
void select_point(Workbench& workbench, const RooflineState& state, std::size_t point);

// More places in legends than colours: what is no class is grey.
Color color_of_class(const Theme& theme, OpClass op_class);

std::span<const AppCommand> roofline_commands();

std::vector<TableColumn> roofline_columns(const RooflineState& state);
// The points as rows: sorted by their heads, chosen by clicks and keys.
void draw_roofline_list(Ui& ui, Workbench& workbench, RooflineState& state, const Rect& rect);

}  // namespace trainscope::gui
