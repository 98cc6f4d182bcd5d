// What the Graph and Stages panels remember, and the parts of the Graph panel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/ui/table.h"
#include "gui/ui/ui.h"
#include "gui/views/graph/graph_frame.h"
#include "gui/views/graph/near_misses.h"
#include "gui/views/graph/node_values.h"
#include "gui/views/graph/stage_changes.h"
#include "gui/views/graph/stage_step.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// Which stages are looked at: the one that is selected, and the one that it is held against.
struct StageChoice {
  std::int32_t compare = -1;  // -1: none
  bool changed_only = true;   // in lists
  bool near_misses = false;   // a list of them in place of the stages
  bool plays = false;         // one stage after the other
  double played = 0.0;        // seconds of the program when the last one came; below 0: it begins
};

// The position of the selected stage; the run has stages.
std::size_t shown_stage(const Workbench& workbench);
void show_stage(Workbench& workbench, std::size_t stage);
// Of the active run: another one may have fewer stages than that which the choice was made of.
StageChoice& stage_choice(Workbench& workbench);
// The next stage that changed the graph (by > 0), or the one before; itself where there is none.
std::size_t changed_stage(const RunData& run, std::size_t from, int by);
// "07-fuse_gelu" without what is not needed to read it: "fuse_gelu".
std::string title_of_stage(const StageFacts& stage);

struct GraphState {
  const RunData* of = nullptr;
  std::uint64_t version = 0;
  const Graph* graph = nullptr;
  std::size_t stage = 0;
  bool waits = false;  // for another one, see waits_for_stage()
  LayoutMemory memory = {};
  CollapsedBlocks collapsed = {};
  CollapsedBlocks laid_collapsed = {};  // of the layout
  GraphPicture picture = {};
  GraphLayout layout = {};
  StageStep step = {};  // from the stage before, while it is seen

  ColorBy coloring = ColorBy::kOp;
  ColorBy valued = ColorBy::kOp;  // of `values`
  NodeValues values = {};

  std::int32_t compared = -1;  // of `changes`
  StageChanges changes = {};
  TableState change_table = {.sorted_by = 0, .descending = false};
  bool list_has_focus = false;  // that of changes, in this frame: arrows are its own
  std::vector<NearMissGroup> near_misses = {};  // of the stage's pass
  std::size_t near_miss = 0;                    // the one that was gone to last

  GraphCamera camera = {};
  bool fits = false;              // the camera shall show all of it in the next frame
  bool begins = true;             // ... or what is shown first
  GraphCamera usual_camera = {};  // where it is with this stage and selection if nobody moves it
  std::optional<GraphCamera> asked_camera = {};  // of a view: for the next frame
  GraphFrame frame = {};
  float dragged = 0.0F;

  Selection selected = {};
  std::size_t node_stage = 0;  // where the selected node was seen last
  std::string gone = {};       // what became of the selected node, where it is not in this stage
  std::uint32_t gone_to = 0;   // serial of what it is now; 0: nothing

  std::string search = {};
  std::vector<std::uint32_t> found = {};  // places
  std::size_t found_at = 0;
};

// Brings the state to the run, the stage and the selection. False where the stage cannot be read.
bool update_graph(GraphState& state, Workbench& workbench);
// Whether the shown stage, or what is different about it, is being read on a thread: until then the
// state is of the stage before. Where somebody looks; a picture waits for it.
bool waits_for_stage(const GraphState& state, Workbench& workbench);
// The place of the selected node; kNoPlace: it is not in this stage.
std::uint32_t selected_place(const GraphState& state, const Workbench& workbench);
void select_place(GraphState& state, Workbench& workbench, std::uint32_t place);
// Selects the first node of a near miss, and opens its block. `miss` is a position in the list.
void select_near_miss(GraphState& state, Workbench& workbench, std::size_t miss);
// "3 of 12": which of those that `search` finds is selected; empty before Enter.
std::string text_of_found(const GraphState& state);
// Selects what `search` finds, the first or the one after the last.
void find_next(GraphState& state, Workbench& workbench);

inline constexpr float kGraphClick = 4.0F;  // pixels that a click may move

void draw_graph_canvas(Ui& ui, Workbench& workbench, GraphState& state, const Rect& rect);
// The map lies at the right lower corner of the canvas `rect`, where not all of the layout is seen.
// Moves the camera while it is held, and says whether the mouse is on it: asked before the canvas,
// which lies below it.
bool hold_graph_map(Ui& ui, GraphState& state, const Rect& rect);
void draw_graph_map(Ui& ui, const GraphState& state, const Rect& rect);
// Of an op class or a pass: those beyond the colours are drawn as other ones.
Color color_of_category(const Theme& theme, std::size_t category);
// What the colours of nodes mean, on one line.
void draw_legend(Ui& ui, Workbench& workbench, const GraphState& state, const Rect& rect);
// Dashed where nodes were, with a line to what does their work now, `share` of its length.
void draw_ghosts(Ui& ui, const StageStep& step, const GraphLayout& layout,
                 const GraphCamera& camera, const Rect& rect, float share);
struct NearMissView {
  const GraphLayout& layout;
  Rect rect = {};                     // of the canvas
  bool over_node = false;             // the mouse is: its tooltip is the node's
  std::optional<Point> clicked = {};  // beside all nodes
};

// A dashed outline around the nodes of each near miss, as `layout` places them, below all nodes; a
// click on none of these, at `clicked`, selects the near miss there.
void draw_near_misses(Ui& ui, Workbench& workbench, GraphState& state, const NearMissView& view);
// What the passes of all stages nearly rewrote, with the reasons why they did not; a click shows
// the stage.
void draw_missed_rewrites(Ui& ui, Workbench& workbench, TableState& state, const Rect& rect);
// What the shown stage has and the compared one has not, and the other way round.
inline constexpr std::string_view kChangesTable = "changes";
void draw_changes(Ui& ui, Workbench& workbench, GraphState& state, const Rect& rect);

}  // namespace trainscope::gui
