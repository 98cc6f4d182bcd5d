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
  std::string_view help = {};   // one sentence
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
};

}  // namespace trainscope::gui
