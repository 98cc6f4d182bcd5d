// What the commands do.
#include "gui/app/command_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gui/app/bookmarks.h"
#include "gui/app/copying.h"
#include "gui/app/layouts.h"
#include "gui/app/open_boxes.h"
#include "gui/app/workspaces.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {
namespace {

bool has_run(const Workbench& w) { return w.run() != nullptr; }
bool has_recorded_run(const Workbench& w) {
  return w.run() != nullptr && w.run()->kind() == SourceKind::kRun;
}

void go(Workbench& w, std::string_view workspace) {
  w.settings.layout.workspace = workspace;
  w.overlay = Overlay::kNone;
}

constexpr char kStages[] = "stages";
constexpr char kBudget[] = "budget";
constexpr char kRoofline[] = "roofline";
constexpr char kRuns[] = "runs";

template <const char* kPanel>
void show(Workbench& w) {
  show_panel(w.settings.layout, kPanel);
  w.overlay = Overlay::kNone;
}

void zoom(Workbench& w, float factor) {
  const float wanted = std::round(w.settings.scale * factor * 20.0F) / 20.0F;
  w.settings.scale = std::clamp(wanted, kLeastScale, kGreatestScale);
}

void next_theme(Workbench& w) {
  const auto next = (static_cast<std::size_t>(w.settings.theme) + 1) % kThemeNames.size();
  w.settings.theme = kThemeNames[next];
}

void step_source(Workbench& w, std::size_t by) {
  w.activate((w.active() + by) % std::max<std::size_t>(1, w.count()));
}

bool has_sessions(const Workbench& w) { return has_run(w) && w.run()->session_count() > 1; }

// Over the main region it opens for what is selected alone.
void toggle_inspector(Workbench& w) {
  bool& is_open = w.settings.layout.inspector;
  if (!w.is_narrow || w.selection().subject != Subject::kNothing) {
    is_open = !is_open;
    return;
  }
  is_open = true;
  w.tell(fmt::format("select something: below {} px of width the inspector opens for it",
                     kLeastWideWindow));
}

void toggle_rail(Workbench& w) {
  if (w.is_narrow) {
    return w.tell(
        fmt::format("the rail opens from {} px of width on: see Go, Stages", kLeastWideWindow));
  }
  w.settings.layout.rail_pinned = !w.settings.layout.rail_pinned;
}

const Panel& front_of(const Workbench& w) { return panel_in_front(w.settings.layout, w.region); }

template <CopyChoice kChoice>
void copy_front(Workbench& w) {
  copy_from(w, front_of(w), kChoice);
}
template <CopyChoice kChoice>
bool can_copy_front(const Workbench& w) {
  return can_copy(w, front_of(w), kChoice);
}

}  // namespace

