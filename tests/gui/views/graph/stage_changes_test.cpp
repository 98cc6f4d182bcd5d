// Marks and rows of the difference of stages of a compilation.
#include "gui/views/graph/stage_changes.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/stage_history.h"
#include "tests/gui/views/views_models.h"

namespace trainscope::gui {
namespace {

TEST_CASE("stage_changes: from imported to last every node is marked as the difference says") {
  auto step = test::compiled("gpt2", test::kSmallText);
  const StageHistory stages = StageHistory::of(std::move(step->stages));
  const std::size_t last = stages.history().size() - 1;
  const Graph a = stages.graph(0);
  const Graph b = stages.graph(last);
  const StageDiff diff =
      diff_stages(stages.shared_history(), {.stage = 0, .graph = a}, {.stage = last, .graph = b});
  const StageChanges changes = changes_of(diff);
  CHECK(changes.added == diff.nodes.at("added"));
  CHECK(changes.gone > 0);
  std::size_t takes_in = 0;
  for (const NodeId id : b.order()) {
    const auto serial = static_cast<std::uint32_t>(b.node(id).serial);
    const ChangeMark mark = changes.mark_of(serial);
    CHECK(mark != ChangeMark::kGone);
    if (mark == ChangeMark::kTakesIn) ++takes_in;
  }
  for (const StageChange& row : changes.rows) {
    CHECK(row.mark != ChangeMark::kSame);
    if (row.mark == ChangeMark::kGone) CHECK(!row.reason.empty());
  }
  CHECK(std::ranges::is_partitioned(changes.rows, &StageChange::is_node));
}

TEST_CASE("stage_changes: a stage and itself differ in nothing") {
  auto step = test::compiled("mlp");
  const StageHistory stages = StageHistory::of(std::move(step->stages));
  const Graph graph = stages.graph(1);
  const StageChanges changes = changes_of(diff_stages(
      stages.shared_history(), {.stage = 1, .graph = graph}, {.stage = 1, .graph = graph}));
  CHECK(changes.rows.empty());
  CHECK(changes.marks.empty());
}

}  // namespace
}  // namespace trainscope::gui
