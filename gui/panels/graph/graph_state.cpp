// Reads, lays out and values the stage that is looked at, when any of that has changed.
#include "gui/panels/graph/graph_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gui/views/inspection_stage.h"
#include "gui/views/model_nodes.h"

namespace trainscope::gui {

std::size_t shown_stage(const Workbench& workbench) {
  const std::size_t count = workbench.run()->stages().size();
  const std::int32_t stage = workbench.selection().stage;
  const bool is_there = stage >= 0 && static_cast<std::size_t>(stage) < count;
  return is_there ? static_cast<std::size_t>(stage) : std::max<std::size_t>(1, count) - 1;
}

StageChoice& stage_choice(Workbench& workbench) {
  auto& choice = workbench.state<StageChoice>();
  const RunData* run = workbench.run();
  const std::size_t stages = run == nullptr ? 0 : run->stages().size();
  if (choice.compare >= 0 && static_cast<std::size_t>(choice.compare) >= stages)
    choice.compare = -1;
  return choice;
}

void show_stage(Workbench& workbench, std::size_t stage) {
  Selection selection = workbench.selection();
  selection.stage = static_cast<std::int32_t>(stage);
  workbench.select(selection);
}

std::size_t changed_stage(const RunData& run, std::size_t from, int by) {
  const auto count = static_cast<std::ptrdiff_t>(run.stages().size());
  auto stage = static_cast<std::ptrdiff_t>(from) + by;
  while (stage >= 0 && stage < count) {
    const bool changed = stage == 0 || run.stages()[static_cast<std::size_t>(stage)].record.changed;
    if (changed) return static_cast<std::size_t>(stage);
    stage += by;
  }
  return from;
}

std::string title_of_stage(const StageFacts& stage) { return stage.record.name; }

namespace {

bool contains_any_case(std::string_view text, std::string_view wanted) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const auto found =
      std::ranges::search(text, wanted, [&](char a, char b) { return lower(a) == lower(b); });
  return !found.empty() || wanted.empty();
}

// Times take a while to sum up: only where they are shown.
void take_values(GraphState& state, Workbench& workbench, RunData& run) {
  const bool by_time = state.coloring == ColorBy::kTime || state.coloring == ColorBy::kRoof;
  state.valued = state.coloring;
  state.values = node_values(state.picture, state.coloring,
                             {.links = workbench.links(),
                              .times = by_time ? run.times() : nullptr,
                              .machine = run.machine()});
}

// Reads the stage's graph; the layout of the same run before it is what this one starts from.
bool read_stage(GraphState& state, Workbench& workbench, RunData& run, std::size_t stage) {
  const bool other_run = state.of != &run;
  const bool steps = !other_run && state.version == run.version() && state.graph != nullptr;
  const std::size_t stage_before = state.stage;
  const GraphPicture picture_before = std::move(state.picture);
  const GraphLayout layout_before = std::move(state.layout);
  state.step = {};
  if (other_run) {
    state.memory = {};
    state.collapsed.clear();
    state.begins = true;
  }
  state.of = &run;
  state.version = run.version();
  state.stage = stage;
  state.graph = run.graph(stage);
  state.compared = -2;  // any other: the changes are of another stage
  state.found.clear();
  if (state.graph == nullptr) return false;
  state.picture = picture_of(*state.graph);
  state.layout = layout_graph(state.picture, state.memory, state.collapsed);
  state.laid_collapsed = state.collapsed;
  if (steps && stage_before != stage) {
    state.step = step_between(picture_before, layout_before, state.picture, state.layout,
                              run.diff(stage_before, stage));
  }
  take_values(state, workbench, run);
  state.near_misses = near_misses_in(state.picture, run.stages()[stage].record);
  return true;
}

// What became of a node between the stage where it was seen and this one.
void tell_where_it_went(GraphState& state, RunData& run, std::uint32_t serial) {
  state.gone_to = 0;
  state.gone = "The selected node is not in this stage";
  const StageDiff* diff = run.diff(state.node_stage, state.stage);
  if (diff == nullptr || state.node_stage == state.stage) return;
  const bool earlier = state.stage < state.node_stage;
  for (const DiffRow& row : diff->rows) {
    if (!row.thing.is_node || static_cast<std::uint32_t>(row.thing.serial) != serial) continue;
    if (earlier) {
      state.gone = fmt::format("{} is not there yet: {} by {}", row.thing.name, row.kind,
                               row.stage.empty() ? "a later stage" : row.stage);
      return;
    }
    std::string into;
    for (const NamedThing& other : row.others) {
      if (!into.empty()) into += ", ";
      into += other.name;
      if (other.is_node && state.gone_to == 0) {
        state.gone_to = static_cast<std::uint32_t>(other.serial);
      }
    }
    state.gone = fmt::format("{}: {}{}{}, by {}: {}", row.thing.name, row.kind,
                             into.empty() ? "" : " ", into, row.stage, row.reason);
    return;
  }
}

// What became of a node of the ONNX model that is not in this stage.
void tell_fate(GraphState& state, RunData& run, const Selection& selection) {
  state.gone_to = 0;
  const StageHistory* history = run.history();
  const Fate* fate = run.node_fate(selection.model_node);
  if (history == nullptr || fate == nullptr) return;
  state.gone = fate_sentence(history->history(), *fate);
  for (const NamedThing& now : fate->now) {
    const auto serial = static_cast<std::uint32_t>(now.serial);
    if (!now.is_node || state.gone_to != 0 || state.picture.find(serial) == kNoPlace) continue;
    state.gone_to = serial;
  }
}

void follow_selection(GraphState& state, Workbench& workbench, RunData& run, bool new_stage) {
  const Selection& selection = workbench.selection();
  if (state.selected == selection && !new_stage) return;
  state.selected = selection;
  state.gone.clear();
  const bool is_known = selection.node != 0 || selection.subject == Subject::kModelNode;
  if (!is_known) return;
  if (state.picture.find(selection.node) != kNoPlace) {
    state.node_stage = state.stage;
    return;
  }
  if (selection.subject == Subject::kModelNode) return tell_fate(state, run, selection);
  // A node of the plan is in the last stage.
  if (new_stage == false) state.node_stage = run.stages().size() - 1;
  tell_where_it_went(state, run, selection.node);
}

void take_changes(GraphState& state, RunData& run, std::int32_t compare) {
  if (state.compared == compare) return;
  state.compared = compare;
  state.changes = {};
  if (compare < 0 || static_cast<std::size_t>(compare) >= run.stages().size()) return;
  const StageDiff* diff = run.diff(static_cast<std::size_t>(compare), state.stage);
  if (diff != nullptr) state.changes = changes_of(*diff);
}

}  // namespace

