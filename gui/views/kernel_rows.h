// Where the time of profiled steps went, as rows that a table shows: the same as `query` prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/machine/machine.h"
#include "gui/views/plan_links.h"
#include "gui/views/selection.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {

struct KernelWishes {
  profiler::GroupBy by = profiler::GroupBy::kNode;
  std::string filter = {};  // an expression of `query`; empty: everything
  std::string sort = "ms";  // a column
  bool descending = true;

  bool operator==(const KernelWishes&) const = default;
};

struct KernelRows {
  profiler::Breakdown table = {};
  std::string fault = {};  // of the filter; the table is then empty

  // The position of a row in what `query` prints, which always has the greatest first.
  std::size_t printed_position(std::size_t row, const KernelWishes& wishes) const {
    return wishes.descending ? row : table.rows.size() - 1 - row;
  }
};

KernelRows kernel_rows(const profiler::StepTimes& times, const PlanView& plan,
                       const Machine* machine, const KernelWishes& wishes);

// By the names of rows: the first call that has the name.
std::unordered_map<std::string, std::uint32_t> first_calls(const PlanView& plan,
                                                           profiler::GroupBy by);
// The first call that is counted in the row; kNoRow: none is.
std::uint32_t first_call_of(const PlanView& plan, const profiler::BreakdownRow& row,
                            profiler::GroupBy by);
// What a row stands for, by the first of its calls: a call, a kernel, or else the call's node.
Selection selection_of_row(const PlanLinks& links, const Selection& from, std::uint32_t call,
                           profiler::GroupBy by);

// "node": as `query --by` names it.
std::string_view name_of(profiler::GroupBy by);

}  // namespace trainscope::gui