std::span<const AppCommand> file_commands() {
  static constexpr AppCommand rows[] = {
      {.id = "file.open",
       .title = "Open...",
       .menu = "File",
       .key = "Ctrl+O",
       .help = "Open a run, an ONNX model or a folder of runs",
       .run = [](Workbench& w) { open_box(w, Overlay::kOpen); }},
      {.id = "file.open_model",
       .title = "Open ONNX model...",
       .menu = "File",
       .key = "Ctrl+Shift+O",
       .help = "Open an ONNX model, with the sizes that it leaves open",
       .run = [](Workbench& w) { open_box(w, Overlay::kOpenModel); }},
      {.id = "file.sizes",
       .title = "Sizes of the model...",
       .menu = "File",
       .help = "Compile the model anew with other sizes: `--batch 8 --seq 128`",
       .run = [](Workbench& w) { open_box(w, Overlay::kSizes); },
       .enabled =
           [](const Workbench& w) { return has_run(w) && w.run()->kind() == SourceKind::kModel; }},
      {.id = "file.welcome",
       .title = "Welcome screen",
       .menu = "File",
       .help = "Recent runs and the demo run",
       .run = [](Workbench& w) { w.overlay = Overlay::kWelcome; }},
      {.id = "file.close",
       .title = "Close run",
       .menu = "File",
       .key = "Ctrl+W",
       .help = "Close the run that is shown",
       .run = [](Workbench& w) { w.close(w.active()); },
       .enabled = has_run},
      {.id = "file.stop",
       .title = "Stop compiling",
       .menu = "File",
       .help = "Give up the model that is being compiled",
       .run = [](Workbench& w) { w.run()->stop_opening(); },
       .enabled = [](const Workbench& w) { return has_run(w) && w.run()->is_opening(); }},
      {.id = "file.next",
       .title = "Next run",
       .menu = "File",
       .key = "Ctrl+Tab",
       .help = "Show the next of the open runs",
       .run = [](Workbench& w) { step_source(w, 1); },
       .enabled = [](const Workbench& w) { return w.count() > 1; }},
      {.id = "file.session_before",
       .title = "Session before",
       .menu = "File",
       .help = "Show the plan, stages and profile of the session before this one",
       .run = [](Workbench& w) { w.step_session(-1); },
       .enabled = has_sessions},
      {.id = "file.session_after",
       .title = "Session after",
       .menu = "File",
       .help = "Show those of the session after this one",
       .run = [](Workbench& w) { w.step_session(1); },
       .enabled = has_sessions},
      {.id = "file.bookmark",
       .title = "Bookmark this view",
       .menu = "File",
       .key = "M",
       .help = "Keep the panel and the selection in the run's notes",
       .run = [](Workbench& w) { add_note(w, {}); },
       .enabled = has_recorded_run},
      {.id = "file.note",
       .title = "Notes and bookmarks...",
       .menu = "File",
       .key = "N",
       .help = "Read and write the run's notes",
       .run = [](Workbench& w) { w.overlay = Overlay::kNote; },
       .enabled = has_recorded_run},
      {.id = "file.copy_tsv",
       .title = "Copy as TSV",
       .menu = "File",
       .key = "Ctrl+C",
       .help = "The table of the panel in front, with tabs between its cells",
       .run = copy_front<CopyChoice::kTsv>,
       .enabled = can_copy_front<CopyChoice::kTsv>},
      {.id = "file.copy_markdown",
       .title = "Copy as Markdown",
       .menu = "File",
       .help = "The table of the panel in front, for a page of text",
       .run = copy_front<CopyChoice::kMarkdown>,
       .enabled = can_copy_front<CopyChoice::kMarkdown>},
      {.id = "file.copy_command",
       .title = "Copy the command line that prints it",
       .menu = "File",
       .help = "The numbers of the panel in front, for a shell",
       .run = copy_front<CopyChoice::kCommand>,
       .enabled = can_copy_front<CopyChoice::kCommand>},
      {.id = "file.copy_view",
       .title = "Copy the command line of this view",
       .menu = "File",
       .help = "It opens the window with what this panel shows and what is selected",
       .run = copy_front<CopyChoice::kView>,
       .enabled = can_copy_front<CopyChoice::kView>},
      {.id = "file.copy_picture",
       .title = "Copy the command line of a picture",
       .menu = "File",
       .key = "Ctrl+E",
       .help = "It draws what this panel shows into a PNG, without a display",
       .run = copy_front<CopyChoice::kPicture>,
       .enabled = can_copy_front<CopyChoice::kPicture>},
      {.id = "file.quit",
       .title = "Quit",
       .menu = "File",
       .key = "Ctrl+Q",
       .help = "End the program",
       .run = [](Workbench& w) { w.quit = true; }},
  };
  return rows;
}

std::span<const AppCommand> view_commands() {
  static constexpr AppCommand rows[] = {
      {.id = "view.inspector",
       .title = "Inspector",
       .menu = "View",
       .key = "I",
       .help = "Show or hide what is known of the selection",
       .run = toggle_inspector,
       .checked = [](const Workbench& w) { return w.settings.layout.inspector; }},
      {.id = "view.stages",
       .title = "Pin the stages",
       .menu = "View",
       .key = "S",
       .help = "Open the rail of stages, or close it",
       .run = toggle_rail,
       .checked = [](const Workbench& w) { return w.settings.layout.rail_pinned && !w.is_narrow; }},
      {.id = "view.maximize",
       .title = "Maximise the region",
       .menu = "View",
       .key = "Z",
       .help = "Show the region that has the keys alone, and back",
       .run = [](Workbench& w) { w.maximized = !w.maximized; },
       .checked = [](const Workbench& w) { return w.maximized; }},
      {.id = "view.menu",
       .title = "Menu of the panel",
       .menu = "View",
       .key = "Shift+F10",
       .help = "What can be done with the panel in front: also by the right button",
       .run = [](Workbench& w) { w.asks_menu = true; }},
      {.id = "view.theme",
       .title = "Next theme",
       .menu = "View",
       .key = "T",
       .help = "Dark, light, and dark for people who see few colours",
       .run = next_theme},
      {.id = "view.larger",
       .title = "Larger",
       .menu = "View",
       .key = "Ctrl++",
       .help = "Everything larger",
       .run = [](Workbench& w) { zoom(w, 1.15F); }},
      {.id = "view.smaller",
       .title = "Smaller",
       .menu = "View",
       .key = "Ctrl+-",
       .help = "Everything smaller",
       .run = [](Workbench& w) { zoom(w, 1.0F / 1.15F); }},
      {.id = "view.usual_size",
       .title = "Usual size",
       .menu = "View",
       .key = "Ctrl+0",
       .help = "As large as the screen asks for",
       .run = [](Workbench& w) { w.settings.scale = 1.0F; }},
      {.id = "view.settings",
       .title = "Settings...",
       .menu = "View",
       .key = "Ctrl+,",
       .help = "Theme, text sizes, scale, motion",
       .run = [](Workbench& w) { w.overlay = Overlay::kSettings; }},
      {.id = "view.layouts",
       .title = "Layouts...",
       .menu = "View",
       .key = "L",
       .help = "Save where the regions are by a name, choose and delete what was saved",
       .run = open_layouts},
      {.id = "view.reset_layout",
       .title = "Reset the layout",
       .menu = "View",
       .help = "Bring the regions to where they were at first",
       .run = [](Workbench& w) { w.settings.layout = {}; }},
  };
  return rows;
}

