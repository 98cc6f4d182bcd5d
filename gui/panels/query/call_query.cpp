// The filter and the run beside, and the command line that asks the same.
#include "gui/panels/query/call_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"
#include "gui/panels/empty_state.h"
#include "gui/ui/controls.h"
#include "gui/ui/text_field.h"

namespace trainscope::gui {
namespace {

constexpr float kLeastFilter = 170.0F;  // beside the menu of runs
constexpr float kLeastBeside = 90.0F;   // of that menu
constexpr float kMostBeside = 220.0F;

bool has_times_of_calls(RunData& run) {
  return run.plan() != nullptr && run.times() != nullptr && !run.times()->steps.empty();
}

// Null: nothing is.
void put_beside(Workbench& workbench, RunData* run) {
  workbench.state<CallQuery>().beside = run;
  if (run == nullptr) return workbench.tell("nothing is beside");
  workbench.tell(has_times_of_calls(*run)
                     ? fmt::format("{} is beside", run->name())
                     : fmt::format("{} has no profile: it cannot be beside", run->name()));
}

// Which run is beside this one, or why it is not.
std::string label_of_beside(Workbench& workbench, const CallQuery& query) {
  if (query.beside == nullptr || query.beside == workbench.run()) return "beside ▼";
  const std::string& name = query.beside->name();
  const std::string_view how = run_beside(workbench) == nullptr ? "no profile:" : "beside";
  return fmt::format("{} {} ▼", how, name);
}

void draw_beside(Ui& ui, Workbench& workbench, CallQuery& query, Rect& bar) {
  if (workbench.count() < 2 || bar.width < 260.0F) return;
  std::vector<MenuItem> items = {{.label = "nothing beside", .checked = query.beside == nullptr}};
  std::vector<RunData*> runs = {nullptr};
  for (std::size_t i = 0; i < workbench.count(); ++i) {
    if (i == workbench.active()) continue;
    RunData& source = workbench.source(i);
    items.push_back({.label = source.name(), .checked = query.beside == &source});
    runs.push_back(&source);
  }
  const std::string label = label_of_beside(workbench, query);
  const float room = std::clamp(bar.width - kLeastFilter, kLeastBeside, kMostBeside);
  const Rect place = take_right(bar, std::min(button_width(ui, label), room));
  take_right(bar, 6.0F);
  const int chosen = menu_button(ui, "beside", place, label, items,
                                 {.tooltip = "Another run beside this one", .fit = Fit::kMiddle});
  if (chosen >= 0) put_beside(workbench, runs[static_cast<std::size_t>(chosen)]);
}

}  // namespace

bool has_call_times(Workbench& workbench) {
  return workbench.run() != nullptr && has_times_of_calls(*workbench.run());
}

RunData* run_beside(Workbench& workbench) {
  const RunData* chosen = workbench.state<CallQuery>().beside;
  for (std::size_t i = 0; i < workbench.count(); ++i) {
    RunData& source = workbench.source(i);
    const bool is_it = &source == chosen && &source != workbench.run();
    if (is_it && has_times_of_calls(source)) return &source;
  }
  return nullptr;
}

void take_next_beside(Workbench& workbench) {
  const RunData* before = workbench.state<CallQuery>().beside;
  bool is_next = before == nullptr;
  for (std::size_t i = 0; i < workbench.count(); ++i) {
    RunData* source = &workbench.source(i);
    if (is_next && i != workbench.active()) return put_beside(workbench, source);
    is_next = is_next || source == before;
  }
  put_beside(workbench, nullptr);
}

void draw_call_query(Ui& ui, Workbench& workbench, Rect bar, std::string_view fault) {
  auto& query = workbench.state<CallQuery>();
  draw_beside(ui, workbench, query, bar);
  text_field(ui, "filter", bar, query.filter,
             {.hint = "filter: op==MatMul && ms>0.1",
              .tooltip = "Calls that match alone. Fields: call, name, kernel, op, node, layer, "
                         "phase, pass, dtype, ms, busy_ms, share, count, flops, bytes, gflops, "
                         "gbs, intensity, roof; == != < <= > >= && || ! ( ); * and ? in texts",
              .takes_focus = ui.region_has_keys() && ui.take(Chord{.key = static_cast<Key>('/')}),
              .is_wrong = !fault.empty()});
}

void draw_wrong_filter(Ui& ui, Workbench& workbench, const Rect& rect, const std::string& fault) {
  draw_empty(ui, workbench, rect, "The filter is not understood", {.text = fault});
}

std::string query_of(const RunData& run, const KernelWishes& wishes) {
  std::string line = "trainscope query " + shell_word(run.path().string());
  if (!wishes.filter.empty()) line += " " + shell_word(wishes.filter);
  line += fmt::format(" --by {} --sort {}", name_of(wishes.by), wishes.sort);
  return line + run.session_flag();
}

void follow_sorting(KernelWishes& wishes, TableState& table, std::span<const TableColumn> columns) {
  const auto sorted = std::ranges::find(columns, wishes.sort, &TableColumn::name);
  table.sorted_by =
      sorted == columns.end() ? 1 : static_cast<std::size_t>(sorted - columns.begin());
  wishes.sort = columns[table.sorted_by].name;
  const bool by_name = table.sorted_by == 0;
  wishes.descending = table.descending != by_name;
}

}  // namespace trainscope::gui
