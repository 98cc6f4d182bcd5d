// What a panel is, and a command: rows of the tables that the window is made of.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/ui/ui.h"

namespace trainscope::gui {

class Workbench;

// A thing that can be done, by menu, key, palette, and `gui --exec ID`.
struct AppCommand {
  std::string_view id = {};     // "view.theme"
  std::string_view title = {};  // "Next theme"
  std::string_view menu = {};   // in which it is; empty: in none
  std::string_view key = {};    // name of its chord; empty: none
  // Of a panel's command: its chord while the panel has the keys.
  std::string_view panel_key = {};
  std::string_view help = {};  // one sentence
  void (*run)(Workbench&) = nullptr;
  bool (*enabled)(const Workbench&) = nullptr;  // null: always
  bool (*checked)(const Workbench&) = nullptr;  // null: it is nothing that is on or off
};

// What "copy" puts on the clipboard of a panel.
struct CopiedTable {
  std::vector<std::string> head = {};
  std::vector<std::vector<std::string>> rows = {};
};
std::string tsv_of(const CopiedTable& table);
std::string markdown_of(const CopiedTable& table);

// While the panel is drawn: runs its command whose key went down, if it has the keys.
void take_panel_keys(Ui& ui, Workbench& workbench, std::span<const AppCommand> commands);

// Something that a panel shows beside the selection, as a view names it ("by=op"): command lines
// and bookmarks show it again.
struct ViewPart {
  std::string_view key = {};  // "by"
  // Empty: as it is at first.
  std::string (*now)(Workbench&) = nullptr;
  // What `now` said; empty: as it is at first. False: there is no such value.
  bool (*show)(Workbench&, std::string_view value) = nullptr;
};

struct Panel {
  std::string_view id = {};     // "kernels"
  std::string_view title = {};  // "Kernels"
  std::string_view about = {};  // "What am I looking at?", in a few sentences
  std::string_view keys = {};   // its own: a line each, "Enter: ..."
  void (*draw)(Ui&, Workbench&, const Rect&) = nullptr;
  // In every frame, shown or not: what goes on by itself; null: nothing does.
  void (*advance)(Workbench&) = nullptr;
  CopiedTable (*table)(Workbench&) = nullptr;
  // The command line that prints the same numbers.
  std::string (*twin)(Workbench&) = nullptr;
  std::span<const AppCommand> commands = {};
  std::span<const ViewPart> view = {};
};

}  // namespace trainscope::gui
