// Views of Stages and Graph: the stage, the one it is held against, what is listed, the colouring.
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/view/view_parts.h"

namespace trainscope::gui {
namespace {

// Of the active run; none where there is none.
std::span<const StageFacts> stages_of(const Workbench& workbench) {
  const RunData* run = workbench.run();
  return run == nullptr ? std::span<const StageFacts>() : run->stages();
}

std::string stage_now(Workbench& workbench) {
  const std::span<const StageFacts> stages = stages_of(workbench);
  if (stages.empty()) return {};
  const std::size_t shown = shown_stage(workbench);
  return shown + 1 == stages.size() ? std::string() : stages[shown].label;
}

bool show_stage_named(Workbench& workbench, std::string_view label) {
  if (!label.empty()) return workbench.select_named("stage:" + std::string(label));
  Selection selection = workbench.selection();
  selection.stage = -1;
  workbench.select(selection);
  return true;
}

std::string compared_now(Workbench& workbench) {
  const std::span<const StageFacts> stages = stages_of(workbench);
  const std::int32_t compare = workbench.state<StageChoice>().compare;
  const bool is_there = compare >= 0 && static_cast<std::size_t>(compare) < stages.size();
  return is_there ? stages[static_cast<std::size_t>(compare)].label : std::string();
}

bool compare_with(Workbench& workbench, std::string_view label) {
  std::int32_t& compare = workbench.state<StageChoice>().compare;
  compare = -1;
  const std::span<const StageFacts> stages = stages_of(workbench);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].label == label) compare = static_cast<std::int32_t>(i);
  }
  return label.empty() || compare >= 0;
}

std::string listed_now(Workbench& workbench) {
  const auto& choice = workbench.state<StageChoice>();
  if (choice.near_misses) return "near_misses";
  return choice.changed_only ? "" : "all";
}

bool list_stages_as(Workbench& workbench, std::string_view what) {
  auto& choice = workbench.state<StageChoice>();
  choice.near_misses = what == "near_misses";
  choice.changed_only = what != "all";
  return what.empty() || choice.near_misses || !choice.changed_only;
}

std::string coloring_now(Workbench& workbench) {
  const ColorBy coloring = workbench.state<GraphState>().coloring;
  return coloring == ColorBy::kOp ? std::string() : std::string(name_of(coloring));
}

bool color_as(Workbench& workbench, std::string_view name) {
  ColorBy& coloring = workbench.state<GraphState>().coloring;
  coloring = ColorBy::kOp;
  for (std::size_t i = 0; i < kColorings; ++i) {
    if (name_of(static_cast<ColorBy>(i)) != name) continue;
    coloring = static_cast<ColorBy>(i);
    return true;
  }
  return name.empty();
}

constexpr ViewPart kStage = {.key = "stage", .now = stage_now, .show = show_stage_named};
constexpr ViewPart kCompare = {.key = "compare", .now = compared_now, .show = compare_with};

}  // namespace

std::span<const ViewPart> stages_view() {
  static constexpr ViewPart kParts[] = {
      kStage, kCompare, {.key = "list", .now = listed_now, .show = list_stages_as}};
  return kParts;
}

std::span<const ViewPart> graph_view() {
  static constexpr ViewPart kParts[] = {
      kStage, kCompare, {.key = "color", .now = coloring_now, .show = color_as}};
  return kParts;
}

}  // namespace trainscope::gui
