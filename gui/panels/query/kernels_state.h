// What the Kernels panel shows: columns, rows, and those of another run beside them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gui/panels/query/call_query.h"
#include "gui/panels/query/chosen_row.h"
#include "gui/ui/table.h"
#include "gui/views/kernel_rows.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

struct NumberColumn {
  TableColumn column;
  Unit unit = Unit::kCount;
};

// Of another run's row of the same name, and how much more it takes.
extern const NumberColumn kOtherColumn;
extern const NumberColumn kMoreColumn;

struct KernelsState {
  KernelWishes wishes;
  TableState table = {.sorted_by = 1};
  KernelRows rows;
  KernelWishes shown;  // of the rows
  double greatest_share = 0.0;
  const RunData* of = nullptr;
  std::uint64_t version = 0;
  Selection selected;  // when the rows were last scrolled to it
  std::vector<const NumberColumn*> columns;

  const RunData* shown_other = nullptr;  // the run beside it; null: none
  std::uint64_t other_version = 0;
  KernelRows other_rows;
  std::map<std::string, std::size_t> other_row;  // by name
  std::vector<std::size_t> other_alone;  // of its rows, those that this run has not: they come last

  ChosenRow chosen;

  std::size_t row_count() const { return rows.table.rows.size() + other_alone.size(); }
  bool is_of_other_alone(std::size_t row) const { return row >= rows.table.rows.size(); }
  // Of the table's row: of this run, or of the one beside it alone.
  const profiler::BreakdownRow& row(std::size_t row) const;
  std::optional<std::size_t> chosen_row() const;
};

// With the filter of now.
KernelsState& kernels_of(Workbench& workbench);
// Without the roof's column where no machine is known.
void choose_columns(KernelsState& state, bool has_machine, bool has_other);
std::vector<TableColumn> columns_of(const KernelsState& state);
// The rows of now: kept until the run, the wishes or its data change.
const KernelRows& rows_of_now(KernelsState& state, RunData& run, RunData* other);

}  // namespace trainscope::gui
