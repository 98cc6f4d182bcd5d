// The list of what passes nearly rewrote.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "gui/panels/empty_state.h"
#include "gui/panels/graph/graph_state.h"

namespace trainscope::gui {
namespace {

struct Miss {
  std::size_t stage = 0;
  const NearMissRecord* record = nullptr;
};

struct ChosenMiss {
  std::size_t row = 0;  // that was chosen last
};

// The row that was chosen last, while its stage is shown, or else the first of that stage.
std::optional<std::size_t> chosen_miss(std::size_t last, const std::vector<Miss>& misses,
                                       std::size_t shown) {
  if (last < misses.size() && misses[last].stage == shown) return last;
  const auto found = std::ranges::find(misses, shown, &Miss::stage);
  if (found == misses.end()) return std::nullopt;
  return static_cast<std::size_t>(found - misses.begin());
}

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
  auto& last = workbench.state<ChosenMiss>();
  const TableResponse response =
      table(ui, "misses", rect,
            {.columns = kMissColumns,
             .rows = misses.size(),
             .chosen = chosen_miss(last.row, misses, shown_stage(workbench))},
            state, [&](Ui& inner, const TableCell& cell) {
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
  if (response.clicked) {
    last.row = *response.clicked;
    show_stage(workbench, misses[last.row].stage);
  }
  if (response.activated) workbench.request("panel graph");
}

}  // namespace trainscope::gui