std::span<const AppCommand> go_commands() {
  static constexpr AppCommand rows[] = {
      {.id = "go.graph",
       .title = "Graph",
       .menu = "Go",
       .key = "F1",
       .help = "The nodes of a stage",
       .run = [](Workbench& w) { go(w, "graph"); },
       .enabled = [](const Workbench&) { return is_workspace("graph"); }},
      {.id = "go.memory",
       .title = "Memory",
       .menu = "Go",
       .key = "F2",
       .help = "Where every byte of the plan is",
       .run = [](Workbench& w) { go(w, "memory"); },
       .enabled = [](const Workbench&) { return is_workspace("memory"); }},
      {.id = "go.timeline",
       .title = "Timeline",
       .menu = "Go",
       .key = "F3",
       .help = "What ran when",
       .run = [](Workbench& w) { go(w, "timeline"); },
       .enabled = [](const Workbench&) { return is_workspace("timeline"); }},
      {.id = "go.kernels",
       .title = "Kernels",
       .menu = "Go",
       .key = "F4",
       .help = "Where the time went",
       .run = [](Workbench& w) { go(w, "kernels"); },
       .enabled = [](const Workbench&) { return is_workspace("kernels"); }},
      {.id = "go.overview",
       .title = "Overview",
       .menu = "Go",
       .key = "F5",
       .help = "What ran, where, and how it went",
       .run = [](Workbench& w) { go(w, "overview"); },
       .enabled = [](const Workbench&) { return is_workspace("overview"); }},
      {.id = "go.stages",
       .title = "Stages",
       .menu = "Go",
       .help = "What each pass made of the graph",
       .run = show<kStages>},
      {.id = "go.budget",
       .title = "Budget",
       .menu = "Go",
       .help = "Less memory for more time",
       .run = show<kBudget>},
      {.id = "go.roofline",
       .title = "Roofline",
       .menu = "Go",
       .help = "What each node does of what the machine could",
       .run = show<kRoofline>},
      {.id = "go.runs",
       .title = "Runs",
       .menu = "Go",
       .help = "The open runs, and two of them beside each other",
       .run = show<kRuns>},
      {.id = "go.back",
       .title = "Selection before",
       .menu = "Go",
       .key = "Alt+Left",
       .help = "Back to what was selected before",
       .run = [](Workbench& w) { w.history().go_back(); },
       .enabled = [](const Workbench& w) { return w.history().can_go_back(); }},
      {.id = "go.forward",
       .title = "Selection after",
       .menu = "Go",
       .key = "Alt+Right",
       .help = "Forward again",
       .run = [](Workbench& w) { w.history().go_forward(); },
       .enabled = [](const Workbench& w) { return w.history().can_go_forward(); }},
      {.id = "go.nothing",
       .title = "Select nothing",
       .menu = "Go",
       .key = "Esc",
       .help = "Clear the selection",
       .run = [](Workbench& w) { w.select({}); },
       .enabled = [](const Workbench& w) { return !(w.selection() == Selection{}); }},
      {.id = "go.region",
       .title = "Next region",
       .menu = "Go",
       .key = "F6",
       .help = "The next region gets the keys",
       .run = [](Workbench& w) { ++w.region_steps; }},
      {.id = "go.region_before",
       .title = "Region before",
       .menu = "Go",
       .key = "Shift+F6",
       .help = "The region before gets the keys",
       .run = [](Workbench& w) { --w.region_steps; }},
      {.id = "go.palette",
       .title = "Find anything...",
       .menu = "Go",
       .key = "Ctrl+P",
       .help = "Commands, nodes, tensors and kernels by name, pattern, shape or dtype",
       .run = [](Workbench& w) { w.overlay = Overlay::kPalette; }},
  };
  return rows;
}

std::span<const AppCommand> help_commands() {
  static constexpr AppCommand rows[] = {
      {.id = "help.panel",
       .title = "What am I looking at?",
       .menu = "Help",
       .key = "?",
       .help = "The panel in front, all keys, and the glossary",
       .run = [](Workbench& w) { w.overlay = Overlay::kHelp; }},
      {.id = "help.tour",
       .title = "Tour",
       .menu = "Help",
       .help = "Six steps through the window",
       .run = [](Workbench& w) { w.overlay = Overlay::kTour; }},
  };
  return rows;
}

}  // namespace trainscope::gui
