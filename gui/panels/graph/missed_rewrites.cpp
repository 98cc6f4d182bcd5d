// The list of what passes nearly rewrote.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "gui/panels/empty_state.h"
#include "gui/panels/graph/graph_state.h"

namespace trainscope::gui {
namespace {

struct Miss {
  std::size_t stage = 0;
  const NearMissRecord* record = nullptr;
};

}  // namespace

void draw_missed_rewrites(Ui& ui, Workbench& workbench, TableState& state, const Rect& rect) {
  const RunData& run = *workbench.run();
  std::vector<Miss> misses;
  for (std::size_t i = 0; i < run.stages().size(); ++i) {
    for (const NearMissRecord& miss : run.stages()[i].record.near_misses) {
      misses.push_back({.stage = i, .record = &miss});
    }
  }
  if (misses.empty()) {
    return draw_empty(ui, workbench, rect, "No near misses",
                      {.text = "Every pass rewrote all that it nearly could."});
  }
  static constexpr std::array<TableColumn, 2> kMissColumns = {{
      {.name = "reason",
       .title = "node, and why not",
       .align = Align::kLeft,
       .help = "A node that the pass nearly rewrote, and the reason why it did not",
       .sorts = false},
      {.name = "stage",
       .title = "pass",
       .width = 110.0F,
       .align = Align::kLeft,
       .help = "The pass that looked at it",
       .sorts = false},
  }};
  const TableResponse response =
      table(ui, "misses", rect, {.columns = kMissColumns, .rows = misses.size()}, state,
            [&](Ui& inner, const TableCell& cell) {
              const Miss& miss = misses[cell.row];
              const std::string text =
                  cell.column == 0 ? fmt::format("{}: {}", miss.record->node(), miss.record->reason)
                                   : title_of_stage(run.stages()[miss.stage]);
              inner.text(cell.rect, text, {.fit = Fit::kEnd});
            });
  if (response.hovered) {
    const Miss& miss = misses[*response.hovered];
    ui.tooltip({.hovered = true},
               fmt::format("{}\n{}", miss.record->reason, fmt::join(miss.record->nodes, "\n")));
  }
  if (response.clicked) show_stage(workbench, misses[*response.clicked].stage);
  if (response.activated) workbench.request("panel graph");
}

}  // namespace trainscope::gui
