// Views of Stages and Graph: the stage, the one it is held against, what is listed, the colouring,
// the blocks that are collapsed, where the graph is looked at from.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/view/view_parts.h"
#include "gui/workbench/view_text.h"

namespace trainscope::gui {
namespace {

constexpr double kFarthest = 1e7;  // logical pixels that a layout may be looked at from

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

// The graph of the active run's stage; null where there is none.
GraphState* graph_of(Workbench& workbench) {
  if (stages_of(workbench).empty()) return nullptr;
  auto& state = workbench.state<GraphState>();
  return update_graph(state, workbench) ? &state : nullptr;
}

// "X:Y:ZOOM": the point of the layout that is in the left upper corner.
std::string camera_now(Workbench& workbench) {
  const GraphState* state = graph_of(workbench);
  if (state == nullptr) return {};
  const bool is_usual = state->begins || state->camera == state->usual_camera;
  if (!state->asked_camera && is_usual) return {};
  const GraphCamera camera = state->asked_camera.value_or(state->camera);
  return fmt::format("{}:{}:{}", camera.x, camera.y, camera.zoom);
}

bool look_from(Workbench& workbench, std::string_view text) {
  GraphState* state = graph_of(workbench);
  if (state == nullptr) return text.empty();
  state->begins = state->begins || text.empty();
  state->asked_camera.reset();
  if (text.empty()) return true;
  const std::vector<std::string_view> words = split(text, ':');
  std::array<float, 3> numbers = {};
  if (words.size() != numbers.size()) return false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::optional<double> number = parse_number(words[i]);
    if (!number || std::abs(*number) > kFarthest) return false;
    numbers[i] = static_cast<float>(*number);
  }
  const GraphCamera camera{.x = numbers[0], .y = numbers[1], .zoom = numbers[2]};
  if (camera.zoom < kLeastZoom || camera.zoom > kMostZoom) return false;
  state->asked_camera = camera;
  return true;
}

// Names of blocks by '|'; "*" where all are collapsed.
std::string collapsed_now(Workbench& workbench) {
  const GraphState* state = graph_of(workbench);
  if (state == nullptr || state->collapsed.empty()) return {};
  const std::vector<LaidBlock>& blocks = state->layout.blocks;
  if (std::ranges::all_of(blocks, &LaidBlock::collapsed)) return "*";
  std::string text;
  for (const LaidBlock& block : blocks) {
    if (block.collapsed) text += (text.empty() ? "" : "|") + escaped(block.name, "|*");
  }
  return text;
}

bool collapse(Workbench& workbench, std::string_view text) {
  GraphState* state = graph_of(workbench);
  if (state == nullptr) return text.empty();
  state->collapsed.clear();
  if (text.empty()) return true;
  CollapsedBlocks wanted;
  for (const LaidBlock& block : state->layout.blocks) {
    if (text == "*") wanted.insert(block.name);
  }
  if (text != "*") {
    for (const std::string_view word : split(text, '|')) {
      const std::string name = unescaped(word);
      const auto found = std::ranges::find(state->layout.blocks, name, &LaidBlock::name);
      if (found == state->layout.blocks.end()) return false;
      wanted.insert(name);
    }
  }
  state->collapsed = std::move(wanted);
  return true;
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
      kStage,
      kCompare,
      {.key = "color", .now = coloring_now, .show = color_as},
      {.key = "collapsed", .now = collapsed_now, .show = collapse},
      {.key = "camera", .now = camera_now, .show = look_from}};
  return kParts;
}

}  // namespace trainscope::gui
