// Columns of the Kernels panel, and its rows while they stay the same.
#include "gui/panels/query/kernels_state.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace trainscope::gui {
namespace {

// In the order of importance: the last ones are left out where there is no room.
constexpr std::array<NumberColumn, 11> kNumberColumns = {{
    {{.name = "ms",
      .title = "ms",
      .width = 76.0F,
      .help = "Milliseconds of a step on the driving thread, the mean of the profiled steps"},
     Unit::kMilliseconds},
    {{.name = "share",
      .title = "share %",
      .width = 118.0F,
      .help = "Of the time of all profiled steps"},
     Unit::kShare},
    {{.name = "roof",
      .title = "roof %",
      .width = 74.0F,
      .help = "The time that it would take at the machine's measured roofs, by the time that it "
              "takes: 100 % is as fast as the machine can. Needs `doctor --roofs`"},
     Unit::kShare},
    {{.name = "gflops",
      .title = "GFLOP/s",
      .width = 78.0F,
      .help = "Floating-point operations of the op's definition, by its time"},
     Unit::kGigaflopsPerSecond},
    {{.name = "gbs",
      .title = "GB/s",
      .width = 70.0F,
      .help = "Bytes read and written, each operand once, by its time"},
     Unit::kGigabytesPerSecond},
    {{.name = "count", .title = "runs", .width = 60.0F, .help = "Runs in a step"}, Unit::kMean},
    {{.name = "median_ms",
      .title = "median ms",
      .width = 86.0F,
      .help = "Milliseconds of the step in the middle"},
     Unit::kMilliseconds},
    {{.name = "flops",
      .title = "MFLOP",
      .width = 86.0F,
      .help = "Floating-point operations of a step, in 10^6"},
     Unit::kMegaflops},
    {{.name = "bytes",
      .title = "MB",
      .width = 78.0F,
      .help = "Bytes read and written in a step, in 10^6"},
     Unit::kMegabytes},
    {{.name = "intensity",
      .title = "FLOP/B",
      .width = 70.0F,
      .help = "FLOPs by bytes: how far to the right in the roofline"},
     Unit::kFlopsPerByte},
    {{.name = "busy_ms",
      .title = "busy ms",
      .width = 80.0F,
      .help = "Milliseconds of a step, of all threads together"},
     Unit::kMilliseconds},
}};

}  // namespace

const NumberColumn kOtherColumn = {{.name = "other_ms",
                                    .title = "other ms",
                                    .width = 86.0F,
                                    .help = "Milliseconds of a step in the run beside this one",
                                    .sorts = false},
                                   Unit::kMilliseconds};
const NumberColumn kMoreColumn = {{.name = "more_ms",
                                   .title = "more ms",
                                   .width = 86.0F,
                                   .help = "Milliseconds that the run beside this one takes more",
                                   .sorts = false},
                                  Unit::kMilliseconds};

KernelsState& kernels_of(Workbench& workbench) {
  auto& state = workbench.state<KernelsState>();
  state.wishes.filter = workbench.state<CallQuery>().filter;
  return state;
}

void choose_columns(KernelsState& state, bool has_machine, bool has_other) {
  state.columns.clear();
  for (const NumberColumn& column : kNumberColumns) {
    if (column.column.name == "roof" && !has_machine) continue;
    state.columns.push_back(&column);
    if (column.column.name != "ms" || !has_other) continue;
    state.columns.push_back(&kOtherColumn);
    state.columns.push_back(&kMoreColumn);
  }
}

std::vector<TableColumn> columns_of(const KernelsState& state) {
  std::vector<TableColumn> columns = {
      {.name = "name",
       .title = name_of(state.wishes.by),
       .align = Align::kLeft,
       .help = "What the rows are; parentheses: time that is no call's"}};
  for (const NumberColumn* column : state.columns) columns.push_back(column->column);
  return columns;
}

const profiler::BreakdownRow& KernelsState::row(std::size_t row) const {
  if (!is_of_other_alone(row)) return rows.table.rows[row];
  return other_rows.table.rows[other_alone[row - rows.table.rows.size()]];
}

std::optional<std::size_t> KernelsState::chosen_row() const {
  for (std::size_t i = 0; i < row_count(); ++i) {
    if (chosen.is(row(i).name, row(i).is_call)) return i;
  }
  return std::nullopt;
}

namespace {

// The rows of the run beside, and which of them the active one has not, whatever the filter leaves
// of its own.
void take_other_rows(KernelsState& state, RunData& run, RunData* other) {
  state.shown_other = other;
  state.other_version = other == nullptr ? 0 : other->version();
  state.other_rows = {};
  state.other_row.clear();
  state.other_alone.clear();
  if (other == nullptr) return;
  state.other_rows = kernel_rows(*other->times(), *other->plan(), other->machine(), state.wishes);
  std::set<std::string_view> own;
  for (const profiler::BreakdownRow& row : run.calls_by(state.wishes.by)->table.rows) {
    own.insert(row.name);
  }
  for (std::size_t i = 0; i < state.other_rows.table.rows.size(); ++i) {
    const std::string& name = state.other_rows.table.rows[i].name;
    state.other_row.emplace(name, i);
    if (!own.contains(name)) state.other_alone.push_back(i);
  }
}

}  // namespace

const KernelRows& rows_of_now(KernelsState& state, RunData& run, RunData* other) {
  const bool other_kept =
      state.shown_other == other && (other == nullptr || state.other_version == other->version());
  const bool kept = state.of == &run && state.version == run.version() &&
                    state.shown == state.wishes && other_kept;
  if (!kept) {
    state.rows = kernel_rows(*run.times(), *run.plan(), run.machine(), state.wishes);
    state.greatest_share = 0.0;
    for (const profiler::BreakdownRow& row : state.rows.table.rows) {
      state.greatest_share = std::max(state.greatest_share, state.rows.table.share(row));
    }
    take_other_rows(state, run, other);
    state.shown = state.wishes;
    state.of = &run;
    state.version = run.version();
  }
  return state.rows;
}

}  // namespace trainscope::gui