bool update_graph(GraphState& state, Workbench& workbench) {
  RunData& run = *workbench.run();
  const std::size_t stage = shown_stage(workbench);
  const bool stale = state.of != &run || state.version != run.version() || state.stage != stage ||
                     state.graph == nullptr;
  if (stale && !read_stage(state, workbench, run, stage)) return false;
  if (state.laid_collapsed != state.collapsed) {
    state.step = {};
    state.layout = layout_graph(state.picture, state.memory, state.collapsed);
    state.laid_collapsed = state.collapsed;
  }
  if (state.valued != state.coloring) take_values(state, workbench, run);
  follow_selection(state, workbench, run, stale);
  take_changes(state, run, stage_choice(workbench).compare);
  return true;
}

bool waits_for_stage(const GraphState& state, Workbench& workbench) {
  RunData& run = *workbench.run();
  const bool is_of_run = state.of == &run && state.version == run.version();
  if (!workbench.works_ahead || !is_of_run || state.graph == nullptr) return false;
  const std::size_t stage = shown_stage(workbench);
  if (stage != state.stage && run.reads_diff(state.stage, stage)) return true;
  const std::int32_t compare = stage_choice(workbench).compare;
  const bool is_compared = stage == state.stage && compare == state.compared;
  return compare >= 0 && !is_compared && run.reads_diff(static_cast<std::size_t>(compare), stage);
}

std::uint32_t selected_place(const GraphState& state, const Workbench& workbench) {
  const std::uint32_t serial = workbench.selection().node;
  return serial == 0 ? kNoPlace : state.picture.find(serial);
}

void select_place(GraphState& state, Workbench& workbench, std::uint32_t place) {
  if (place >= state.picture.nodes.size()) return;
  const std::uint32_t serial = state.picture.nodes[place].serial;
  const PlanLinks* links = workbench.links();
  Selection selection = workbench.selection();
  // A stage that is being read is shown next, whatever is chosen meanwhile.
  const std::int32_t shown = state.waits ? selection.stage : static_cast<std::int32_t>(state.stage);
  const bool is_planned = links != nullptr && links->node_of_serial(serial) != kNoRow;
  const Fate* fate = is_planned ? nullptr : workbench.run()->node_fate(serial);
  if (fate != nullptr) {
    selection = select_model_node(*workbench.run(), selection, fate->thing.name);
  } else if (is_planned) {
    selection = select_node(*links, selection, serial);
  } else {
    selection.stage = static_cast<std::int32_t>(state.stage);
    selection = select_unplanned_node(*workbench.run(), selection, serial);
  }
  selection.stage = shown;
  state.node_stage = state.stage;
  workbench.select(selection);
  state.selected = workbench.selection();
  state.gone.clear();
}

void select_near_miss(GraphState& state, Workbench& workbench, std::size_t miss) {
  const std::uint32_t place = state.near_misses[miss].places.front();
  state.collapsed.erase(state.layout.blocks[state.layout.nodes[place].block].name);
  select_place(state, workbench, place);
}

std::string text_of_found(const GraphState& state) {
  if (state.found.empty()) return {};
  return fmt::format("{} of {}", state.found_at + 1, state.found.size());
}

void find_next(GraphState& state, Workbench& workbench) {
  if (state.found.empty()) {
    state.found_at = 0;
    if (state.search.empty()) return;
    for (std::uint32_t i = 0; i < state.picture.nodes.size(); ++i) {
      const PictureNode& node = state.picture.nodes[i];
      if (contains_any_case(node.name, state.search) || contains_any_case(node.op, state.search) ||
          contains_any_case(node.source, state.search)) {
        state.found.push_back(i);
      }
    }
  } else {
    state.found_at = (state.found_at + 1) % state.found.size();
  }
  if (state.found.empty()) {
    workbench.complain("no node of this stage has '" + state.search +
                       "' in its name, op or source");
    return;
  }
  const std::uint32_t place = state.found[state.found_at];
  state.collapsed.erase(state.layout.blocks[state.layout.nodes[place].block].name);
  select_place(state, workbench, place);
}

}  // namespace trainscope::gui
